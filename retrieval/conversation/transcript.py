"""A conversation as a model reads it that rewrites or sums up: one line a turn, none longer than is useful."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.speech import Speaker, Turn

_NAMES = {Speaker.USER: "User", Speaker.ASSISTANT: "Assistant", Speaker.TOOL: "Tool"}
_CUT = " …"


def transcript(turns: Sequence[Turn], longest_turn: int) -> str:
    """Returns the turns, oldest first, white space levelled; `longest_turn` is in code points."""
    return "\n".join(f"{_NAMES[turn.speaker]}: {_shortened(turn.text, longest_turn)}" for turn in turns)


def _shortened(text: str, longest: int) -> str:
    if len(text) > longest:
        text = text[:longest].rpartition(" ")[0] + _CUT
    return " ".join(text.split())
