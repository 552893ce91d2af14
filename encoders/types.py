"""The values and protocols of the encoders: what engines take, what they give, and what a call cost.

Engines are synchronous and pure; who waits for them, and in which order, is the scheduler's business alone.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from encoders.errors import EncoderError

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)


class TextKind(enum.Enum):
    """What a text is to the model: many models encode the two differently (prompts)."""

    QUERY = "query"
    PASSAGE = "passage"


class WorkClass(enum.IntEnum):
    """Who waits for the result; lower goes first."""

    ONLINE = 0
    BULK = 1


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text, or a pair, as the model takes it: special tokens included, cut to the limit, never padded."""

    ids: NDArray[np.int64]  # [tokens]
    type_ids: NDArray[np.int64]  # [tokens]; 0 for a single text, 1 on the second part of a pair
    full_token_count: int  # before any cut

    @property
    def token_count(self) -> int:
        """Tokens that the model will see."""
        return len(self.ids)

    @property
    def truncated(self) -> bool:
        """Whether the limit cut something off."""
        return self.full_token_count > len(self.ids)


@dataclass(frozen=True, slots=True)
class SparseVector:
    """A sparse vector: strictly increasing `indices`, finite non-zero `values` of the same length; may be empty."""

    indices: NDArray[np.uint32]  # [terms]
    values: NDArray[np.float32]  # [terms]


@dataclass(frozen=True, slots=True)
class TermCounts:
    """A text as a bag of hashed stems: strictly increasing `terms`, how often each occurs, and the length in words."""

    terms: NDArray[np.uint32]  # [terms]
    counts: NDArray[np.uint16]  # [terms], saturating
    length: int  # words that are no stop words


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query's vector, and its token vectors for late interaction when the model has a token codec."""

    vector: NDArray[np.float32]  # [dim], unit length
    tokens: NDArray[np.float32] | None  # [tokens, codec.dim]; lengths are weights that sum to 1; may have no rows


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """A passage's vector, and the codes of its token vectors when the model has a token codec."""

    vector: NDArray[np.float32]  # [dim], unit length
    codes: NDArray[np.uint8] | None  # [tokens, codec.code_bytes], without tokens that say nothing; may have no rows


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of one scheduled item: a value or an error, never both, and what it cost."""

    value: T | None
    error: EncoderError | None
    token_count: int
    truncated: bool
    queue_ns: int
    compute_ns: int

    def map(self, change: Callable[[T], U]) -> Outcome[U]:
        """Returns the outcome with its value changed; one without a value stays as it is."""
        value = None if self.value is None else change(self.value)
        return Outcome(value, self.error, self.token_count, self.truncated, self.queue_ns, self.compute_ns)


class Engine(Protocol[T_co]):
    """A model behind one ONNX session: tokenized items in, one result an item out, in the same order.

    `run` is synchronous, safe to call from several threads at once, and computes on the calling thread alone.
    """

    @property
    def model_id(self) -> str:
        """The model's id or folder name."""
        ...

    def run(self, items: Sequence[TokenizedText]) -> Sequence[T_co]:
        """Returns one result an item, in order."""
        ...


class DenseEncoder(Protocol):
    """Texts to unit-length vectors, synchronously; a text's vector never depends on its neighbours."""

    @property
    def model_id(self) -> str:
        """The model's id or folder name."""
        ...

    @property
    def revision(self) -> str:
        """A hash of the files that shape a vector: weights, tokenizer, pooling, prompts."""
        ...

    @property
    def dim(self) -> int:
        """The numbers in a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens of a text at most, special ones included."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns float32 [n, dim], unit length. Texts are cut at `max_tokens`."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns float32 [n, dim], unit length. Texts are cut at `max_tokens`."""
        ...


class TokenCodec(Protocol):
    """Token vectors as bytes, and their late interaction with a query (MaxSim, Khattab and Zaharia, 2020).

    Part of the encoder: a revision of the encoder names one codec, so codes are only ever read by the codec that wrote
    them.
    """

    @property
    def dim(self) -> int:
        """The numbers in a token vector."""
        ...

    @property
    def code_bytes(self) -> int:
        """The bytes of a token's code."""
        ...

    def decode(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Returns float32 [tokens, dim] of codes [tokens, code_bytes], about unit length."""
        ...

    def scores(
        self, query: NDArray[np.float32], codes: NDArray[np.uint8], ends: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Returns the score of each passage: over the query's tokens, the sum of the best dot product in the passage.

        `query` is `EncodedQuery.tokens`; `codes` [tokens, code_bytes] are the passages' one after another, passage i
        ends before `ends[i]`. float32 [passages], in about [-1, 1]; 0 for a passage without tokens.
        """
        ...


class AsyncDenseEncoder(Protocol):
    """The scheduled view of a dense encoder: what the request path and the indexer hold."""

    @property
    def model_id(self) -> str:
        """The model's id or folder name."""
        ...

    @property
    def revision(self) -> str:
        """A hash of the files that shape a vector."""
        ...

    @property
    def dim(self) -> int:
        """The numbers in a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens of a text at most, special ones included."""
        ...

    @property
    def codec(self) -> TokenCodec | None:
        """What reads and writes token vectors; None for a model without them."""
        ...

    def tokenize(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        """Adds the prompt of the kind, cuts at `max_tokens`."""
        ...

    async def encode(
        self,
        texts: Sequence[str],
        kind: TextKind,
        work_class: WorkClass,
        deadline_ns: int | None,
    ) -> list[Outcome[NDArray[np.float32]]]:
        """Returns one outcome a text, in order; a value is float32 [dim], unit length and finite.

        `deadline_ns` is on the clock of `time.monotonic_ns`. Cancelling the call drops what has not started.

        Raises:
            SchedulerFull, SchedulerStopped: nothing of the call was accepted.
        """
        ...

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[EncodedQuery]:
        """Encodes a question that somebody waits for, with its token vectors, in one run.

        Raises:
            SchedulerFull, SchedulerStopped: it was not accepted.
        """
        ...

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[EncodedPassage]]:
        """Encodes passages with the codes of their token vectors, in one run each; otherwise as `encode`.

        Raises:
            SchedulerFull, SchedulerStopped: nothing of the call was accepted.
        """
        ...


class TokenCounter(Protocol):
    """Counts tokens as one particular model does."""

    @property
    def name(self) -> str:
        """What replies call the tokenizer."""
        ...

    @property
    def adds_up(self) -> bool:
        """Whether texts joined by white space have just the tokens that they have apart."""
        ...

    def count(self, text: str) -> int:
        """Counts the tokens of the text alone, without special tokens."""
        ...

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Returns the code-point span of each token, in order, without special tokens."""
        ...
