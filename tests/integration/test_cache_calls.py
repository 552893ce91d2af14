"""What apps and operators ask of the caches over gRPC: verdicts, statistics, forgetting, explaining."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from structlog.testing import capture_logs

from headrace.v1 import admin_pb2_grpc, common_pb2, index_pb2_grpc, retrieval_pb2, retrieval_pb2_grpc
from retrieval.caching.redis.tier import RedisTier
from retrieval.client import Client, document, error_info, retrieve_request
from retrieval.identity import Authenticator, hash_of
from retrieval.live import LiveSettings
from retrieval.server.app import App, build
from retrieval.server.interceptor import Guard
from retrieval.server.limits import Limits
from retrieval.settings.load import Loaded, load_settings
from retrieval.settings.service import ApiKey, AuthSettings
from tests.fakes.redis_server import RedisServer

QUESTION = "How tight is valve 7?"
REWORDED = "Please tell me how tight valve 7 is"
TEXTS = {
    "valve": ("Valve 7", "Valve 7 is tightened to 40 newton metres. Use a torque wrench."),
    "pump": ("Pump seal", "The pump seal is replaced every two years. Order part K16 in advance."),
}
BAD, GOOD = retrieval_pb2.ANSWER_VERDICT_BAD, retrieval_pb2.ANSWER_VERDICT_GOOD
NO_STORE = retrieval_pb2.CacheControl(no_store=True)
KEYS = (
    ApiKey(name="root", sha256=hash_of("root"), tenant="acme", roles=("admin",)),
    ApiKey(name="app", sha256=hash_of("app"), tenant="acme", roles=("read",)),
    ApiKey(name="other", sha256=hash_of("other"), tenant="beta", roles=("admin",)),
)


@dataclass
class _Rig:
    """A server in this process with two documents of the tenant `acme`, and a client for each key."""

    app: App
    clients: dict[str, Client] = field(default_factory=dict)

    async def ask(
        self, question: str = QUESTION, who: str = "app", control: retrieval_pb2.CacheControl | None = None
    ) -> tuple[str, retrieval_pb2.AnswerReuse]:
        """Returns the request's id and what the answer cache did."""
        retrieve = retrieve_request("docs", question, cache_control=control)
        request = retrieval_pb2.GenerateRequest(retrieve=retrieve)
        events = [event async for event in self.clients[who].generate(request)]
        return events[0].retrieved.request_id, events[-1].completed.reuse


@asynccontextmanager
async def _serving(folder: Path, **settings: object) -> AsyncIterator[_Rig]:
    flags = {"data.folder": str(folder), "server.port": 0} | settings

    def load() -> Loaded:
        return load_settings(None, {}, flags)

    live = LiveSettings(load(), load)
    async with build(live) as app:
        guard = Guard(Authenticator(AuthSettings(keys=KEYS)), Limits(live), app.metrics, app.drain)
        server = grpc.aio.server(interceptors=[guard])
        retrieval_pb2_grpc.add_RetrievalServiceServicer_to_server(app.retrieval, server)
        index_pb2_grpc.add_IndexServiceServicer_to_server(app.index, server)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(app.admin, server)
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        rig = _Rig(app, {key.name: Client(address, key.name, timeout_s=20.0) for key in KEYS})
        root = rig.clients["root"]
        await root.create_collection("docs")
        await root.upsert("docs", [document(name, text, title=title) for name, (title, text) in TEXTS.items()])
        try:
            yield rig
        finally:
            for client in rig.clients.values():
                await client.close()
            await server.stop(0)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[_Rig]:
    """A server with the default settings."""
    async with _serving(tmp_path / "data") as found:
        yield found


async def _refused(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    info = error_info(failed.value)
    return failed.value.code(), info.metadata.get("field", info.reason) if info else ""


async def test_answer_says_what_the_cache_did(rig: _Rig) -> None:
    """The first answer is kept; the second is the first, with its tier, age and evidence and without a risk."""
    with capture_logs() as lines:
        _, first = await rig.ask()
        _, second = await rig.ask()
        await rig.clients["root"].cache_stats()  # so that the line of the answer before is written
    assert (first.kind, first.stored, first.reason) == (retrieval_pb2.REUSE_KIND_UNSPECIFIED, True, "unknown")
    assert not first.HasField("evidence")
    assert (second.kind, second.key, second.similarity) == (retrieval_pb2.REUSE_KIND_EQUAL, first.key, 1.0)
    assert second.tier == common_pb2.CACHE_TIER_MEMORY
    assert second.evidence.cited == second.evidence.found > 0
    assert not second.HasField("risk")
    told = [line["reuse"] for line in lines if "reuse" in line]
    assert told == ["none", "equal"]
    assert (
        rig.app.metrics.registry.get_sample_value("headrace_answers_total", {"reuse": "equal", "reason": "none"}) == 1
    )


async def test_ledger_says_in_which_tier_a_value_was(rig: _Rig) -> None:
    """A miss has no tier, a hit names the process's own."""
    client = rig.clients["app"]
    for hit, tier in ((False, common_pb2.CACHE_TIER_UNSPECIFIED), (True, common_pb2.CACHE_TIER_MEMORY)):
        reply = await client.retrieve("docs", QUESTION)
        [use] = [use for use in reply.ledger.caches if use.cache == "results"]
        assert (use.hit, use.tier) == (hit, tier)
    only = retrieval_pb2.CacheControl(only_if_cached=True)
    assert (await client.retrieve("docs", QUESTION, cache_control=only)).hits
    code, reason = await _refused(client.retrieve("docs", "Who orders part K16?", cache_control=only))
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_CACHED")


async def test_bad_answer_is_served_to_nobody_again(rig: _Rig) -> None:
    """After a bad verdict the question is answered anew; a good one changes nothing."""
    _, kept = await rig.ask()
    good = await rig.clients["app"].report_answer("docs", kept.key, GOOD)
    assert (good.removed, good.learned) == (False, False)
    assert (await rig.ask())[1].kind == retrieval_pb2.REUSE_KIND_EQUAL
    bad = await rig.clients["app"].report_answer("docs", kept.key.upper(), BAD)
    assert (bad.removed, bad.learned) == (True, False)
    assert (await rig.ask(control=NO_STORE))[1].kind == retrieval_pb2.REUSE_KIND_UNSPECIFIED
    code, reason = await _refused(rig.clients["app"].report_answer("docs", kept.key, BAD))
    assert (code, reason) == (grpc.StatusCode.NOT_FOUND, "ANSWER_NOT_FOUND")


async def test_verdict_on_a_similar_question_is_learned_from(tmp_path: Path) -> None:
    """Once comparisons let a reworded question be served, a bad verdict with its request teaches the risk control."""
    settings = {"cache.answers.max_error_rate": 0.5, "cache.answers.shadow_share": 0.0}
    async with _serving(tmp_path / "data", **settings) as rig:
        await rig.ask()
        for _ in range(60):
            request_id, reuse = await rig.ask(REWORDED, control=NO_STORE)
            if reuse.kind == retrieval_pb2.REUSE_KIND_SIMILAR:
                break
        assert reuse.kind == retrieval_pb2.REUSE_KIND_SIMILAR
        assert 0.0 < reuse.risk.error_bound <= reuse.risk.max_error_rate == 0.5
        [risk] = (await rig.clients["root"].cache_stats()).risks
        assert (risk.collection, risk.errors, risk.served, risk.serving) == ("docs", 0, 1, True)
        assert risk.labels > 0
        reported = await rig.clients["app"].report_answer("docs", reuse.key, BAD, request_id=request_id)
        assert (reported.removed, reported.learned) == (True, True)
        assert list((await rig.clients["other"].cache_stats()).risks) == []


async def test_answer_is_explained(rig: _Rig) -> None:
    """Question, text, place and age, and for each passage whether it is cited and still there as it was."""
    _, kept = await rig.ask()
    root = rig.clients["root"]
    explained = await root.explain_cache_key("docs", kept.key)
    assert (explained.question, explained.backend) == (QUESTION, "extractive")
    assert explained.tier == common_pb2.CACHE_TIER_MEMORY
    assert "40 newton metres" in explained.text
    assert all(one.unchanged for one in explained.passages)
    assert {one.document_id for one in explained.passages if one.cited} == {"valve"}
    await root.upsert("docs", [document("valve", "Valve 7 is tightened to 55 newton metres.", title="Valve 7")])
    after = await root.explain_cache_key("docs", kept.key)
    assert {one.document_id for one in after.passages if not one.unchanged} == {"valve"}


async def test_cache_is_emptied_by_document_and_altogether(rig: _Rig) -> None:
    """Only what was made from the document goes, or everything of the tenant; statistics show what is left."""
    root = rig.clients["root"]
    await rig.ask()

    async def entries() -> dict[str, int]:
        return {one.cache: one.entries for one in (await root.cache_stats()).caches}

    assert (await entries())["answers"] == 1
    assert (await root.invalidate_cache("docs", document_id="nobody")).memory == 0
    forgotten = await root.invalidate_cache("docs", document_id="valve")
    assert (forgotten.memory, forgotten.shared, forgotten.shared_available) == (2, 0, True)
    left = await entries()
    assert (left["answers"], left["results"], left["query_embeddings"]) == (0, 0, 1)
    await root.invalidate_cache(older_than_s=3_600.0)
    await rig.ask()
    await rig.clients["other"].invalidate_cache()
    assert (await entries())["answers"] == 1
    await root.invalidate_cache()
    assert sum((await entries()).values()) == 0
    assert not (await root.cache_stats()).HasField("shared")


async def test_deleted_collection_takes_its_answers_along(rig: _Rig) -> None:
    """Nothing of its texts is left in the caches, and a key of it explains nothing in the next of that name."""
    root = rig.clients["root"]
    _, kept = await rig.ask()
    await root.delete_collection("docs")
    left = {one.cache: one.entries for one in (await root.cache_stats()).caches}
    assert (left["answers"], left["results"]) == (0, 0)
    await root.create_collection("docs")
    code, reason = await _refused(root.explain_cache_key("docs", kept.key))
    assert (code, reason) == (grpc.StatusCode.NOT_FOUND, "ANSWER_NOT_FOUND")


async def test_calls_reach_the_shared_tier(tmp_path: Path) -> None:
    """With a Redis: its figures, an answer explained from there, one taken out of it, and its death told."""
    with RedisServer() as redis:
        settings = {"cache.redis.url": redis.url, "cache.redis.share_results": True, "cache.redis.budget_ms": 1000.0}
        async with _serving(tmp_path / "data", **settings) as rig:
            tier, root = rig.app.engines.caches.shared, rig.clients["root"]
            assert isinstance(tier, RedisTier)
            assert await tier.available_within(20.0)
            _, kept = await rig.ask()
            await tier.flush()
            rig.app.engines.caches.answers.operations.forget_where(lambda answer: True)
            assert (await root.explain_cache_key("docs", kept.key)).tier == common_pb2.CACHE_TIER_SHARED
            _, there = await rig.ask()
            assert (there.kind, there.tier) == (retrieval_pb2.REUSE_KIND_EQUAL, common_pb2.CACHE_TIER_SHARED)
            assert (await root.report_answer("docs", kept.key, BAD)).removed
            code, _ = await _refused(root.explain_cache_key("docs", kept.key))
            assert code is grpc.StatusCode.NOT_FOUND
            _, again = await rig.ask()
            await tier.flush()
            assert (again.kind, again.stored) == (retrieval_pb2.REUSE_KIND_UNSPECIFIED, True)
            by_document = await root.invalidate_cache("docs", document_id="valve")
            assert (by_document.shared, by_document.shared_available) == (2, True)  # the result and the answer
            shared = (await root.cache_stats()).shared
            assert (shared.kind, shared.available) == ("redis", True)
            assert min(shared.lookups, shared.hits, shared.writes) > 0
            redis.kill()
            gone = await root.invalidate_cache()
            assert (gone.shared, gone.shared_available) == (0, False)


async def test_another_tenant_finds_nothing(rig: _Rig) -> None:
    """A key of another tenant is unknown, whether it exists or not, and so is its collection."""
    _, kept = await rig.ask()
    other = rig.clients["other"]
    for key in (kept.key, "ab" * 32):
        code, reason = await _refused(other.report_answer("docs", key, BAD))
        assert (code, reason) == (grpc.StatusCode.NOT_FOUND, "ANSWER_NOT_FOUND")
        code, reason = await _refused(other.explain_cache_key("docs", key))
        assert (code, reason) == (grpc.StatusCode.NOT_FOUND, "COLLECTION_NOT_FOUND")
    await other.create_collection("docs")
    code, reason = await _refused(other.explain_cache_key("docs", kept.key))
    assert (code, reason) == (grpc.StatusCode.NOT_FOUND, "ANSWER_NOT_FOUND")
    assert (await rig.ask())[1].kind == retrieval_pb2.REUSE_KIND_EQUAL


async def test_only_administrators_look_into_the_caches(rig: _Rig) -> None:
    """A key that reads may report answers, and nothing else."""
    app = rig.clients["app"]
    for call in (app.cache_stats(), app.invalidate_cache("docs"), app.explain_cache_key("docs", "ab" * 32)):
        assert (await _refused(call))[0] is grpc.StatusCode.PERMISSION_DENIED


async def test_bad_requests_name_field_and_bound(rig: _Rig) -> None:
    """Each refused value is named; nothing is forgotten or removed."""
    root = rig.clients["root"]
    _, kept = await rig.ask()
    calls: dict[str, list[Any]] = {
        "key": [root.report_answer("docs", kept.key[:-1], BAD), root.explain_cache_key("docs", f"{kept.key[:-2]}zz")],
        "verdict": [
            root.report_answer("docs", kept.key, retrieval_pb2.ANSWER_VERDICT_UNSPECIFIED),
            root.report_answer("docs", kept.key, 9),  # type: ignore[arg-type]
        ],
        "collection": [
            root.report_answer("Docs!", kept.key, BAD),
            root.explain_cache_key("", kept.key),
            root.invalidate_cache(document_id="valve"),
            root.invalidate_cache("../x"),
        ],
        "older_than_s": [root.invalidate_cache(older_than_s=bad) for bad in (-1.0, float("nan"), float("inf"))],
    }
    for field_name, refused in calls.items():
        for call in refused:
            assert await _refused(call) == (grpc.StatusCode.INVALID_ARGUMENT, field_name)
    assert (await rig.ask())[1].kind == retrieval_pb2.REUSE_KIND_EQUAL
