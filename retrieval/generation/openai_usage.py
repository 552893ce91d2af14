"""What servers count of a chat completion. An answer is whole whatever its server counts, so nothing here fails."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

_MOST_TOKENS = (1 << 31) - 1


class EventPart(BaseModel):
    """A part of an event, of which what we do not know is left out."""

    model_config = ConfigDict(extra="ignore")


def _plausible(value: object) -> int:
    """Returns a count as it is, 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return 0
    return min(int(value), _MOST_TOKENS)


def _none_for_others(value: object) -> object:
    return value if isinstance(value, dict) else None


Count = Annotated[int, BeforeValidator(_plausible)]
Accounts = BeforeValidator(_none_for_others)
"""Makes what is no object be absent."""


class _PromptDetails(EventPart):
    cached_tokens: Count = 0


class EventUsage(EventPart):
    """Tokens, as the server counts them."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    prompt_tokens_details: Annotated[_PromptDetails | None, Accounts] = None


class EventTimings(EventPart):
    """What llama.cpp tells besides."""

    cache_n: Count = 0  # prompt tokens taken from its cache
