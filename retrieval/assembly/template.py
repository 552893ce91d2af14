"""Every character of a prompt that is not a passage, a question or an instruction.

They live in one file and never depend on anything but the passage, so that equal contexts are equal byte for byte: a
model server's prefix cache matches on nothing less. What is shared most stands first for the same reason: the sources,
which other people's questions find too, then the conversation, which is one person's, and the question last.

Marks and headings stand at the beginning of a line. Nothing in a passage does that looks like one: such a line is set
in, so that no passage can pose as another source or as the question. Only the prompt has it so; a citation's passage
stays the exact span of its document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from indexers.types import Passage

TEMPLATE = 3
"""Raised with every change of what stands here, since answers to other prompts are other answers."""

BLOCK_SEPARATOR = "\n\n"
TRAIL_SEPARATOR = " > "
USER_PREFIX = "Sources:\n\n"
CONVERSATION_PREFIX = "Conversation so far:\n\n"
QUESTION_PREFIX = "Question: "

CHAT_TEMPLATE_MARGIN_TOKENS = 64
"""Tokens kept free for what a chat template puts around two messages, and for what joining them may add."""

_LONGEST_TRAIL = 240  # code points; a title is there to place a passage, not to crowd it out

_INDENT = "    "
_OTHER_LINE_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_UNSEEN = "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]*"
_SPACE = "[ \u00a0\u2000-\u200a\u3000]"
# A mark, or a heading: of the parts below, or of the ranking. What is set in by four spaces already is left alone.
_STRUCTURE = (
    rf"(?={_UNSEEN}(?:{_SPACE}{_UNSEEN}){{0,3}}"
    rf"(?:[\[\uff3b\u3010]{_SPACE}*\d"
    rf"|(?i:sources|conversation so far|most relevant first|question){_SPACE}*[:\uff1a]))"
)
_AFTER_LINE_FEED = re.compile("\n" + _STRUCTURE)  # begins with a plain character, which makes it quick
_AFTER_ANY_END = re.compile(f"([\n{_OTHER_LINE_ENDS}])" + _STRUCTURE)


def source_block(number: int, passage: Passage) -> str:
    """Returns a passage as the model sees it: its citation mark, where it stands, its text."""
    return f"{source_mark(number)} {source_trail(passage)}".rstrip() + _set_in(f"\n{passage.text.strip()}")


def sources_text(sources: Iterable[tuple[int, Passage]]) -> str:
    """Returns passages, each with the number in its mark, as one text."""
    return BLOCK_SEPARATOR.join(source_block(number, passage) for number, passage in sources)


def source_mark(number: int) -> str:
    """Returns the citation mark of a source."""
    return f"[{number}]"


def source_trail(passage: Passage) -> str:
    """Returns title and headings in one line, none repeated in a row, none longer than is useful.

    It is the header that was embedded, where the passage has one.
    """
    if passage.header:
        return passage.header
    steps: list[str] = []
    for part in (passage.title, *passage.heading_path):
        step = " ".join(part.split())
        if step and (not steps or step != steps[-1]):
            steps.append(step)
    trail = TRAIL_SEPARATOR.join(steps)
    return trail if len(trail) <= _LONGEST_TRAIL else trail[: _LONGEST_TRAIL - 1] + "…"


def user_message(sources: str, question: str, conversation: str = "", ranking: str = "") -> str:
    """Returns the text of the user's turn: the sources, the conversation so far, the ranking of sources, the question.

    Without sources and conversation it is the question alone.
    """
    if not (sources or conversation):
        return question
    parts = (
        USER_PREFIX + sources if sources else "",
        CONVERSATION_PREFIX + conversation if conversation else "",
        ranking,
        QUESTION_PREFIX + question,
    )
    return BLOCK_SEPARATOR.join(part for part in parts if part)


def _set_in(text: str) -> str:
    """Returns the text with all lines set in that could be taken for a part of a prompt."""
    if any(end in text for end in _OTHER_LINE_ENDS):
        return _AFTER_ANY_END.sub(rf"\1{_INDENT}", text)
    return _AFTER_LINE_FEED.sub(f"\n{_INDENT}", text)
