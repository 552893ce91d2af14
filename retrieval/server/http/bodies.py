"""Bodies of requests: JSON that is checked as a whole, where nothing that is not understood is passed over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from retrieval.errors import InvalidRequest

B = TypeVar("B", bound="Body")
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]  # as far as our own messages count
LONG_BYTES = 64 * 1024
"""Parsing and converting more than this takes too long for the event loop."""

_FIELD_CHARS = 200


class Body(BaseModel):
    """An object of a request; what it does not declare is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


async def parsed(kind: type[B], body: bytes) -> B:
    """Returns the body as values.

    Raises:
        InvalidRequest: it is no JSON, or not what the endpoint takes; names the field.
    """
    try:
        if len(body) <= LONG_BYTES:
            return kind.model_validate_json(body)
        return await asyncio.to_thread(kind.model_validate_json, body)
    except ValidationError as error:
        raise _invalid(error) from None


def refuse_unhonoured(body: Body, defaults: Mapping[str, Sequence[JsonValue]]) -> None:
    """Lets parameters pass that are at their defaults; others would shape the answer, and nothing here does so.

    Raises:
        InvalidRequest: names the first parameter that would be ignored.
    """
    for name, allowed in defaults.items():
        value = getattr(body, name)
        if value is not None and value not in allowed:
            bound = " or ".join(("absent", *(repr(each) for each in allowed)))
            raise InvalidRequest(name, bound, f"{name} is not honoured by this server; leave it out")


def _invalid(error: ValidationError) -> InvalidRequest:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    field = path[:_FIELD_CHARS] or "body"
    if first["type"] == "json_invalid":
        return InvalidRequest("body", "JSON", f"the body is no JSON ({first['msg']}); send a JSON object")
    if first["type"] == "extra_forbidden":
        return InvalidRequest(field, "a field of this endpoint", f"{field} is not known here; leave it out")
    return InvalidRequest(field, first["msg"], f"{field}: {first['msg']}")
