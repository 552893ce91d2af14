"""Messages of a chat as instructions, earlier turns and a question."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.v1 import retrieval_pb2
from retrieval.errors import InvalidRequest
from retrieval.server.http.chat_body import Message
from retrieval.server.http.chat_messages import Asking, asking

USER, ASSISTANT, TOOL = (
    retrieval_pb2.SPEAKER_USER,
    retrieval_pb2.SPEAKER_ASSISTANT,
    retrieval_pb2.SPEAKER_TOOL,
)


def _asking(*messages: dict[str, Any]) -> Asking:
    return asking([Message.model_validate_json(json.dumps(message)) for message in messages])


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_asking_takes_the_last_of_the_user_as_the_question() -> None:
    """System and developer messages are instructions wherever they stand, the rest are turns in their order."""
    asked = _asking(
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "What is a penstock?"},
        {"role": "assistant", "content": "A pipe."},
        {"role": "developer", "content": "Cite."},
        {"role": "user", "content": "How thick is it?"},
    )
    assert (asked.instructions, asked.question) == ("Be short.\n\nCite.", "How thick is it?")
    assert [(turn.speaker, turn.text) for turn in asked.history] == [
        (USER, "What is a penstock?"),
        (ASSISTANT, "A pipe."),
    ]


def test_asking_joins_parts_of_text() -> None:
    """Content may come in parts."""
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert _asking({"role": "user", "content": parts}).question == "one\ntwo"


def test_asking_keeps_the_question_in_a_loop_with_tools() -> None:
    """What was called and came back are turns; the question stays the user's, and results name their function."""
    asked = _asking(
        {"role": "user", "content": "Is gate 7 open?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [_call("c1", "gate", '{"n":7}'), _call("c2", "log", "{}")],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "quiet"},
        {"role": "tool", "tool_call_id": "c1", "content": "open"},
        {"role": "tool", "tool_call_id": "c9", "content": ""},
    )
    assert asked.question == "Is gate 7 open?"
    assert [(turn.speaker, turn.text) for turn in asked.history] == [
        (ASSISTANT, 'I call gate({"n":7})\nI call log({})'),
        (TOOL, "log returned: quiet"),
        (TOOL, "gate returned: open"),
        (TOOL, "c9 returned: nothing"),
    ]


def test_asking_names_results_by_the_last_call_before() -> None:
    """A name of a call that was used again means the newer call; one that comes later means nothing yet."""
    asked = _asking(
        {"role": "user", "content": "q"},
        {"role": "tool", "tool_call_id": "c1", "content": "a"},
        {"role": "assistant", "tool_calls": [_call("c1", "gate", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "b"},
        {"role": "assistant", "tool_calls": [_call("c1", "log", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "c"},
    )
    said = [turn.text for turn in asked.history if turn.speaker == TOOL]
    assert said == ["c1 returned: a", "gate returned: b", "log returned: c"]


def test_asking_reads_each_message_a_few_times_only() -> None:
    """However many messages there are, none is looked through again for each of the others."""

    class Counted(tuple[Message, ...]):
        __slots__ = ()
        looked = 0

        def __getitem__(self, place: Any) -> Any:
            found = super().__getitem__(place)
            Counted.looked += len(found) if isinstance(place, slice) else 1
            return found

    messages = Counted([Message(role="user", content="q"), *[Message(role="tool", content="x")] * 1000])
    assert len(asking(messages).history) == 1000
    assert Counted.looked < 5 * len(messages)


def test_asking_leaves_empty_answers_out() -> None:
    """An answer without text, as when nothing was found, is no turn."""
    asked = _asking(
        {"role": "user", "content": "a"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "b"}
    )
    assert [turn.text for turn in asked.history] == ["a"]


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([], "messages"),
        ([{"role": "system", "content": "x"}], "messages"),
        ([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "messages"),
        ([{"role": "user", "content": 3}], "messages[0].content"),
        (
            [
                {"role": "user", "content": "x"},
                {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {}}]},
            ],
            "messages[1].content[1]",
        ),
    ],
)
def test_asking_names_what_it_cannot_read(messages: list[dict[str, Any]], field: str) -> None:
    """No question, an answer to be continued, or something that is no text."""
    with pytest.raises(InvalidRequest) as refused:
        _asking(*messages)
    assert refused.value.field == field
