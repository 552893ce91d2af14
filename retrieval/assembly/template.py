"""Every character of a prompt that is not a passage, a question or an instruction.

They live in one file and never depend on anything but the passage, so that equal contexts are equal byte for byte: a
model server's prefix cache matches on nothing less. What is shared most stands first for the same reason: the sources,
which other people's questions find too, then the conversation, which is one person's, and the question last.
"""

from __future__ import annotations

from indexers.types import Passage

TEMPLATE = 2
"""Raised with every change of what stands here, since answers to other prompts are other answers."""

BLOCK_SEPARATOR = "\n\n"
TRAIL_SEPARATOR = " > "
USER_PREFIX = "Sources:\n\n"
CONVERSATION_PREFIX = "Conversation so far:\n\n"
QUESTION_PREFIX = "Question: "

CHAT_TEMPLATE_MARGIN_TOKENS = 64
"""Tokens kept free for what a chat template puts around two messages, and for what joining them may add."""

_LONGEST_TRAIL = 240  # code points; a title is there to place a passage, not to crowd it out


def source_block(number: int, passage: Passage) -> str:
    """Returns a passage as the model sees it: its citation mark, where it stands, its text."""
    return f"{source_mark(number)} {source_trail(passage)}".rstrip() + f"\n{passage.text.strip()}"


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
