"""The body of a chat completion, as OpenAI's API has it, with our own parameters under `headrace`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from retrieval.errors import InvalidRequest
from retrieval.server.convert.conversations import MAX_TURNS
from retrieval.server.http.bodies import Body, Count, refuse_unhonoured

MAX_MESSAGES = 1000
"""Of a chat, instructions included; what is beyond is not even read."""

MAX_TOOLS = 1000
"""That may be offered to the model."""

UNHONOURED: Mapping[str, Sequence[JsonValue]] = {
    "n": (1,),
    "top_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "seed": (),
    "stop": ([],),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "reasoning_effort": (),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "functions": ([],),
    "function_call": (),
    "web_search_options": (),
    "store": (False,),
}
_INSTRUCTING = ("system", "developer")


class Function(Body):
    """A function that was called."""

    name: str
    arguments: str


class Called(Body):
    """A call that the model made earlier."""

    id: str = ""
    index: int | None = None
    type: Literal["function"] = "function"
    function: Function


class Message(Body):
    """A message of the conversation; the last fields come back from earlier answers, and say nothing here."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: JsonValue = None
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[Called, ...] | None = None
    refusal: JsonValue = None
    audio: JsonValue = None
    annotations: JsonValue = None
    function_call: JsonValue = None
    reasoning: JsonValue = None
    reasoning_content: JsonValue = None


class StreamOptions(Body):
    """What a stream holds besides the answer."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class CacheControlBody(Body):
    """What the caches may do for the request."""

    no_cache: bool = False
    no_store: bool = False
    only_if_cached: bool = False
    max_age_s: float | None = None


class Extensions(Body):
    """Our own parameters: what shapes the retrieval, the caches and the queue."""

    top_k: Count | None = None
    filter: str | None = None  # in the text form
    mode: Literal["hybrid", "dense", "sparse"] | None = None
    fusion: Literal["convex", "rrf"] | None = None
    dense_weight: float | None = None
    candidates: Count | None = None
    rerank: bool | None = None
    rerank_depth: Count | None = None
    min_score: float | None = None
    context_tokens: Count | None = None
    cache: bool | None = None
    cache_control: CacheControlBody = CacheControlBody()
    priority: Literal["interactive", "batch"] | None = None
    max_cost: float = 0.0
    session: str = ""


class ChatBody(Body):
    """A chat completion that is asked for."""

    model: str  # a collection, or `collection@backend`
    messages: Annotated[tuple[Message, ...], Field(max_length=MAX_MESSAGES)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    temperature: float | None = None
    tools: Annotated[list[JsonValue], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: JsonValue = None
    headrace: Extensions = Extensions()
    # These name the conversation, the first that is there:
    metadata: dict[str, str] | None = None  # its `session`
    prompt_cache_key: str | None = None
    user: str | None = None
    # These shape nothing that is answered here:
    safety_identifier: str | None = None
    service_tier: JsonValue = None
    parallel_tool_calls: bool | None = None
    # These have to be at their defaults:
    n: JsonValue = None
    top_p: JsonValue = None
    presence_penalty: JsonValue = None
    frequency_penalty: JsonValue = None
    seed: JsonValue = None
    stop: JsonValue = None
    logprobs: JsonValue = None
    top_logprobs: JsonValue = None
    logit_bias: JsonValue = None
    response_format: JsonValue = None
    reasoning_effort: JsonValue = None
    modalities: JsonValue = None
    audio: JsonValue = None
    prediction: JsonValue = None
    functions: JsonValue = None
    function_call: JsonValue = None
    web_search_options: JsonValue = None
    store: JsonValue = None

    @property
    def session(self) -> str:
        """The conversation's name; empty when it has none."""
        named = (self.metadata or {}).get("session", "")
        return self.headrace.session or named or self.prompt_cache_key or self.user or ""

    @property
    def output_tokens(self) -> int | None:
        """The most tokens of output; None for the configured default."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return bool(self.stream_options and self.stream_options.include_usage)


def check_chat(body: ChatBody) -> None:
    """Lets a body pass whose every parameter is honoured.

    Raises:
        InvalidRequest: names the one that is not.
    """
    refuse_unhonoured(body, UNHONOURED)
    if body.max_tokens is not None and body.max_completion_tokens not in (None, body.max_tokens):
        text = "max_tokens and max_completion_tokens differ; send one of them"
        raise InvalidRequest("max_tokens", "one of the two", text)
    if body.tool_choice is not None and not body.tools:
        text = "tool_choice chooses among tools, and there are none; send tools, or leave it out"
        raise InvalidRequest("tool_choice", "absent without tools", text)
    turns = sum(message.role not in _INSTRUCTING for message in body.messages) - 1
    if turns > MAX_TURNS:
        bound = f"at most {MAX_TURNS} turns before the question"
        raise InvalidRequest(
            "messages", bound, f"messages have {turns} turns before the question; leave the oldest out"
        )
