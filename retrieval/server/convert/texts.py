"""What texts in requests must be; the same checks wherever a request carries a question or texts to encode."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from indexers.errors import InvalidName
from indexers.names import check_key
from indexers.types import CollectionKey
from retrieval.errors import InvalidRequest

MAX_QUERY_BYTES = 32_768
MAX_TEXTS = 256
_INVISIBLE = frozenset(("Cc", "Cf", "Cn", "Zl", "Zp", "Zs"))


def checked_query(query: str, field: str = "query") -> str:
    """Returns the question as it is.

    Raises:
        InvalidRequest: it shows nothing, is too long, or holds a NUL character.
    """
    size_bytes = len(query.encode())
    if size_bytes > MAX_QUERY_BYTES:
        bound = f"at most {MAX_QUERY_BYTES} bytes"
        raise InvalidRequest(field, bound, f"{field} has {size_bytes} bytes, {bound} are allowed; shorten it")
    _check_text(query, field)
    return query


def checked_texts(
    texts: Sequence[str], field: str, max_bytes: int, *, visible: bool = True, most: int = MAX_TEXTS
) -> list[str]:
    """Returns the texts as they are; `most` is how many are allowed.

    Raises:
        InvalidRequest: none or too many, too long in all, or one that shows nothing or holds a NUL character.
    """
    if not 1 <= len(texts) <= most:
        bound = f"1 to {most}"
        raise InvalidRequest(field, bound, f"{field} has {len(texts)} entries, {bound} are allowed; split the call")
    size_bytes = sum(len(text.encode()) for text in texts)
    if size_bytes > max_bytes:
        bound = f"at most {max_bytes} bytes in all"
        raise InvalidRequest(field, bound, f"{field} has {size_bytes} bytes, {bound} are allowed; split the call")
    if visible:
        for position, text in enumerate(texts):
            _check_text(text, f"{field}[{position}]")
    return list(texts)


def checked_key(tenant: str, collection: str, field: str = "collection") -> CollectionKey:
    """Returns the collection's key.

    Raises:
        InvalidName: the name is not allowed.
    """
    try:
        return check_key(CollectionKey(tenant, collection))
    except InvalidName as error:
        raise InvalidName(field, error.bound, str(error)) from None


def _check_text(text: str, field: str) -> None:
    if "\x00" in text:
        raise InvalidRequest(field, "no NUL characters", f"{field} holds a NUL character; remove it")
    if not any(_is_visible(character) for character in text):
        bound = "at least one visible character"
        raise InvalidRequest(field, bound, f"{field} must have {bound}; send a text")


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE
