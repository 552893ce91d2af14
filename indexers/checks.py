"""What an index refuses before anything is stored or searched: all stores accept it without a word (case VEC-01)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from indexers.errors import InvalidDocument, InvalidInput, InvalidVector
from indexers.types import EncodedChunk, EncodedDocument, SearchQuery

MAX_ID_CHARS = 512
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
MAX_LIMIT = 10_000
MAX_PAGE_SIZE = 1_000
_UNIT_TOLERANCE = 0.01  # int8 and float16 models round; a zero or unnormalised vector is far outside


def check_documents(documents: Sequence[EncodedDocument], dim: int, code_bytes: int) -> None:
    """Refuses documents that could not be found again or would spoil every later search.

    Raises:
        InvalidDocument: an id is empty, too long, not valid or twice in the call, or a chunk does not fit its text.
        InvalidVector: names every document with a vector of another dimension, NaN, Inf or without unit length, or with
            token codes of another width than the collection stores.
    """
    seen: set[str] = set()
    for position, document in enumerate(documents):
        field = f"documents[{position}]"
        _check_document_id(document.document.document_id, f"{field}.document_id", seen)
        if not (_is_unicode(document.document.text) and _is_unicode(document.document.title)):
            raise InvalidDocument(field, "valid Unicode", f"{field} has lone surrogates; decode its source again")
        _check_chunks(document, field)
    _refuse_vectors(documents, lambda one: is_unit_vector(one.dense, dim), f"{dim} finite values of unit length")
    _refuse_vectors(documents, lambda one: _are_codes(one.codes, code_bytes), f"token codes of {code_bytes} bytes each")


def check_query(query: SearchQuery, dim: int) -> None:
    """Refuses a search whose scores would mean nothing.

    Raises:
        InvalidVector: a vector has another dimension, a non-finite value, or no unit length.
        InvalidInput: the limit is out of bounds, or no branch is asked.
    """
    if not 1 <= query.limit <= MAX_LIMIT:
        bound = f"1 to {MAX_LIMIT}"
        raise InvalidInput("limit", bound, f"limit {query.limit} is not within {bound}; ask for fewer candidates")
    if query.dense is None and query.sparse is None:
        raise InvalidInput("query", "at least one branch", "neither branch is asked; give a dense or sparse vector")
    if query.dense is not None and not is_unit_vector(query.dense, dim):
        bound = f"{dim} finite values of unit length"
        raise InvalidVector("query.dense", bound, f"the query vector is not {bound}; encode the query again")
    if query.sparse is not None and not np.isfinite(query.sparse.values).all():
        raise InvalidVector("query.sparse", "finite values", "the sparse query vector has NaN or Inf; encode it again")


def is_unit_vector(vector: NDArray[np.float32], dim: int) -> bool:
    """Tells whether a vector has the dimension, only finite values, and length one."""
    if vector.shape != (dim,) or not np.isfinite(vector).all():
        return False
    return bool(abs(float(np.linalg.norm(vector)) - 1.0) <= _UNIT_TOLERANCE)


def check_token_query(query: NDArray[np.float32], dim: int) -> None:
    """Refuses token vectors of a query whose scores would mean nothing.

    Raises:
        InvalidVector: they have another dimension, or a non-finite value.
    """
    if query.ndim != 2 or query.shape[1] != dim or not np.isfinite(query).all():
        bound = f"{dim} finite values a token"
        raise InvalidVector("query.tokens", bound, f"the query's token vectors are not {bound}; encode the query again")


def _refuse_vectors(documents: Sequence[EncodedDocument], fits: Callable[[EncodedChunk], bool], bound: str) -> None:
    wrong = [one.document.document_id for one in documents if not all(map(fits, one.chunks))]
    if wrong:
        named = ", ".join(repr(one) for one in wrong[:10]) + (", ..." if len(wrong) > 10 else "")
        raise InvalidVector("documents", bound, f"vectors of documents {named} are not {bound}; encode them again")


def _are_codes(codes: NDArray[np.uint8] | None, code_bytes: int) -> bool:
    """A collection that stores none takes none."""
    return codes is None or (code_bytes > 0 and codes.dtype == np.uint8 and codes.shape[1:] == (code_bytes,))


def _check_document_id(document_id: str, field: str, seen: set[str]) -> None:
    if not 1 <= len(document_id) <= MAX_ID_CHARS or _CONTROL.search(document_id) or not _is_unicode(document_id):
        bound = f"1 to {MAX_ID_CHARS} characters without control characters"
        raise InvalidDocument(field, bound, f"{field} is not {bound}; choose another id")
    if document_id in seen:
        raise InvalidDocument(field, "unique in a call", f"{field}: {document_id!r} is there twice; send it once")
    seen.add(document_id)


def _check_chunks(document: EncodedDocument, field: str) -> None:
    text = document.document.text
    seen: set[str] = set()
    for position, encoded in enumerate(document.chunks):
        chunk, where = encoded.chunk, f"{field}.chunks[{position}]"
        if not _is_canonical(chunk.chunk_id) or chunk.chunk_id in seen:
            bound = "a lower-case UUID, unique in the document"
            raise InvalidDocument(f"{where}.chunk_id", bound, f"{where}: {chunk.chunk_id!r} is not {bound}")
        if text[chunk.start : chunk.end] != chunk.text or len(chunk.text) != chunk.end - chunk.start:
            bound = "text[start:end] of the document"
            raise InvalidDocument(where, bound, f"{where} is not {bound}; chunk the document again")
        seen.add(chunk.chunk_id)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_canonical(chunk_id: str) -> bool:
    try:
        return str(UUID(chunk_id)) == chunk_id
    except ValueError:
        return False
