"""What all parts of the settings tree share: frozen, no unknown keys, documented, marked if reloadable."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
"""What names of tenants, collections and backends are like."""


def _checked_name(name: str) -> str:
    if name and not re.fullmatch(NAME, name):
        raise ValueError(f"{name!r} is no name: 1 to 63 of a-z 0-9 _ -, starting with a letter or digit")
    return name


def _unpadded(name: Any) -> Any:
    if isinstance(name, str) and name != name.strip():
        raise ValueError(f"{name!r} begins or ends with a space, as no field's name does")
    return name


Name: TypeAlias = Annotated[str, AfterValidator(_checked_name)]
"""The name of a tenant or a collection; empty where a setting says what that means."""

FieldName: TypeAlias = Annotated[str, BeforeValidator(_unpadded), Field(max_length=128)]
"""The name of a metadata field, declared or not; empty for none."""


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
