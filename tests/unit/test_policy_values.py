"""How a metadata value is compared with the values of a policy or a rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from indexers.types import Metadata, Scalar
from retrieval.caching.policy import holds_value

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("metadata", "values", "held"),
    [
        ({"class": "Secret"}, ("secret",), True),
        ({"class": ("open", "SECRET")}, ("secret", "other"), True),
        ({"class": (1, 2.5)}, ("2.50",), True),
        ({"class": "secretive"}, ("secret",), False),
        ({"class": "any"}, (), True),
        ({"class": ()}, (), False),
        ({"other": "secret"}, (), False),
        ({}, ("secret",), False),
    ],
)
def test_one_equal_value_among_several_is_enough(metadata: Metadata, values: tuple[str, ...], held: bool) -> None:
    """Without values any value will do, and no value never does."""
    assert holds_value(metadata, "class", values) is held


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (7, "7"),
        (7, "7.0"),
        (3.0, "3"),
        (3.0, " 3.00 "),
        (0.1, "0.1"),
        (1e21, "1e21"),
        (True, "true"),
        (True, "Yes"),
        (False, "0"),
        (NEW_YEAR, "2030-01-01T00:00:00Z"),
        (NEW_YEAR, "2030-01-01t01:00:00+01:00"),
        (NEW_YEAR, "2030-01-01"),
        (NEW_YEAR.astimezone(timezone(timedelta(hours=5))), "2030-01-01 00:00"),
        ("confidentie\u0308l", "confidenti\u00ebl"),
        ("STRASSE", "stra\u00dfe"),
        (" secret\u00a0", "secret"),
    ],
)
def test_values_are_those_that_people_write(value: Scalar, written: str) -> None:
    """A value as a person writes it meets the value as it is stored; otherwise a rule would silently never apply."""
    assert holds_value({"level": value}, "level", (written,))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (3, "4"),
        (3, "three"),
        (3, "nan"),
        (3, "snan"),
        (2.5, "inf"),
        (2.5, "1e999999"),
        (2**53 + 1, str(2**53)),
        (True, "false"),
        (True, "2"),
        (1, "true"),
        (NEW_YEAR, "2030"),
        (NEW_YEAR, "2030-01-01T00:00:00-01:00"),
        ("1", "true"),
    ],
)
def test_other_values_are_others(value: Scalar, written: str) -> None:
    """What means something else, or nothing of that type, does not meet the value, and is no error."""
    assert not holds_value({"level": value}, "level", (written,))
