"""A prompt as chat messages, byte for byte the same for the same prompt.

Instructions first, then sources, then the question: what is most often shared stands first, where a model server's
prefix cache can find it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from retrieval.assembly.template import user_message
from retrieval.types import Prompt


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation."""

    role: Literal["system", "user"]
    content: str


def chat_messages(prompt: Prompt) -> tuple[ChatMessage, ChatMessage]:
    """Returns the system's turn, then the user's."""
    return (
        ChatMessage("system", prompt.instructions),
        ChatMessage("user", user_message(prompt.sources.text, prompt.question)),
    )
