"""The settings of one generation backend: what it is, where it stands, what it takes and what it costs."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from retrieval.settings.base import NAME, Section

AUTO = "auto"
"""The backend's name in requests that leave the choice to the router."""

Tier = Literal["edge", "regional", "central", "private"]
_COMPLETIONS = "/chat/completions"


class BackendSettings(Section):
    """One generation backend."""

    name: str = Field(pattern=NAME)
    """What requests call it; `auto` is taken, it means the router's choice."""

    kind: Literal["extractive", "openai", "llama"]
    """`extractive`: the best sentences, cited, without a model. `openai`: any OpenAI-compatible server. `llama`: a
    GGUF model, run by llama.cpp in a process of its own (extra `llama`)."""

    base_url: str = ""
    """The server's address, up to and including `/v1`."""

    replicas: tuple[str, ...] = ()
    """More servers of the same model; requests of one session go to the same one while it can take them."""

    model: str = ""
    """The model's name on the server. For `llama`: the path of a GGUF file, a Hugging Face id, or a name that
    `headrace models pull` knows, such as `smollm2`."""

    file: str = ""
    """For `llama` with a Hugging Face id: the GGUF file in the repository; empty takes the only one."""

    threads: int = Field(default=1, ge=1, le=256)
    """For `llama`: threads that compute. More than one on a busy machine spin against each other."""

    api_key: SecretStr = SecretStr("")
    """The server's API key; empty sends none that means anything."""

    tls_ca_file: str = ""
    """Certificates that are trusted, as PEM; empty for those of the system."""

    tier: Tier = "central"
    """Where it stands: `edge`, `regional`, `central`, or `private` for one that nobody else can see into."""

    region: str = Field(default="", max_length=64)
    """The region it stands in, for rules; empty for none."""

    context_window_tokens: int = Field(default=8192, ge=256, le=10_000_000)
    """Tokens of prompt and answer together that the model takes."""

    tokenizer: str = ""
    """Path of the model's tokenizer.json; empty takes `context.tokenizer`."""

    input_price: float = Field(default=0.0, ge=0.0, le=1e6)
    """Price of a million prompt tokens, in any currency, the same for all backends."""

    cached_input_price: float = Field(default=0.0, ge=0.0, le=1e6)
    """Price of a million prompt tokens that the server had cached; 0 counts them as any other."""

    output_price: float = Field(default=0.0, ge=0.0, le=1e6)
    """Price of a million output tokens."""

    capability: float = Field(default=0.5, ge=0.0, le=1.0)
    """How hard a question it may get, on the scale of the router's complexity, where 1 is the hardest."""

    max_concurrent: int = Field(default=64, ge=1, le=100_000)
    """Requests that each of its servers gets at once at most; fewer while its latency says that it is full."""

    max_queued: int = Field(default=64, ge=0, le=100_000)
    """Requests that may wait for each of its servers; beyond that they are refused at once."""

    first_token_timeout_s: float = Field(default=30.0, gt=0.0, le=3600.0)
    """How long the first token may take."""

    token_timeout_s: float = Field(default=10.0, gt=0.0, le=3600.0)
    """How long any later token may take; a stream that is silent for longer has failed."""

    retries: int = Field(default=1, ge=0, le=5)
    """How often a request is sent to it again when it failed before the first token."""

    order: Literal["prefix", "relevance"] = "relevance"
    """The order of the passages: `prefix` puts those first that its server is likely to have cached, and tells the
    model their relevance besides; it falls back to `relevance` by itself while that does not pay."""

    prefix_cache_tokens: int = Field(default=65_536, ge=256, le=1_000_000_000)
    """Tokens of prompts that each of its servers keeps cached, about."""

    warm_up: bool = False
    """Whether the system prompt is sent to it at the start, so that it is cached when the first question comes."""

    @field_validator("name")
    @classmethod
    def _not_auto(cls, name: str) -> str:
        if name == AUTO:
            raise ValueError(f"{AUTO!r} means the router's choice; give the backend another name")
        return name

    @model_validator(mode="after")
    def _has_address(self) -> BackendSettings:
        if self.kind == "openai" and not (self.base_url and self.model):
            raise ValueError("a backend of kind openai needs base_url and model")
        if self.kind == "llama" and not self.model:
            raise ValueError("a backend of kind llama needs a model")
        if self.kind != "openai" and (self.base_url or self.replicas):
            raise ValueError(f"a backend of kind {self.kind} has no base_url and no replicas")
        if len({url.rstrip("/") for url in (self.base_url, *self.replicas)}) != 1 + len(self.replicas):
            raise ValueError("two of its addresses are the same")
        return self

    @field_validator("base_url", "replicas")
    @classmethod
    def _are_addresses(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        urls = value if isinstance(value, tuple) else (value,) if value else ()
        if fault := next(filter(None, map(_address_fault, urls)), ""):
            raise ValueError(fault)
        return value

    @field_validator("api_key")
    @classmethod
    def _is_one_line(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value().isprintable():
            raise ValueError("holds a control character, such as the end of a line; leave it out")
        return value


def _address_fault(url: str) -> str:
    """Returns what is wrong with a server's address, not the address, which may hold a secret; empty for nothing."""
    if any(letter.isspace() or not letter.isprintable() for letter in url):
        return "holds a space or a control character"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        return "is no address of an HTTP server; write it like http://127.0.0.1:8000/v1"
    if parts.path.rstrip("/").endswith(_COMPLETIONS):
        return f"ends in {_COMPLETIONS}, which is added to it; write it up to and including /v1"
    return ""
