"""The settings of the engines: encoders, chunking, index and reranking."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, model_validator

from rerank.stopping import EXCEEDANCES
from retrieval.settings.base import Section, live


class DenseSettings(Section):
    """The bi-encoder that turns queries and passages into vectors."""

    model: str = "bundled:minilm-l6"
    """`bundled:minilm-l6`, a local folder, or a Hugging Face id. Pooling, prompts and limits come from its files."""

    file: str = ""
    """The ONNX file inside the model's folder, as a relative path; empty takes the full-precision or the int8 one.
    Of both the one that is faster here and agrees with full precision is taken, once for a data folder and machine."""

    limit_tokens: int = Field(default=512, ge=32, le=8192)
    """Tokens of a query or a chunk at most; capped by the model's own limit."""


class SparseSettings(Section):
    """What weighs terms in the sparse branch."""

    model: str = ""
    """A local folder or a Hugging Face id of a SPLADE model with an ONNX file, run by fastembed (extra `splade`); empty
    means BM25. A collection keeps the kind that it was made with."""

    file: str = ""
    """The ONNX file inside the model's folder, as a relative path; empty picks the usual one."""


class EncodersSettings(Section):
    """How texts are encoded."""

    dense: DenseSettings = DenseSettings()
    """The bi-encoder."""

    sparse: SparseSettings = SparseSettings()
    """The sparse branch."""

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
    """The Qdrant server, when `index.kind` is `qdrant`. Layouts hold for what is made afterwards."""

    url: str = Field(default="http://127.0.0.1:6334", pattern=r"^https?://[^/:@\s]+(:\d{1,5})?$")
    """Its gRPC address, as `http://HOST:PORT` or `https://HOST:PORT`."""

    rest_url: str = Field(default="", pattern=r"^$|^https?://[^/:@\s]+(:\d{1,5})?$")
    """Its REST address, for backups, and for everything without gRPC; empty means port 6333 of the same host."""

    prefer_grpc: bool = True
    """Whether calls go over gRPC, which is quicker; otherwise over REST."""

    api_key: SecretStr = SecretStr("")
    """Its API key; empty sends none."""

    ca_file: str = ""
    """A file with the certificates that the server's own is checked by; empty takes the system's."""

    timeout_ms: int = Field(default=5000, ge=10, le=600_000)
    """Time of one call in all, whatever its phases."""

    lease_ms: int = Field(default=15_000, ge=100, le=3_600_000)
    """How long a process in the middle of a write may be silent before another takes over; at least three calls."""

    shards: int = Field(default=1, ge=1, le=1024)
    """Shards of a collection; a cluster spreads them over its nodes."""

    replicas: int = Field(default=1, ge=1, le=32)
    """Copies of each shard."""

    write_copies: int = Field(default=0, ge=0, le=32)
    """Copies that must have a write before it is acknowledged; 0 means more than half of them."""

    write_ordering: Literal["weak", "medium", "strong"] = "strong"
    """Who orders the writes of points in a cluster; what writers agree by is always `strong`."""

    read_consistency: Literal["one", "majority", "quorum", "all"] = "one"
    """How many copies a search asks before it believes one; what writers decide by is read from more than half."""

    vectors_on_disk: bool = False
    """Whether dense vectors stay on disk; with `quantize` the small ones are in memory all the same."""

    graph_on_disk: bool = False
    """Whether the HNSW graph and the sparse index stay on disk."""

    payload_on_disk: bool = True
    """Whether texts and metadata stay on disk."""

    quantize: bool = False
    """Whether dense vectors are searched as int8, in a quarter of the memory; scores still come from the originals."""

    quantile: float = Field(default=0.99, ge=0.5, le=1.0)
    """Share of the values that the int8 scale covers."""

    oversampling: float = Field(default=2.0, ge=1.0, le=20.0)
    """How many times the hits asked for are chosen by int8, to be scored again by the originals."""

    @model_validator(mode="after")
    def _copies_are_there(self) -> QdrantSettings:
        if self.write_copies > self.replicas:
            raise ValueError("write_copies must not be above replicas")
        return self


class IndexSettings(Section):
    """Where vectors live and how they are searched."""

    kind: Literal["edge", "exact", "qdrant"] = "edge"
    """`edge`: Qdrant Edge in this process. `exact`: brute force in NumPy, the oracle. `qdrant`: a Qdrant server."""

    build_after_chunks: int = Field(default=16_384, ge=64, le=10_000_000)
    """Chunks written or removed since the last generation before a new one is built; a tenth of all if that is more."""

    build_timeout_s: float = Field(default=3_600.0, ge=1.0, le=604_800.0)
    """The longest that building a generation may take; one that takes longer is thrown away, and tried again later."""

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


class LateSettings(Section):
    """Late interaction: the token vectors of query and passage, compared. Costs no model run where codes are stored."""

    enabled: bool = live(True)
    """Whether reranking begins with it; a model without token vectors, and `mode = "sparse"`, go without."""

    weight: float = live(0.4, ge=0.0, le=10.0)
    """Weight of its score in the final one, which is the weighted mean of the scores that took part."""


class LineSettings(Section):
    """A prediction of logits, for a certain number of good passages among those scored so far."""

    intercept: float = Field(default=0.0, ge=-100.0, le=100.0)
    """The logit that is predicted for a score of 0 before the cross-encoder."""

    slope: float = Field(default=0.0, ge=0.0, le=1000.0)
    """How much the predicted logit rises for each 1 of that score."""

    carry: float = Field(default=0.0, ge=0.0, le=10.0)
    """Share of what the scored pairs' logits are above their prediction, in the mean, that is added to the others'."""

    margins: tuple[float, ...] = (0.0,) * len(EXCEEDANCES)
    """How far a logit is above its prediction, exceeded by 95, 75, 50, 25, 10, 5, 1 and 0.2 % of them; not falling."""

    @model_validator(mode="after")
    def _margins_do_not_fall(self) -> LineSettings:
        if len(self.margins) != len(EXCEEDANCES) or list(self.margins) != sorted(self.margins):
            raise ValueError(f"margins must be {len(EXCEEDANCES)} numbers that do not fall")
        return self


class AnytimeSettings(Section):
    """When the cross-encoder stops: what was learned about its logits, from which the stop rule predicts them."""

    tolerance: float = live(0.02, ge=0.0, le=100.0)
    """Share of the result's value (scores above its last, discounted by rank) that may be expected to be missed."""

    gate_margin: float = live(0.2, ge=0.0, le=10.0)
    """Lead of the best passage over the next, in score, from which on no pair is scored at all; 0 always scores."""

    lines: tuple[LineSettings, ...] = live(
        (
            LineSettings(
                intercept=-3.79, slope=1.65, carry=0.46, margins=(-0.41, -0.18, -0.06, 0.08, 0.34, 0.60, 1.45, 2.30)
            ),
            LineSettings(
                intercept=-4.12, slope=2.98, carry=0.27, margins=(-0.45, -0.17, -0.03, 0.11, 0.31, 0.51, 1.30, 2.33)
            ),
            LineSettings(
                intercept=-4.38, slope=3.53, carry=0.44, margins=(-0.58, -0.27, -0.08, 0.12, 0.48, 0.88, 2.09, 3.98)
            ),
            LineSettings(
                intercept=-1.47, slope=2.89, carry=1.19, margins=(-2.39, -0.58, 0.33, 0.70, 1.07, 1.49, 2.94, 4.38)
            ),
        ),
        min_length=1,
    )
    """Predictions, the first for no good passage among those scored so far, the next for one, the last for more too."""


class RerankSettings(Section):
    """Reranking: late interaction orders the best hits, then a cross-encoder, if one is named, refines their order."""

    enabled: bool = live(True)
    """Whether requests rerank unless they say otherwise."""

    model: str = ""
    """A local folder or a Hugging Face id of a cross-encoder with an ONNX file; empty means late interaction alone."""

    file: str = ""
    """The ONNX file inside the model's folder, as a relative path; empty picks the usual one."""

    limit_tokens: int = Field(default=256, ge=32, le=8192)
    """Tokens of a pair at most; capped by the model's own limit. The query gets half of it at most."""

    depth: int = live(50, ge=1, le=1000)
    """Hits that are reranked, never fewer than top_k; also the pairs that the cross-encoder scores at most."""

    max_depth: int = live(100, ge=1, le=1000)
    """The largest depth that a request may ask for, and the largest top_k with a cross-encoder."""

    deadline_share: float = live(0.5, ge=0.05, le=0.95)
    """The share of the remaining time that reranking may use; later, the previous order is kept for all."""

    first_stage_weight: float = live(0.6, ge=0.0, le=10.0)
    """Weight of the fused score in the final one, which is the weighted mean of the scores that took part."""

    cross_encoder_weight: float = live(1.0, gt=0.0, le=10.0)
    """Weight of the cross-encoder's score, between 0 and 1, in the same mean."""

    late: LateSettings = LateSettings()
    """Late interaction."""

    anytime: AnytimeSettings = AnytimeSettings()
    """When the cross-encoder stops."""

    @model_validator(mode="after")
    def _agrees(self) -> RerankSettings:
        if self.depth > self.max_depth:
            raise ValueError("depth must not be above max_depth")
        if self.late.enabled and self.first_stage_weight + self.late.weight == 0.0:
            raise ValueError("first_stage_weight and late.weight must not both be 0")
        return self
