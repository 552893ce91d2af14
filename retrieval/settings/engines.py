"""The settings of the engines: encoders, chunking, index and reranker."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, model_validator

from retrieval.settings.base import Section, live


class DenseSettings(Section):
    """The bi-encoder that turns queries and passages into vectors."""

    model: str = "bundled:minilm-l6"
    """`bundled:minilm-l6`, a local folder, or a Hugging Face id. Pooling, prompts and limits come from its files."""

    file: str = ""
    """The ONNX file inside the model's folder, as a relative path; empty takes the full-precision or the int8 one.
    Of both the one that is faster here and agrees with full precision is taken, once for a data folder and machine."""


class EncodersSettings(Section):
    """How texts are encoded."""

    dense: DenseSettings = DenseSettings()
    """The bi-encoder."""

    workers: int = Field(default=0, ge=0, le=256)
    """Threads that compute, one ONNX run each; 0 takes what the affinity mask and the cgroup quota allow."""

    queue_items: int = Field(default=4096, ge=16, le=1_000_000)
    """Texts and pairs that may wait; a call that would pass the bound is refused as a whole."""


class ChunkingSettings(Section):
    """How documents are cut. A change holds for documents indexed afterwards, and re-embeds those indexed again."""

    limit_tokens: int = Field(default=256, ge=32, le=8192)
    """Tokens of a chunk at most, with title and headings, as the bi-encoder counts them; capped by its own limit."""

    overlap_tokens: int = Field(default=32, ge=0, le=1024)
    """Tokens that two pieces of one long block share; at most a quarter of the limit is used."""


class QdrantSettings(Section):
    """The Qdrant server, when `index.kind` is `qdrant`."""

    url: str = Field(default="http://127.0.0.1:6334", pattern=r"^https?://[^/:@\s]+(:\d{1,5})?$")
    """Its gRPC address, as `http://HOST:PORT` or `https://HOST:PORT`."""

    api_key: SecretStr = SecretStr("")
    """Its API key; empty sends none."""

    timeout_ms: int = Field(default=5000, ge=10, le=600_000)
    """Time of one call in all, whatever its phases."""


class IndexSettings(Section):
    """Where vectors live and how they are searched."""

    kind: Literal["edge", "exact", "qdrant"] = "edge"
    """`edge`: Qdrant Edge in this process. `exact`: brute force in NumPy, the oracle. `qdrant`: a Qdrant server."""

    build_after_chunks: int = Field(default=16_384, ge=64, le=10_000_000)
    """Chunks written or removed since the last generation before a new one is built; a tenth of all if that is more."""

    hnsw_m: int = Field(default=16, ge=4, le=128)
    """Links of a node in the HNSW graph."""

    hnsw_ef_construct: int = Field(default=128, ge=16, le=2048)
    """Candidates that are looked at for each node while the graph is built."""

    hnsw_ef: int = Field(default=128, ge=16, le=4096)
    """Candidates that a search looks at; more is slower and finds more."""

    max_collections: int = Field(default=256, ge=1, le=100_000)
    """Collections of a tenant at most."""

    qdrant: QdrantSettings = QdrantSettings()
    """The Qdrant server."""


class RerankSettings(Section):
    """The quantized cross-encoder. Off until a model earns its place."""

    enabled: bool = live(False)
    """Whether requests rerank unless they say otherwise; needs a model."""

    model: str = ""
    """A local folder or a Hugging Face id of a cross-encoder with an ONNX file; empty means none."""

    file: str = ""
    """The ONNX file inside the model's folder, as a relative path; empty picks the usual one."""

    limit_tokens: int = Field(default=256, ge=32, le=8192)
    """Tokens of a pair at most; capped by the model's own limit. The query gets half of it at most."""

    depth: int = live(20, ge=1, le=1000)
    """Pairs scored for a request."""

    max_depth: int = live(100, ge=1, le=1000)
    """The largest depth that a request may ask for."""

    deadline_share: float = live(0.5, ge=0.05, le=0.95)
    """The share of the remaining time that reranking may use; later, the previous order is kept for all."""

    first_stage_weight: float = live(0.5, ge=0.0, le=10.0)
    """Weight of the fused score in the final one."""

    cross_encoder_weight: float = live(0.5, ge=0.0, le=10.0)
    """Weight of the cross-encoder's score, between 0 and 1, in the final one."""

    @model_validator(mode="after")
    def _depths_agree(self) -> RerankSettings:
        if self.depth > self.max_depth:
            raise ValueError("depth must not be above max_depth")
        if self.enabled and not self.model:
            raise ValueError("enabled needs a model")
        return self
