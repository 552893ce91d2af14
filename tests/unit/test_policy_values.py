"""How a metadata value is compared with the values of a policy or a rule."""

from __future__ import annotations

import pytest

from indexers.types import Metadata
from retrieval.caching.policy import holds_value


@pytest.mark.parametrize(
    ("metadata", "values", "held"),
    [
        ({"class": "Secret"}, ("secret",), True),
        ({"class": ("open", "SECRET")}, ("secret", "other"), True),
        ({"class": 7}, ("7",), True),
        ({"class": True}, ("true",), True),
        ({"class": "secretive"}, ("secret",), False),
        ({"class": "any"}, (), True),
        ({"class": ()}, (), False),
        ({"other": "secret"}, (), False),
        ({}, ("secret",), False),
    ],
)
def test_values_are_compared_as_text_without_case(metadata: Metadata, values: tuple[str, ...], held: bool) -> None:
    """One equal value among several is enough; without values any value is, and no value never is."""
    assert holds_value(metadata, "class", values) is held
