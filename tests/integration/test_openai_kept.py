"""What becomes of odd answers of an OpenAI-compatible server behind the whole service."""

from __future__ import annotations

from pathlib import Path

import grpc.aio
import pytest

from headrace.v1 import retrieval_pb2 as pb
from tests.fakes.gateways import gateway, openai_backend
from tests.fakes.openai_server import Script, Send, answer, serving, sse, token

CALL = {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "f"}}]}}]}


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (answer("Tighten it [1].", finish_reason="MAX_TOKENS"), pb.FINISH_REASON_LENGTH),
        (answer("Tighten it [1].", finish_reason="safety"), pb.FINISH_REASON_CONTENT_FILTER),
        (answer("Tighten it [1].", finish_reason="timeout"), pb.FINISH_REASON_OTHER),
        ([Send(sse(token("Tighten it [1]."), "[DONE]"))], pb.FINISH_REASON_OTHER),
        ([Send(sse(token("Tighten it [1]."), CALL, token("", "stop"), "[DONE]"))], pb.FINISH_REASON_TOOL_CALLS),
    ],
)
async def test_answer_that_may_lack_its_end_is_shown_and_not_kept(
    tmp_path: Path, script: Script, reason: pb.FinishReason.ValueType
) -> None:
    """The caller gets all of it and why it ended; the next one is answered anew."""
    async with serving(script) as server, gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig:
        for asked in (1, 2):
            answered = await rig.ask()
            assert answered.completed is not None
            assert (answered.text, answered.completed.finish_reason) == ("Tighten it [1].", reason)
            assert not answered.completed.reuse.stored
            assert len(server.exchanges) == asked


async def test_number_of_a_call_that_cannot_be_is_the_backends_fault(tmp_path: Path) -> None:
    """It is told as an outage of the backend, not as a fault of ours."""
    script = [Send(sse({"choices": [{"delta": {"tool_calls": [{"index": 2**40}]}}]}, token("", "tool_calls")))]
    async with serving(script) as server, gateway(tmp_path, [openai_backend("llm", server.base_url)]) as rig:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await rig.ask()
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
