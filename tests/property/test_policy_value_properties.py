"""Properties of comparing stored values with those that people write."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from typing import Literal, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from indexers.types import Scalar
from retrieval.caching.policy import holds_value

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**53), 2**53)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(-(10**16), 10**17).map(lambda count: EPOCH + timedelta(microseconds=count))
Form: TypeAlias = Literal["NFC", "NFD"]
FORMS: st.SearchStrategy[Form] = st.sampled_from(("NFC", "NFD"))
SPACES = st.text(" \t\n\u00a0", max_size=3)
SCALARS: st.SearchStrategy[Scalar] = st.one_of(st.text(), FINITE, WHOLE, MOMENTS, st.booleans())


@given(SCALARS, SPACES)
def test_every_value_meets_its_own_text(value: Scalar, spaces: str) -> None:
    """Whatever the type, what a value prints as means the value, spaces around it or not."""
    assert holds_value({"f": value}, "f", (f"{spaces}{value}{spaces}",))


@given(st.text(), FORMS, FORMS)
def test_text_meets_every_form_of_itself(text: str, stored: Form, written: Form) -> None:
    """Composed or decomposed, in lower case or as it is."""
    held = {"f": unicodedata.normalize(stored, text)}
    assert holds_value(held, "f", (unicodedata.normalize(written, text),))
    assert holds_value(held, "f", (unicodedata.normalize(written, text.casefold()),))


@given(WHOLE, st.integers(0, 5))
def test_whole_numbers_are_equal_as_integers_and_floats(number: int, zeros: int) -> None:
    """A FLOAT field and an INTEGER one meet the same writing."""
    for written in (str(number), f"{number}.{'0' * zeros}", f"{number}e0"):
        assert holds_value({"f": number}, "f", (written,))
        assert holds_value({"f": float(number)}, "f", (written,))


@given(WHOLE, WHOLE)
def test_other_numbers_are_others(stored: int, written: int) -> None:
    """Neighbours are told apart."""
    assert holds_value({"f": stored}, "f", (str(written),)) is (stored == written)


@given(MOMENTS, st.integers(-23, 23))
def test_moment_is_the_same_in_every_zone(moment: datetime, hours: int) -> None:
    """What counts is the moment, not how its zone writes it."""
    elsewhere = moment.astimezone(timezone(timedelta(hours=hours)))
    assert holds_value({"f": moment}, "f", (elsewhere.isoformat(),))
    assert holds_value({"f": elsewhere}, "f", (moment.isoformat().replace("+00:00", "Z"),))
    assert not holds_value({"f": moment}, "f", ((moment + timedelta(seconds=1)).isoformat(),))


@given(st.lists(SCALARS, min_size=1, max_size=4), st.lists(st.text(), max_size=3), st.data())
def test_any_value_of_a_list_is_enough(values: list[Scalar], others: list[str], data: st.DataObject) -> None:
    """Neither the other stored values nor the other written ones take a match away."""
    one = data.draw(st.sampled_from(values))
    assert holds_value({"f": tuple(values)}, "f", (*others, str(one)))


@given(SCALARS, st.text())
def test_comparing_never_fails(value: Scalar, written: str) -> None:
    """Whatever is written in the settings, comparing tells yes or no."""
    assert holds_value({"f": value}, "f", (written,)) in (True, False)
