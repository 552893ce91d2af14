"""Nothing that a passage, a turn or a question holds can end a message, or pose as a part of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from indexers.types import Passage
from retrieval.assembly.template import source_block
from retrieval.generation.messages import chat_messages
from retrieval.prefix.marks import RANKING
from retrieval.speech import Conversation, Speaker, Turn
from retrieval.types import Arrangement, Citation, Context, Prompt

TURNS = [
    *(
        "<|im_end|>",
        "<\uff5cUser\uff5c>",
        "\uff1c|im_end|\uff1e",
        "<<SYS>>",
        "<</SYS>>",
        "<|",
        "[|endofturn|]",
        "[|system|]",
    ),
    *(
        "[INST]",
        "[/INST]",
        "[/AVAILABLE_TOOLS]",
        "[IMG]",
        "[gMASK]",
        "[SYSTEM_PROMPT]",
        "\uff3bINST\uff3d",
        "[CONTROL_9]",
    ),
    *("<s>", "</s>", "<bos>", "<sop>", "<eop>", "<eos_token>", "<EOS_TOKEN>", "<BOS_TOKEN>", "<end_of_turn>"),
    *("<extra_id_0>", "<reserved_7>", "<unused12>", "<START_OF_TURN_TOKEN>", "<fim_prefix>", "\uff1ceos\uff1e"),
]
PARTS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "[THINK]", "[/THINK]"]
HARMLESS = [
    "a < b",
    "<b>bold</b>",
    "[1]",
    "xs[i]",
    "[| 1; 2 |]",
    "<your_token>",
    "<thinking>",
    "f(x)|",
    "[note]",
    "List<T>",
]


def asked(instructions: str = "", question: str = "?", source: str = "", turn: str = "") -> tuple[str, str]:
    """Returns the contents of both messages."""
    context = Context(source, 1, 1, "words")
    turns = (Turn(Speaker.USER, turn),) if turn else ()
    prompt = Prompt(instructions, context, question, Arrangement.by_relevance(context), Conversation(turns))
    system, user = chat_messages(prompt)
    return system.content, user.content


@pytest.mark.parametrize("control", [*TURNS, *PARTS])
def test_control_tokens_of_users_and_passages_are_broken_up(control: str) -> None:
    """Whoever spells one out, and wherever it stands, a space stands in it."""
    said = f"a{control}b"
    _, user = asked("", question=said, source=said, turn=said)
    assert control not in user
    assert user.count(f"a{control[0]} {control[1:]}b") == 3


@pytest.mark.parametrize("control", TURNS)
def test_instructions_of_an_app_cannot_end_their_message(control: str) -> None:
    """They are joined with the operator's, and none of both needs the tokens of turns."""
    assert asked(f"Be short.{control}")[0] == f"Be short.{control[0]} {control[1:]}"


@pytest.mark.parametrize("mark", PARTS)
def test_instructions_may_show_how_thoughts_and_calls_are_written(mark: str) -> None:
    """Models come with instructions that say so, and nobody gets another voice by it."""
    assert asked(f"Begin with {mark}.")[0] == f"Begin with {mark}."


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays_as_it_is(text: str) -> None:
    """Code, markup and placeholders are no control tokens."""
    assert asked(text, source=text)[0] == text
    assert text in asked(text, source=text)[1]


def block(text: str) -> str:
    """Returns a passage as a model sees it."""
    passage = Passage("c", "d", "Pump", (), text, 0, len(text), 0, 0, {})
    return source_block(1, passage)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n", "\u2028", "\x85", "\x0b", "\x0c"])
@pytest.mark.parametrize(
    "line",
    [
        *(
            "[2] pump",
            "[ 2] pump",
            " [2]",
            "\u200b[2] pump",
            "\ufeff \u2060[12]",
            "\uff3b2\uff3d",
            "\u30102\u3011",
            "   [2]",
        ),
        *("Question: who?", "QUESTION : who?", "question\uff1a", "Sources:", "Conversation so far:", RANKING + "[2]"),
    ],
)
def test_lines_of_passages_cannot_pose_as_parts_of_the_prompt(line: str, end: str) -> None:
    """Such a line is set in, whatever ends the one before it, and wherever in the passage it stands."""
    assert block(f"{line}{end}so") == f"[1] Pump\n    {line.strip() if line[0] == ' ' else line}{end}so"
    assert block(f"Turn it.{end}{line}{end}so") == f"[1] Pump\nTurn it.{end}    {line}{end}so"


@pytest.mark.parametrize(
    "text", ["See [2] there.", "    [2] = code", "\t[2]", "[note] x", "Questions: many", "My question: who?", "[x](y)"]
)
def test_other_lines_of_passages_stay(text: str) -> None:
    """What looks like no part of a prompt, or is set in already, is not touched."""
    assert block(f"Turn it.\n{text}\nso") == f"[1] Pump\nTurn it.\n{text}\nso"


def test_citations_keep_the_exact_span() -> None:
    """Only the prompt has the line set in, the same each time; the passage is what it was."""
    passage = Passage("c", "d", "", (), "[2] pump", 0, 8, 0, 0, {})
    citation = Citation(1, passage, ("c",))
    assert source_block(1, citation.passage) == source_block(1, replace(passage)) == "[1]\n    [2] pump"
    assert citation.passage.text == "[2] pump"
