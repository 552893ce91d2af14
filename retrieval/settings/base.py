"""What all parts of the settings tree share: frozen, no unknown keys, documented, marked if reloadable."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A part of the settings tree."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        validate_default=True,
        str_strip_whitespace=True,
        allow_inf_nan=False,
    )


def live(default: Any, **bounds: Any) -> Any:
    """Declares a setting that takes effect at a reload; `bounds` are those of `pydantic.Field`."""
    return Field(default=default, json_schema_extra={"reloadable": True}, **bounds)
