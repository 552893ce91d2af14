"""Turns of a conversation in few words."""

from __future__ import annotations

from retrieval.speech import Speaker, Turn


def user(text: str) -> Turn:
    """Returns what a user said."""
    return Turn(Speaker.USER, text)


def assistant(text: str) -> Turn:
    """Returns what the assistant said."""
    return Turn(Speaker.ASSISTANT, text)


def tool(text: str) -> Turn:
    """Returns what a tool gave."""
    return Turn(Speaker.TOOL, text)
