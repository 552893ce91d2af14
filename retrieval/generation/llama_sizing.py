"""Sizes the process of an embedded model by what its weights say, and by this machine's memory."""

from __future__ import annotations

import os
from pathlib import Path

from encoders.gguf import GgufMetadata
from retrieval.generation.llama_launch import Launch
from retrieval.settings.generation import BackendSettings

_MIB = 1 << 20
# Slots share the threads, so more of them give no more tokens a second; they let a short answer begin beside a long
# one. Their memory is taken at the start, used or not.
_MOST_SLOTS = 4
_SLOTS_BYTES = 1 << 29
_CACHE_SHARE = 4  # of the machine's memory, one part in so many at most
_UNKNOWN_TOKEN_BYTES = 128 << 10  # of keys and values: a model of 8 billion weights
_NICENESS = 5  # retrieval, which takes milliseconds, goes first


def launch_of(settings: BackendSettings, label: str, weights: Path, metadata: GgufMetadata) -> Launch:
    """Sizes the process: as many answers at once as half a gibibyte of their tokens holds, four at most, one at least.

    Prompts are kept for `prefix_cache_tokens`, in a quarter of the machine's memory at most.
    """
    slot_tokens = min(settings.context_window_tokens, metadata.context_tokens or settings.context_window_tokens)
    token_bytes = metadata.cache_bytes_per_token or _UNKNOWN_TOKEN_BYTES
    fitting = _SLOTS_BYTES // (slot_tokens * token_bytes)
    cache_bytes = min(settings.prefix_cache_tokens * token_bytes, _memory_bytes() // _CACHE_SHARE)
    return Launch(
        weights=str(weights.resolve()),
        label=label,
        api_key="",
        slots=max(1, min(settings.max_concurrent, _MOST_SLOTS, fitting)),
        slot_tokens=slot_tokens,
        threads=settings.threads,
        cache_mib=max(1, cache_bytes // _MIB),
        niceness=_NICENESS,
    )


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
