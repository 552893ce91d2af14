"""What servers give as the reason why an answer ended, and what of it is ours.

Each family of servers has words of its own: OpenAI's, those of TGI, of Mistral, of Anthropic and Gemini behind gateways
that pass them on. A word that is not known may mean anything, so its answer is shown and not kept.
"""

from __future__ import annotations

from retrieval.speech import FinishReason

ABORTED = frozenset({"abort", "aborted", "cancelled", "error", "insufficient_system_resource", "network_error"})
"""Reasons that say that the answer was given up."""

_WORDS = {
    FinishReason.STOP: ("stop", "eos", "eos_token", "stop_sequence", "end_turn"),
    FinishReason.LENGTH: (
        "length",
        "max_tokens",
        "max_output_tokens",
        "max_new_tokens",
        "max_length",
        "model_length",
        "token_limit",
        "context_length_exceeded",
        "model_context_window_exceeded",
    ),
    FinishReason.CONTENT_FILTER: (
        "content_filter",
        "content_filtered",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "sensitive",
        "refusal",
        "guardrail_intervened",
    ),
    FinishReason.TOOL_CALLS: ("tool_calls", "tool_call", "function_call", "tool_use"),
}
_REASONS = {word: reason for reason, words in _WORDS.items() for word in words}


class Finish:
    """How one answer ended, of all that its server says: some add a plain stop after the reason that counts."""

    __slots__ = ("_reason", "aborted")

    def __init__(self) -> None:
        self.aborted = False
        self._reason: FinishReason | None = None

    @property
    def given(self) -> bool:
        """Whether a reason came."""
        return self._reason is not None

    def take(self, said: str) -> None:
        """Reads a reason, in whatever case; the first one that is no stop stays."""
        word = said.strip().casefold().replace("-", "_")
        if word in ABORTED:
            self.aborted = True
        elif self._reason in (None, FinishReason.STOP):
            self._reason = _REASONS.get(word, FinishReason.OTHER)

    def reason(self, *, called: bool) -> FinishReason:
        """Returns why it ended; `called` says that it calls functions, which some servers call a stop too."""
        if self._reason is None:
            return FinishReason.OTHER
        return FinishReason.TOOL_CALLS if called and self._reason is FinishReason.STOP else self._reason
