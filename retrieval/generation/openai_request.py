"""A prompt as the body of a chat completion request, byte for byte the same for the same prompt."""

from __future__ import annotations

import hashlib
import json

from retrieval.generation.messages import chat_messages
from retrieval.speech import GenerationParams
from retrieval.types import Prompt

_AFFINITY_DIGEST_BYTES = 16


def request_body(model: str, prompt: Prompt, params: GenerationParams, *, openai: bool) -> bytes:
    """Returns the request as JSON.

    Two fields are for OpenAI's own servers alone, since others refuse what they do not know: `max_completion_tokens`,
    without which some of its models refuse a limit, and `prompt_cache_key`, the affinity as a digest, by which a fleet
    behind one address finds the machine that has read the prompt's beginning.
    """
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in chat_messages(prompt)],
        "max_completion_tokens" if openai else "max_tokens": params.max_output_tokens,
        "temperature": params.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.tools is not None:
        body["tools"] = json.loads(prompt.tools.definitions)
        if prompt.tools.choice:
            body["tool_choice"] = _choice(prompt.tools.choice)
    if openai and params.affinity:
        digest = hashlib.blake2b(params.affinity.encode("utf-8", "replace"), digest_size=_AFFINITY_DIGEST_BYTES)
        body["prompt_cache_key"] = digest.hexdigest()
    # Half of a surrogate pair has no UTF-8; a question mark for it spoils less than a refusal.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _choice(text: str) -> object:
    """Returns the choice as a value; its plain words (`auto`, `none`, `required`) may stand without quotes."""
    return json.loads(text) if text[:1] in '{"' else text
