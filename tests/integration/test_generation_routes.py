"""Routes, conversations and queues in a whole server: which backend sees what, and what the ledger says of it."""

from __future__ import annotations

from pathlib import Path

import grpc.aio
import pytest

from headrace.v1 import common_pb2, retrieval_pb2
from retrieval.client import retrieve_request
from retrieval.client.messages import error_info
from tests.fakes.gateways import COLLECTION, QUESTION, Answered, Gateway, collected, gateway, openai_backend
from tests.fakes.openai_server import OpenAIServer, Send, Status, answer, serving, sse, token

WHOLE = answer("Tighten it to 40 Nm [1].")
USER, ASSISTANT = retrieval_pb2.SPEAKER_USER, retrieval_pb2.SPEAKER_ASSISTANT
AUTO = {"generation.default_backend": "auto"}
SECRET_ONLY_PRIVATE = [{"name": "secrets", "field": "kind", "values": ["valve"], "tiers": ["private"]}]


def prompt_of(server: OpenAIServer, number: int = -1) -> tuple[str, str]:
    """Returns the system's and the user's turn of a request that a server got."""
    system, user = server.exchanges[number].body["messages"]
    return system["content"], user["content"]


def told(*turns: tuple[int, str]) -> list[retrieval_pb2.Turn]:
    """Returns earlier turns."""
    return [retrieval_pb2.Turn(speaker=speaker, text=text) for speaker, text in turns]  # type: ignore[arg-type]


async def follow_up(rig: Gateway, question: str, *turns: tuple[int, str]) -> Answered:
    """Asks in a conversation."""
    retrieve = retrieve_request(COLLECTION, question)
    retrieve.history.extend(told(*turns))
    return await collected(rig.client, retrieval_pb2.GenerateRequest(retrieve=retrieve))


async def test_ledger_tells_times_route_and_attempts(tmp_path: Path) -> None:
    """Time to first token, time per token, total and end to end stand apart, with the backend and why it was chosen."""
    async with (
        serving(answer("Tighten ", "it ", "to 40 Nm [1].")) as server,
        gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig,
    ):
        completed = (await rig.ask()).completed
        assert completed is not None
        ledger, report = completed.ledger, completed.ledger.generation
        assert (ledger.route.backend, ledger.route.reason) == ("llm", "named")
        assert report.backend == "llm"
        assert 0 < report.first_token_ns <= report.total_ns <= ledger.total_ns
        assert ledger.first_delta_ns > report.first_token_ns
        [attempt] = report.attempts
        assert attempt.outcome == common_pb2.ATTEMPT_OUTCOME_ANSWERED
        assert list(report.passages) == list(range(1, 1 + len(report.passages)))
        stages = [common_pb2.Stage.Name(cost.stage) for cost in ledger.stages]
        assert stages[-4:] == ["STAGE_ROUTE", "STAGE_GENERATE", "STAGE_VERIFY", "STAGE_OTHER"]


async def test_sensitive_passages_go_to_private_backends_only(tmp_path: Path) -> None:
    """A rule on metadata holds when the passage is found, whatever the other backend would cost."""
    async with serving(WHOLE) as public, serving(WHOLE) as private:
        backends = [
            openai_backend("public", public.base_url, capability=1.0),
            openai_backend("private", private.base_url, tier="private", output_price=1000.0),
        ]
        rules = AUTO | {"generation.routing.rules": SECRET_ONLY_PRIVATE}
        async with gateway(tmp_path, backends, **rules) as rig:
            answered = await rig.ask()
            assert answered.completed is not None
            assert answered.completed.backend == "private"
            assert list(answered.completed.ledger.route.rules) == ["secrets"]
            excluded = {each.backend: each.excluded for each in answered.completed.ledger.route.candidates}
            assert excluded["public"] == "rule:secrets"
            assert not public.exchanges


async def test_sensitive_passages_never_leave_when_the_private_backend_fails(tmp_path: Path) -> None:
    """No failure relaxes a rule: the request fails, and the other backend has seen nothing."""
    async with serving(WHOLE) as public, serving([Status(500)]) as private:
        backends = [
            openai_backend("public", public.base_url),
            openai_backend("private", private.base_url, tier="private", retries=1),
        ]
        rules = AUTO | {"generation.routing.rules": SECRET_ONLY_PRIVATE}
        async with gateway(tmp_path, backends, **rules) as rig:
            for _ in range(8):
                with pytest.raises(grpc.aio.AioRpcError):
                    await rig.ask()
            assert not public.exchanges


async def test_named_backend_that_a_rule_forbids_is_refused(tmp_path: Path) -> None:
    """PERMISSION_DENIED names the rule and what would be allowed; nothing is sent."""
    async with serving(WHOLE) as public:
        backends = [openai_backend("public", public.base_url), {"name": "own", "kind": "extractive", "tier": "private"}]
        rules = [{"name": "house", "tenants": ["default"], "tiers": ["private"]}]
        async with gateway(tmp_path, backends, **{"generation.routing.rules": rules}) as rig:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await rig.ask(backend="public")
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
            info = error_info(refused.value)
            assert info is not None
            assert (info.reason, info.metadata["rule"], info.metadata["allowed"]) == (
                "BACKEND_FORBIDDEN",
                "house",
                "own",
            )
            assert not public.exchanges


async def test_conversations_obey_rules_on_metadata_whatever_is_found(tmp_path: Path) -> None:
    """Earlier turns may hold what only private backends may see, so a conversation goes there alone."""
    async with serving(WHOLE) as public, serving(WHOLE) as private:
        backends = [
            openai_backend("public", public.base_url, capability=1.0),
            openai_backend("private", private.base_url, tier="private", output_price=1000.0),
        ]
        rules = AUTO | {"generation.routing.rules": SECRET_ONLY_PRIVATE}
        async with gateway(tmp_path, backends, **rules) as rig:
            await follow_up(rig, "And what is tomato soup made of?", (USER, QUESTION), (ASSISTANT, "To 40 Nm [1]."))
            assert not public.exchanges
            assert len(private.exchanges) == 1


async def test_follow_up_is_searched_by_itself_and_read_with_its_history(tmp_path: Path) -> None:
    """The rewritten question finds; the model reads the turns without their old marks, and the question as it was."""
    async with serving(WHOLE) as server, gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig:
        answered = await follow_up(
            rig, "How often is it replaced?", (USER, "What about the pump seal?"), (ASSISTANT, "Order K16 [2].")
        )
        assert answered.retrieved is not None
        conversation = answered.retrieved.conversation
        assert (conversation.turns, conversation.kept, conversation.dropped) == (2, 2, 0)
        assert "pump seal" in conversation.rewritten
        assert conversation.rewritten_by == "rules"
        assert answered.retrieved.hits[0].document_id == "pump"
        _, user = prompt_of(server)
        assert user.endswith(
            "Conversation so far:\n\nUser: What about the pump seal?\nAssistant: Order K16.\n\n"
            "Question: How often is it replaced?"
        )
        assert user.startswith("Sources:\n\n[1]")


async def test_answers_of_other_conversations_are_not_served(tmp_path: Path) -> None:
    """The same words in another conversation are another question."""
    async with serving(WHOLE) as server, gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig:
        for earlier in ("What about the pump seal?", "What about the valve?", "What about the valve?"):
            await follow_up(rig, "How often is it replaced?", (USER, earlier))
        assert len(server.exchanges) == 2


async def test_app_instructions_follow_the_operators(tmp_path: Path) -> None:
    """Both stand in the system prompt, the operator's first, and other instructions get another answer."""
    async with serving(WHOLE) as server, gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig:
        await rig.ask(instructions="Answer in French.")
        await rig.ask()
        system, _ = prompt_of(server, 0)
        assert system.startswith("Answer the question from the numbered sources only.")
        assert system.endswith("\n\nAnswer in French.")
        assert len(server.exchanges) == 2


async def test_tool_calls_pass_through_and_are_never_kept(tmp_path: Path) -> None:
    """Tools reach the backend as they are, their calls reach the caller piece by piece, and nothing is cached."""
    call = {"index": 0, "id": "c1", "function": {"name": "order", "arguments": '{"part":'}}
    more = {"index": 0, "function": {"arguments": ' "K16"}'}}
    events = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [more]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        "[DONE]",
    ]
    tools = retrieval_pb2.Tools(definitions='[{"type": "function", "function": {"name": "order"}}]', choice='"auto"')
    async with (
        serving([Send(sse(*events))]) as server,
        gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig,
    ):
        for _ in range(2):
            answered = await rig.ask(tools=tools)
            calls = [call for delta in answered.deltas for call in delta.tool_calls]
            assert (calls[0].index, calls[0].id, calls[0].name) == (0, "c1", "order")
            assert "".join(one.arguments for one in calls) == '{"part": "K16"}'
            assert answered.completed is not None
            assert answered.completed.finish_reason == retrieval_pb2.FINISH_REASON_TOOL_CALLS
            assert not answered.completed.reuse.stored
        assert server.exchanges[0].body["tools"][0]["function"]["name"] == "order"
        assert len(server.exchanges) == 2


async def test_explain_route_generates_nothing(tmp_path: Path) -> None:
    """The route is told with its candidates; no backend is asked."""
    async with serving(WHOLE) as server:
        backends = [openai_backend("llm", server.base_url), {"name": "own", "kind": "extractive", "capability": 0.0}]
        async with gateway(tmp_path, backends, **AUTO) as rig:
            wanted = retrieval_pb2.GenerateRequest(retrieve=retrieve_request(COLLECTION, QUESTION))
            reply = await rig.client.explain_route(wanted)
            assert {each.backend for each in reply.route.candidates} == {"llm", "own"}
            assert reply.context_tokens > 0
            assert not server.exchanges


@pytest.mark.parametrize(
    ("request_fields", "field"),
    [
        ({"tools": retrieval_pb2.Tools(definitions="{}")}, "tools.definitions"),
        ({"tools": retrieval_pb2.Tools(definitions='[{"a": 1}]', choice="{")}, "tools.choice"),
        ({"tools": retrieval_pb2.Tools(definitions='[{"a": NaN}]')}, "tools.definitions"),
        ({"tools": retrieval_pb2.Tools(definitions='[{"a": 1e999}]')}, "tools.definitions"),
        ({"instructions": "x" * 20_001}, "instructions"),
        ({"session": "x" * 257}, "session"),
        ({"max_cost": -1.0}, "max_cost"),
        ({"priority": 9}, "priority"),
        ({"backend": "nobody"}, "backend"),
    ],
)
async def test_bad_requests_name_the_field(tmp_path: Path, request_fields: dict[str, object], field: str) -> None:
    """INVALID_ARGUMENT with the field and its bound, before anything is searched."""
    async with (
        serving([Send(sse(token("no")))]) as server,
        gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await rig.ask(**request_fields)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        info = error_info(refused.value)
        assert info is not None
        assert info.metadata["field"] == field
        assert not server.exchanges


async def test_bad_turns_name_the_turn(tmp_path: Path) -> None:
    """A blank turn and one that nobody said are refused by their place."""
    async with serving(WHOLE) as server, gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig:
        for turns, field in (
            ([(USER, "a"), (ASSISTANT, " ")], "retrieve.history[1].text"),
            ([(0, "a")], "retrieve.history[0].speaker"),
            ([(USER, "a")] * 201, "retrieve.history"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await follow_up(rig, "And?", *turns)
            info = error_info(refused.value)
            assert info is not None
            assert info.metadata["field"] == field
