"""The root of the settings tree."""

from __future__ import annotations

from retrieval.settings.base import Section
from retrieval.settings.caching import CacheSettings
from retrieval.settings.engines import ChunkingSettings, EncodersSettings, IndexSettings, RerankSettings
from retrieval.settings.generation import GenerationSettings
from retrieval.settings.http import HttpSettings
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

    log: LogSettings = LogSettings()
    """The log."""
