"""Whether what a model wrote can be used: small models explain, refuse, repeat themselves and make things up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.conversation.terms import VALUES, read
from retrieval.conversation.topic import own_keys
from retrieval.speech import Turn

LONGEST_QUESTION = 512
"""Code points of a rewritten question at most."""

_CHARS_A_TOKEN = 10  # at most, in prose; more is no summary
_LEAST_SHARED = 0.5
_QUOTES = "\"'`“”„«» "
_LABEL = re.compile(
    r"^(?:the )?(?:(?:rewritten|standalone|stand-alone|self-contained) )?(?:question|query|rewrite|summary)\s*:\s*",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"^(?:sure|certainly|of course|okay|here(?:'s| is| are)|i (?:cannot|can't|can not|apologi[sz]e)|"
    r"i(?:'m| am) (?:sorry|unable|not able)|sorry|as an ai|as a language model|unfortunately)\b",
    re.IGNORECASE,
)


def usable_question(written: str, question: str, turns: Sequence[Turn]) -> str:
    """Returns the question that a model wrote, without label and quotes; empty when it is not to be trusted.

    It is one line, no refusal, and made of the conversation: at least half of its content words and all its figures
    stand in the question or in the turns, and it keeps what the question itself brings.
    """
    text = _plain(written)
    if "\n" in text or not 0 < len(text) <= LONGEST_QUESTION or _CHATTER.match(text):
        return ""
    terms, asked = read(text).terms, read(question).terms
    known = {term.key for term in asked} | own_keys(turns)
    made_up = [term for term in terms if term.key not in known]
    if not terms or len(made_up) > _LEAST_SHARED * len(terms) or any(term.token.kind in VALUES for term in made_up):
        return ""
    telling = {term.key for term in asked if not term.is_ordinary}
    return text if not telling or telling & {term.key for term in terms} else ""


def usable_summary(written: str, summary_tokens: int) -> str:
    """Returns the summary that a model wrote as one paragraph; empty when it is none or far too long."""
    text = " ".join(_plain(written).split())
    return text if len(text) <= summary_tokens * _CHARS_A_TOKEN and not _CHATTER.match(text) else ""


def _plain(written: str) -> str:
    return _LABEL.sub("", written.strip().strip(_QUOTES)).strip(_QUOTES)
