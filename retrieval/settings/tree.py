"""The root of the settings tree."""

from __future__ import annotations

from pydantic import model_validator

from retrieval.settings.agreement import policy_faults, port_faults, store_faults
from retrieval.settings.base import Section
from retrieval.settings.caching import CacheSettings
from retrieval.settings.engines import ChunkingSettings, EncodersSettings, IndexSettings, RerankSettings
from retrieval.settings.generation import GenerationSettings
from retrieval.settings.http import HttpSettings
from retrieval.settings.jobs import JobsSettings
from retrieval.settings.service import (
    AdmissionSettings,
    AuthSettings,
    ContextSettings,
    DataSettings,
    LogSettings,
    RetrievalSettings,
    ServerSettings,
)


class Settings(Section):
    """Every setting of Headrace, from `headrace.toml`, then `HEADRACE_*` variables, then flags."""

    server: ServerSettings = ServerSettings()
    """Where and how the server listens."""

    http: HttpSettings = HttpSettings()
    """The HTTP listener."""

    auth: AuthSettings = AuthSettings()
    """Who may call."""

    data: DataSettings = DataSettings()
    """Where data is kept."""

    encoders: EncodersSettings = EncodersSettings()
    """How texts are encoded."""

    chunking: ChunkingSettings = ChunkingSettings()
    """How documents are cut."""

    index: IndexSettings = IndexSettings()
    """Where vectors live and how they are searched."""

    admission: AdmissionSettings = AdmissionSettings()
    """How many requests run at once."""

    retrieval: RetrievalSettings = RetrievalSettings()
    """The request path from a question to hits."""

    rerank: RerankSettings = RerankSettings()
    """The quantized cross-encoder."""

    context: ContextSettings = ContextSettings()
    """How hits become a prompt."""

    generation: GenerationSettings = GenerationSettings()
    """How answers are made."""

    cache: CacheSettings = CacheSettings()
    """What was computed before, and when it may be used again."""

    jobs: JobsSettings = JobsSettings()
    """Indexing jobs."""

    log: LogSettings = LogSettings()
    """The log."""

    @model_validator(mode="after")
    def _agrees(self) -> Settings:
        ports = (
            ("server.port", self.server.port),
            ("http.port", self.http.port),
            ("server.metrics_port", self.server.metrics_port),
        )
        faults = [
            *port_faults(ports),
            *policy_faults(self.generation.routing.rules, self.auth.keys),
            *store_faults(self.jobs, self.cache.redis),
        ]
        if faults:
            raise ValueError("; ".join(faults))
        return self
