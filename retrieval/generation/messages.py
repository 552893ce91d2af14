"""A prompt as chat messages, byte for byte the same for the same prompt.

Instructions first, then sources, then the conversation, then the question: what is most often shared stands first,
where a model server's prefix cache can find it again. Earlier turns stand in the user's message as text, after the
sources: turns of their own would have to stand before them, and nothing behind the first one would ever be shared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from retrieval.assembly.template import user_message
from retrieval.citations import CitationParser
from retrieval.types import Conversation, Prompt, Speaker

_SUMMARY = "(Earlier: {})"
# ChatML, Llama 2 and 3, Mistral, Gemma, Phi, DeepSeek (with full-width bars), and the ends of sequences of most.
_CONTROL = re.compile(
    r"<[|\uff5c]|<</?SYS>>|\[/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT)\]"
    r"|</?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn)>",
    re.IGNORECASE,
)
_NAMES = {Speaker.USER: "User", Speaker.ASSISTANT: "Assistant", Speaker.TOOL: "Tool"}


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation."""

    role: Literal["system", "user"]
    content: str


def chat_messages(prompt: Prompt) -> tuple[ChatMessage, ChatMessage]:
    """Returns the system's turn, then the user's."""
    conversation = conversation_text(prompt.conversation)
    asked = user_message(prompt.sources.text, prompt.question, conversation, prompt.sources.ranking)
    return ChatMessage("system", prompt.instructions), ChatMessage("user", _without_control(asked))


def conversation_text(conversation: Conversation) -> str:
    """Returns the earlier turns as a model reads them; empty when there are none.

    Citation marks are taken out of them, since their numbers stand for sources of another prompt.
    """
    lines = [_SUMMARY.format(conversation.summary)] if conversation.summary else []
    lines += [f"{_NAMES[turn.speaker]}: {_without_marks(turn.text)}" for turn in conversation.turns]
    return "\n".join(lines)


def _without_control(text: str) -> str:
    """Returns the text with a space in whatever a chat template might take for one of its own tokens.

    Model servers read such tokens where they are spelt out, so a passage could else end the user's turn and speak as
    the system.
    """
    return _CONTROL.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)


@lru_cache(maxsize=512)
def _without_marks(text: str) -> str:
    if "[" not in text:
        return text
    parser = CitationParser(())
    settled = parser.feed(text)
    return settled + parser.finish()[0]
