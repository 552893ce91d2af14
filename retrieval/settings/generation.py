"""The settings of generation: the backends, how one is chosen, how requests queue, what happens when one fails."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from retrieval.settings.base import Section, live

AUTO = "auto"
"""The backend's name in requests that leave the choice to the router."""

Tier = Literal["edge", "regional", "central", "private"]


class BackendSettings(Section):
    """One generation backend."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
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
        if len({self.base_url, *self.replicas}) != 1 + len(self.replicas):
            raise ValueError("two of its addresses are the same")
        return self


class RouteRule(Section):
    """A hard constraint. All rules that apply to a request hold at once, whatever the load and whatever fails."""

    name: str = Field(min_length=1, max_length=64)
    """What ledgers call it."""

    tenants: tuple[str, ...] = ()
    """The tenants that it applies to; empty for all."""

    collections: tuple[str, ...] = ()
    """The collections that it applies to; empty for all."""

    data_policies: tuple[str, ...] = ()
    """The data policies of keys that it applies to; empty for all."""

    field: str = ""
    """A metadata field. With it the rule applies when a passage of the context has one of the values, and to every
    conversation, since nobody knows what its earlier turns were made from."""

    values: tuple[str, ...] = ()
    """The field's values, as text; empty for any value."""

    backends: tuple[str, ...] = ()
    """The backends that may answer; empty for all."""

    tiers: tuple[Tier, ...] = ()
    """The tiers that may answer; empty for all."""

    regions: tuple[str, ...] = ()
    """The regions that may answer; empty for all."""

    @model_validator(mode="after")
    def _restricts(self) -> RouteRule:
        if not (self.backends or self.tiers or self.regions):
            raise ValueError("a rule needs backends, tiers or regions; without them it forbids nothing")
        if self.values and not self.field:
            raise ValueError("values need a field")
        return self


class RoutingSettings(Section):
    """How the router chooses among the backends that the rules allow: the least weighted sum wins."""

    rules: tuple[RouteRule, ...] = live(())
    """Hard constraints."""

    latency_weight: float = live(1.0, ge=0.0, le=1000.0)
    """Weight of a second of predicted time, from queueing to the last token."""

    cost_weight: float = live(100.0, ge=0.0, le=1e6)
    """Weight of a unit of predicted price."""

    capability_weight: float = live(20.0, ge=0.0, le=1e6)
    """Weight of what the question's complexity is above the backend's capability."""

    max_cost: float = live(0.0, ge=0.0, le=1e6)
    """The most that a routed request may be predicted to cost; 0 for no ceiling."""

    expected_output_tokens: int = live(160, ge=1, le=1_000_000)
    """Tokens of an answer as predicted, until a backend has answered often enough to tell."""


class TenantWeight(Section):
    """A tenant's share of a server while requests wait."""

    tenant: str = Field(min_length=1, max_length=64)
    """The tenant."""

    weight: float = Field(gt=0.0, le=1000.0)
    """Its share; that of a tenant that is not named is 1."""


class QueueSettings(Section):
    """How requests wait for a backend's server. Each has a limit of its own, which follows its latency."""

    max_wait_ms: int = live(2000, ge=0, le=600_000)
    """How long a request may wait; one that would wait longer is refused at once."""

    initial_concurrent: int = Field(default=8, ge=1, le=100_000)
    """The limit of a server that nothing is known of yet."""

    latency_tolerance: float = live(2.0, gt=1.0, le=100.0)
    """How many times its time to first token when idle a server may take before its limit is lowered."""

    tenants: tuple[TenantWeight, ...] = live(())
    """Tenants whose share of a server is not that of the others while requests wait."""


class ResilienceSettings(Section):
    """What happens when a backend fails. Nothing is ever sent again once a part of the answer has gone out."""

    retry_share: float = live(0.1, ge=0.0, le=1.0)
    """Retries and fallbacks as a share of requests at most; what is above fails at once, so that a backend that is down
    is not asked twice as often."""

    backoff_ms: int = live(100, ge=1, le=60_000)
    """The pause before the first retry, give or take half of it; each further one doubles."""

    failures_to_open: int = live(5, ge=1, le=1000)
    """Failures in a row after which a server gets nothing more."""

    open_ms: int = live(5000, ge=10, le=600_000)
    """How long it then gets nothing; a single request tries it afterwards, and each failure doubles the time."""

    eject_error_share: float = live(0.5, gt=0.0, le=1.0)
    """Share of its last requests that must have failed for a server to be left out while others can answer."""

    hedge: bool = live(False)
    """Whether a second server or backend is asked when the first has sent nothing for `hedge_quantile` of the usual
    time to first token; who sends first answers, the other is cancelled."""

    hedge_quantile: float = live(0.95, ge=0.5, le=0.999)
    """The quantile of the live time to first token after which a second one is asked."""

    hedge_share: float = live(0.05, ge=0.0, le=0.5)
    """Second requests as a share of all at most."""


class ConversationSettings(Section):
    """What becomes of the earlier turns of a conversation."""

    rewrite: Literal["rules", "model", "off"] = live("rules")
    """How a follow-up question is made self-contained for retrieval; `model` asks `rewrite_backend` when the rules say
    that it leans on what came before, and takes the rules' words when that fails."""

    rewrite_backend: str = live("")
    """The backend that rewrites; empty lets the router choose."""

    rewrite_timeout_ms: int = live(1500, ge=10, le=60_000)
    """How long rewriting by a model may take."""

    history_tokens: int = live(800, ge=0, le=1_000_000)
    """Tokens of earlier turns in a prompt at most, as the model counts them; the oldest are left out first."""

    summarise: bool = live(False)
    """Whether turns that were left out are summarised by a model, beside the request, for the turns to come."""

    summary_tokens: int = live(160, ge=16, le=10_000)
    """Tokens of such a summary at most."""


class GenerationSettings(Section):
    """How answers are made."""

    timeout_ms: int = live(120_000, ge=1, le=3_600_000)
    """The longest that Generate may take; a caller's shorter deadline holds instead."""

    default_backend: str = live("extractive")
    """The backend of requests that name none; `auto` lets the router choose."""

    backends: tuple[BackendSettings, ...] = (BackendSettings(name="extractive", kind="extractive"),)
    """The backends."""

    max_output_tokens: int = live(512, ge=1, le=1_000_000)
    """Tokens of output at most, unless a request says otherwise."""

    temperature: float = live(0.0, ge=0.0, le=2.0)
    """Sampling temperature, unless a request says otherwise."""

    extractive_sentences: int = live(3, ge=1, le=20)
    """Sentences of an extractive answer at most."""

    instructions: str = live(
        "Answer the question from the numbered sources only. Cite each statement with its source's number in square "
        "brackets, like [1]. If the sources do not hold the answer, say so.",
        min_length=1,
        max_length=20_000,
    )
    """The system prompt."""

    routing: RoutingSettings = RoutingSettings()
    """How a backend is chosen."""

    queue: QueueSettings = QueueSettings()
    """How requests wait for it."""

    resilience: ResilienceSettings = ResilienceSettings()
    """What happens when it fails."""

    conversation: ConversationSettings = ConversationSettings()
    """What becomes of earlier turns."""

    @model_validator(mode="after")
    def _names_exist(self) -> GenerationSettings:
        names = [backend.name for backend in self.backends]
        if len(set(names)) != len(names):
            raise ValueError("two backends have the same name")
        if self.default_backend not in (AUTO, *names):
            raise ValueError(f"default_backend {self.default_backend!r} is none of {', '.join((AUTO, *names))}")
        if self.conversation.rewrite_backend not in ("", AUTO, *names):
            raise ValueError(f"conversation.rewrite_backend is none of {', '.join((AUTO, *names))}")
        for rule in self.routing.rules:
            if unknown := sorted(set(rule.backends) - set(names)):
                raise ValueError(f"rule {rule.name!r} names backends that do not exist: {', '.join(unknown)}")
        return self
