"""Learned sparse vectors (SPLADE): a masked language model says which words a text calls up, its own and others.

In place of BM25 as the sparse branch: better where questions and passages use different words, at the cost of a run of
a whole language model for each of them. Needs the extra `splade`.
"""

from __future__ import annotations

from collections.abc import Sequence

from encoders.errors import ExtraMissing
from encoders.kinds import ModelKind, require_kind
from encoders.models import ModelFiles
from encoders.tokenizing import Tokenization
from encoders.types import Engine, SparseVector, TextKind, TokenizedText


class SpladeEncoder:
    """The `SparseEncoder` of a model whose files were resolved: synchronous, for tools and tests."""

    def __init__(self, engine: Engine[SparseVector], tokenization: Tokenization, files: ModelFiles) -> None:
        self.engine = engine
        self.tokenization = tokenization
        self.prompts = files.prompts
        self.model_id = files.model_id
        self.revision = files.revision
        self.max_tokens = files.max_tokens

    @classmethod
    def open(cls, files: ModelFiles) -> SpladeEncoder:
        """Opens weights and tokenizer.

        Raises:
            ExtraMissing: fastembed is not installed.
            ModelNotFound, ModelUnsupported: the model cannot be opened, or is no masked language model.
        """
        require_kind(files.model_id, files.kind, {ModelKind.MASKED_LM}, ModelKind.MASKED_LM)
        tokenization = Tokenization.open(files.tokenizer, files.model_id, files.max_tokens)
        try:
            # An optional library, and a slow one to import.
            from encoders.splade_model import SpladeEngine  # noqa: PLC0415
        except ImportError as cause:
            raise ExtraMissing("splade", "fastembed") from cause
        return cls(SpladeEngine.open(files, tokenization.vocabulary_size), tokenization, files)

    def tokenize(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        """Adds the prompt of the kind, cuts at `max_tokens`."""
        return self.tokenization.texts(texts, self.prompts[kind])

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        """Returns a vector a text, values above 0; texts are cut at `max_tokens`."""
        return list(self.engine.run(self.tokenize(texts, TextKind.QUERY)))

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Returns a vector a text, values above 0; texts are cut at `max_tokens`."""
        return list(self.engine.run(self.tokenize(texts, TextKind.PASSAGE)))
