"""What identical requests share, and what they must not: rules, ceilings, priorities, patience and words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from encoders.types import WorkClass
from headrace.v1 import retrieval_pb2 as pb
from indexers.types import CollectionKey, Document
from retrieval.client import retrieve_request
from tests.fakes.gateways import (
    COLLECTION,
    PATIENCE_S,
    QUESTION,
    TEXTS,
    Answered,
    Gateway,
    collected,
    gateway,
    openai_backend,
)
from tests.fakes.openai_server import Reset, Send, Status, Wait, answer, serving, sse, token

WHOLE = answer("Tighten it to 40 Nm [1].")
BUSY = Send(sse(token("x")))
AUTO = {"generation.default_backend": "auto"}
OTHER_QUESTION = "What is tomato soup made of?"


def followers(rig: Gateway) -> int:
    """Returns how many read the answers that are being written."""
    return sum(len(chain.readers) for chain in rig.app.pipeline._writer._flight._flights._joinable.values())


def waiting(rig: Gateway) -> int:
    """Returns how many wait for a place at a backend."""
    return sum(each.waiting for each in rig.app.engines.dispatcher.stats())


async def until(reached: Callable[[], bool]) -> None:
    """Gives others their turn until that is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not reached():
            await asyncio.sleep(0)


async def follow_up(rig: Gateway, question: str, **request: Any) -> Answered:
    """Asks in a conversation about valve 7."""
    retrieve = retrieve_request(COLLECTION, question)
    retrieve.history.add(speaker=pb.SPEAKER_USER, text="Tell me about valve 7.")
    retrieve.history.add(speaker=pb.SPEAKER_ASSISTANT, text="Valve 7 is tightened with a wrench.")
    return await collected(rig.client, pb.GenerateRequest(retrieve=retrieve, **request))


async def test_waits_of_identical_questions_do_not_add_up(tmp_path: Path) -> None:
    """Each caller waits `max_wait_ms` at most, however many ask the same."""
    settings = {"generation.queue.max_wait_ms": 300}
    async with (
        serving([BUSY, Wait(asyncio.Event())]) as server,
        gateway(tmp_path, [openai_backend("llm", server.base_url, max_concurrent=1)], **settings) as rig,
    ):
        first = asyncio.create_task(rig.ask(OTHER_QUESTION))
        await server.exchange(0)

        async def waited_s() -> float:
            began = time.monotonic()
            with pytest.raises(grpc.aio.AioRpcError):
                await rig.ask()
            return time.monotonic() - began

        assert max(await asyncio.gather(*(waited_s() for _ in range(8)))) < 8 * 0.3 / 2
        first.cancel()


@pytest.mark.parametrize("at_once", [True, False])
async def test_other_question_with_the_same_rewriting_has_its_own_answer(tmp_path: Path, at_once: bool) -> None:
    """The model reads the question as it was put, so that is what the answer belongs to."""
    go = asyncio.Event()
    settings = {"generation.conversation.rewrite": "model", "generation.conversation.rewrite_backend": "side"}
    async with (
        serving(answer("How tight is valve 7?")) as side,
        serving([Wait(go), *answer("Antwort eins [1].")], answer("Answer two [1].")) as main,
        gateway(
            tmp_path, [openai_backend("main", main.base_url), openai_backend("side", side.base_url)], **settings
        ) as rig,
    ):
        first = asyncio.create_task(follow_up(rig, "How tight is it? Answer in German."))
        await main.exchange(0)
        if not at_once:
            go.set()
            await first
        second = asyncio.create_task(follow_up(rig, "How tight is it?"))
        await main.exchange(1)
        go.set()
        assert (await second).text == "Answer two [1]."
        assert (await first).text == "Antwort eins [1]."


async def test_answer_of_an_outage_is_a_stand_in(tmp_path: Path) -> None:
    """While the better backend is unwell another one answers: flagged, and not kept beyond the outage."""
    settings = {"generation.resilience.failures_to_open": 1, "generation.routing.latency_weight": 0.01}
    small = {"name": "extractive", "kind": "extractive", "capability": 0.0}
    async with serving([Status(500)]) as large:
        backends = [openai_backend("large", large.base_url, capability=1.0), small]
        async with gateway(tmp_path, backends, **AUTO, **settings) as rig:
            await rig.ask("How often is the pump seal replaced?")
            during = (await rig.ask()).completed
            assert during is not None
            excluded = {each.backend: each.excluded for each in during.ledger.route.candidates}
            assert excluded == {"extractive": "", "large": "unhealthy"}
            assert list(during.ledger.degraded) == ["backend_fallback"]
            assert not during.reuse.stored


async def test_request_whose_rules_forbid_a_backend_does_not_join_its_stream(tmp_path: Path) -> None:
    """A document becomes secret while a request waits: nobody gets it from who may not see it, whoever asked first."""
    go = asyncio.Event()
    settings = {
        "generation.queue.max_wait_ms": 20_000,
        "generation.routing.rules": [{"name": "s", "field": "kind", "values": ["secret"], "tiers": ["private"]}],
    }
    async with serving([BUSY, Wait(go), *answer("Busy [1].")], WHOLE) as public, serving(WHOLE) as private:
        backends = [
            openai_backend("public", public.base_url, capability=1.0, max_concurrent=1),
            openai_backend("private", private.base_url, tier="private", output_price=1000.0),
        ]
        async with gateway(tmp_path, backends, **AUTO, **settings) as rig:
            busy = asyncio.create_task(rig.ask(OTHER_QUESTION, backend="public"))
            await public.exchange(0)
            early = asyncio.create_task(rig.ask())
            await until(lambda: waiting(rig) == 1)
            index = await rig.app.engines.catalog.open(CollectionKey("default", COLLECTION))
            secret = Document("valve", "valve", TEXTS["valve"], metadata={"kind": "secret"})
            await rig.app.indexer_of(index).upsert([secret], WorkClass.BULK)
            late = (await rig.ask()).completed
            assert late is not None
            assert late.backend == late.ledger.route.backend == "private"
            go.set()
            await asyncio.gather(busy, early)


async def test_request_that_waits_obeys_the_rules_of_when_it_is_sent(tmp_path: Path) -> None:
    """A rule that comes into force while a request is in a queue keeps it from the backend all the same."""
    go = asyncio.Event()
    async with serving([BUSY, Wait(go), *answer("Busy [1].")], WHOLE) as public:
        only = openai_backend("public", public.base_url, max_concurrent=1)
        own = {"name": "own", "kind": "extractive", "tier": "private"}
        settings: dict[str, Any] = {"generation.queue.max_wait_ms": 20_000}
        async with gateway(tmp_path, [only, own], **settings) as rig:
            busy = asyncio.create_task(rig.ask(OTHER_QUESTION))
            await public.exchange(0)
            queued = asyncio.create_task(rig.ask())
            await until(lambda: waiting(rig) == 1)
            rig.flags["generation.routing.rules"] = [{"name": "closed", "tiers": ["private"]}]
            rig.flags["generation.default_backend"] = "own"
            rig.live.reload()
            go.set()
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await queued
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            await busy
            assert len(public.exchanges) == 1


async def test_interactive_question_does_not_wait_as_batch(tmp_path: Path) -> None:
    """Who asks what a request of a lower class waits for does not wait behind that class."""
    go = asyncio.Event()
    settings = {"generation.queue.max_wait_ms": 20_000}
    async with (
        serving([BUSY, Wait(go), *answer("Busy [1].")], WHOLE) as server,
        gateway(tmp_path, [openai_backend("llm", server.base_url, max_concurrent=1)], **settings) as rig,
    ):
        tasks = [asyncio.create_task(rig.ask(OTHER_QUESTION))]
        await server.exchange(0)
        for number, question in enumerate([*(f"When is pump seal {n} replaced?" for n in range(3)), QUESTION]):
            tasks.append(asyncio.create_task(rig.ask(question, priority=pb.PRIORITY_BATCH)))
            await until(lambda number=number: waiting(rig) == number + 1)
        tasks.append(asyncio.create_task(rig.ask(priority=pb.PRIORITY_INTERACTIVE)))
        await until(lambda: waiting(rig) == 5)
        go.set()
        await asyncio.gather(*tasks)
        assert server.exchanges[1].body["messages"][1]["content"].endswith(QUESTION)


async def test_ceiling_of_one_caller_does_not_choose_for_others(tmp_path: Path) -> None:
    """What a cheap backend wrote under one caller's `max_cost` does not serve callers without one."""
    small = {"name": "extractive", "kind": "extractive", "capability": 0.0}
    async with serving(answer("Large: 40 Nm [1].")) as large:
        backends = [openai_backend("large", large.base_url, capability=1.0, output_price=10.0), small]
        async with gateway(tmp_path, backends, **AUTO) as rig:
            cheap, free = (await rig.ask(max_cost=1e-9)).completed, (await rig.ask()).completed
            assert cheap is not None
            assert free is not None
            assert (cheap.backend, free.backend) == ("extractive", "large")


async def test_caller_with_time_is_not_failed_by_the_deadline_of_who_asked_first(tmp_path: Path) -> None:
    """The first caller has no time for a retry; the second one, who follows, has."""
    go = asyncio.Event()
    settings = {"generation.resilience.backoff_ms": 400, "generation.resilience.retry_share": 1.0}
    async with (
        serving([Wait(go), Reset()], WHOLE) as server,
        gateway(tmp_path, [openai_backend("llm", server.base_url, retries=2)], **settings) as rig,
    ):
        wanted = pb.GenerateRequest(retrieve=retrieve_request(COLLECTION, QUESTION))

        async def hasty() -> None:
            with pytest.raises(grpc.aio.AioRpcError):
                async for _ in rig.client._retrieval.Generate(wanted, timeout=0.5):
                    pass

        first = asyncio.create_task(hasty())
        await server.exchange(0)
        second = asyncio.create_task(rig.ask())
        await until(lambda: followers(rig) == 2)
        await first
        go.set()
        assert (await second).text == "Tighten it to 40 Nm [1]."


async def test_pinned_conversation_is_read_by_nobody_else(tmp_path: Path) -> None:
    """Rewriting and summarising for a request that names its backend keep to it."""
    settings = {
        "generation.conversation.rewrite": "model",
        "generation.conversation.summarise": True,
        "generation.conversation.history_tokens": 16,
        "generation.conversation.summary_tokens": 16,
        "generation.routing.latency_weight": 0.0,
    }
    async with serving(answer("How tight is valve 7?")) as public, serving(WHOLE) as private:
        backends = [
            openai_backend("private", private.base_url, tier="private", output_price=100.0),
            openai_backend("public", public.base_url),
        ]
        async with gateway(tmp_path, backends, **settings) as rig:
            await follow_up(rig, "How tight is it?", backend="private")
            await rig.app.engines.caches.summaries.settle()
            assert not public.exchanges
            assert len(private.exchanges) > 1


async def test_kept_answer_of_a_backend_that_a_rule_forbids_by_now_is_not_served(tmp_path: Path) -> None:
    """A document that became secret, or a rule that came into force: who may answer now answers, or nobody."""
    own = {"name": "own", "kind": "extractive", "tier": "private", "capability": 0.0}
    rule = {"name": "s", "field": "kind", "values": ["secret"], "tiers": ["private"]}
    async with serving(WHOLE) as public:
        backends = [openai_backend("public", public.base_url, capability=1.0), own]
        settings = {"generation.routing.rules": [rule], "generation.routing.latency_weight": 0.0}
        async with gateway(tmp_path, backends, **AUTO, **settings) as rig:
            kept = (await rig.ask()).completed
            assert kept is not None
            assert (kept.backend, kept.reuse.stored) == ("public", True)
            index = await rig.app.engines.catalog.open(CollectionKey("default", COLLECTION))
            secret = Document("valve", "valve", TEXTS["valve"], metadata={"kind": "secret"})
            await rig.app.indexer_of(index).upsert([secret], WorkClass.BULK)
            now = (await rig.ask()).completed
            assert now is not None
            assert (now.backend, now.reuse.reason, list(now.ledger.route.rules)) == ("own", "rule", ["s"])
            rig.flags["generation.routing.rules"] = [rule, {"name": "none", "backends": ["public"]}]
            rig.live.reload()
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await rig.ask()
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_backend_that_counts_otherwise_is_no_stand_in(tmp_path: Path) -> None:
    """A backend with a tokenizer and a window of its own that reads every passage is the one that was wanted."""
    own = {"name": "own", "kind": "extractive", "capability": 0.0, "context_window_tokens": 16384}
    async with serving(WHOLE) as server:
        settings = {"generation.routing.latency_weight": 0.0}
        backends = [openai_backend("llm", server.base_url, capability=1.0, tokenizer=str(_tokenizer(tmp_path))), own]
        async with gateway(tmp_path, backends, **AUTO, **settings) as rig:
            completed = (await rig.ask()).completed
            assert completed is not None
            assert completed.backend == "llm"
            assert not completed.ledger.degraded
            assert completed.reuse.stored


async def test_first_backend_that_is_down_costs_few_requests_nothing(tmp_path: Path) -> None:
    """A quiet service with one dead backend answers every request by the next one."""
    own = {"name": "own", "kind": "extractive", "capability": 0.0}
    async with serving(WHOLE) as server:
        gone = server.base_url
    settings = {"generation.routing.latency_weight": 0.0}
    backends = [openai_backend("gone", gone, capability=1.0, retries=1), own]
    async with gateway(tmp_path, backends, **AUTO, **settings) as rig:
        for number in range(8):
            completed = (await rig.ask(f"How tight is valve {number}?")).completed
            assert completed is not None
            assert completed.backend == "own"


def _tokenizer(folder: Path) -> Path:
    """Returns a tokenizer that splits at white space, under a name of its own."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    path = folder / "words" / "tokenizer.json"
    path.parent.mkdir()
    tokenizer.save(str(path))
    return path
