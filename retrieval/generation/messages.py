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
from retrieval.speech import Conversation, Speaker
from retrieval.types import Prompt

_SUMMARY = "(Earlier: {})"
# What follows the bracket in the tokens with which chat templates end a turn or begin another, and in those for images
# and padding: of ChatML, Llama, Mistral, Gemma, Phi, DeepSeek, Command R, EXAONE, GLM, T5, Granite and StarCoder. Some
# have full-width letters.
_ANGLED = (
    r"[|\uff5c]|</?SYS>>|/?(?:(?-i:[A-Z][A-Z_]*_TOKEN)|s|[bes]o[sp]|[be]o[tm]|[be]od|pad|unk|cls|sep|mask"
    r"|(?:bos|eos|pad|unk|cls|sep|mask|image_soft)_token|(?:start|end)_of_(?:turn|image|audio|text)|end_of_utterance"
    r"|extra_id_\d+|reserved_\w+|unused_?\d+|fim_\w+)[>\uff1e]"
)
_SQUARE = (
    r"[|\uff5c]/?\w+[|\uff5c][\]\uff3d]|/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|SYSTEM_PROMPT"
    r"|MODEL_SETTINGS|ARGS|CALL_ID|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|[gs]?MASK|control_\d+)[\]\uff3d]"
)
# What marks thoughts and calls of functions. It gives nobody another voice.
_ANGLED_PARTS = r"/?(?:think|(?:\w+:)?tool_(?:call|response)s?|function_calls?|arg_(?:key|value))[>\uff1e]"
_SQUARE_PARTS = r"/?THINK[\]\uff3d]"


def _openings(angled: str, square: str) -> re.Pattern[str]:
    """Compiles what finds the bracket that one of the texts follows. One set of characters first makes it quick."""
    either = rf"(?<=[<\uff1c])(?={angled})|(?<=[\[\uff3b])(?={square})"
    return re.compile(rf"[<\[\uff1c\uff3b](?i:{either})")


_CONTROL_IN_INSTRUCTIONS = _openings(_ANGLED, _SQUARE)
_CONTROL = _openings(f"{_ANGLED}|{_ANGLED_PARTS}", f"{_SQUARE}|{_SQUARE_PARTS}")
_NAMES = {Speaker.USER: "User", Speaker.ASSISTANT: "Assistant", Speaker.TOOL: "Tool"}


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation."""

    role: Literal["system", "user"]
    content: str


def chat_messages(prompt: Prompt) -> tuple[ChatMessage, ChatMessage]:
    """Returns the system's turn, then the user's, each without what could end it before its end.

    Instructions come from the operator and from the app together, and not all who write for an app are to be trusted.
    Tokens of turns have no business in them. Marks of thoughts and of calls have: the instructions that some models
    come with show them how to write those.
    """
    conversation = conversation_text(prompt.conversation)
    asked = user_message(prompt.sources.text, prompt.question, conversation, prompt.sources.ranking)
    instructions = _broken_up(_CONTROL_IN_INSTRUCTIONS, prompt.instructions)
    return ChatMessage("system", instructions), ChatMessage("user", _broken_up(_CONTROL, asked))


def conversation_text(conversation: Conversation) -> str:
    """Returns the earlier turns as a model reads them; empty when there are none.

    Citation marks are taken out of them, since their numbers stand for sources of another prompt.
    """
    lines = [_SUMMARY.format(conversation.summary)] if conversation.summary else []
    lines += [f"{_NAMES[turn.speaker]}: {_without_marks(turn.text)}" for turn in conversation.turns]
    return "\n".join(lines)


def _broken_up(control: re.Pattern[str], text: str) -> str:
    """Returns the text with a space in whatever a chat template might take for one of its own tokens.

    Model servers read such tokens where they are spelt out, so a passage could else end the user's turn and speak as
    the system.
    """
    return control.sub(r"\g<0> ", text)


@lru_cache(maxsize=512)
def _without_marks(text: str) -> str:
    if "[" not in text:
        return text
    parser = CitationParser(())
    settled = parser.feed(text)
    return settled + parser.finish()[0]
