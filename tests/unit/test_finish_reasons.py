"""Every reason for the end of an answer has its word on both listeners, and only one makes an answer that is kept."""

from __future__ import annotations

import json

import pytest

from headrace.v1 import retrieval_pb2
from retrieval.answers.cache import Made
from retrieval.clock import Ledger
from retrieval.dispatch.answering import Verified
from retrieval.server.convert.answers import event_to_pb
from retrieval.server.convert.found import FoundMessages
from retrieval.server.http.chat_reply import Chunks
from retrieval.speech import BackendEnd, FinishReason, Usage
from retrieval.types import Completed

HTTP_WORDS = {"stop", "length", "content_filter", "tool_calls"}


@pytest.mark.parametrize("reason", FinishReason)
def test_every_reason_has_its_word_on_the_wire(reason: FinishReason) -> None:
    """The wire has it by name, and HTTP says it in one of the words that clients know."""
    completed = Completed(reason, Usage(), (), 0, Ledger((), 0), "b", "m")
    sent = event_to_pb(completed, FoundMessages()).completed.finish_reason
    assert retrieval_pb2.FinishReason.Name(sent) == f"FINISH_REASON_{reason.name}"
    chunk = json.loads(Chunks("r", "m").end(completed, {}).decode().removeprefix("data: "))
    assert chunk["choices"][0]["finish_reason"] in HTTP_WORDS


@pytest.mark.parametrize("reason", FinishReason)
def test_only_an_answer_that_came_to_its_end_is_kept(reason: FinishReason) -> None:
    """What ended for any other reason, or for one that is not known, may lack its end."""
    made = Made(Verified("Turn it.", "", (), 0), BackendEnd(reason, Usage(), "m"), "b")
    assert made.whole is (reason is FinishReason.STOP)
