"""What all parts of a job file share: frozen, no unknown keys, each key documented, secrets by reference."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
"""What names of jobs and collections are like."""

SecretRef: TypeAlias = Annotated[str, Field(pattern=r"^(|env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$")]
"""Where a secret is found: an environment variable (`env:NAME`) or a file (`file:/path`); empty for none."""


class Part(BaseModel):
    """A part of a job file: frozen, without unknown keys, each key documented."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        validate_default=True,
        str_strip_whitespace=True,
        allow_inf_nan=False,
    )
