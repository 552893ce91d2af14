"""The pause that a server asks for, as it writes it."""

from __future__ import annotations

import pytest

from retrieval.generation.openai_failures import retry_after_s

NOW_S = 1_796_119_200.0  # 2026-12-01 10:00:00 UTC
IN_A_MINUTE = "Tue, 01 Dec 2026 10:01:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
        ({"retry-after": IN_A_MINUTE}, 60.0),
        ({"retry-after": "Tue, 01 Dec 2026 10:01:00"}, 60.0),
        ({"retry-after": IN_A_MINUTE, "date": "Tue, 01 Dec 2026 10:00:50 GMT"}, 10.0),
        ({"retry-after": IN_A_MINUTE, "date": "today"}, 60.0),
        ({"retry-after": "Tue, 01 Dec 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "inf"}, 0.0),
        ({"retry-after": "1e9"}, 3600.0),
        ({"retry-after": "later"}, 0.0),
    ],
)
def test_pause_is_read_in_every_form_and_bounded(headers: dict[str, str], seconds: float) -> None:
    """Seconds, milliseconds and dates are read, on the server's clock where it tells it; nonsense is no pause."""
    assert retry_after_s(headers, NOW_S) == pytest.approx(seconds)
