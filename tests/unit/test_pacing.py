"""How long a backend may be silent."""

from __future__ import annotations

import asyncio
import time

import pytest

from retrieval.generation.pacing import Pacer, Silence

FAR_NS = 1 << 62


async def test_silence_before_the_first_token_is_bounded_in_all() -> None:
    """Waits that each bring something which is no token use up one budget."""
    pacer = Pacer(0.05, 30.0, FAR_NS)
    with pytest.raises(Silence) as caught:
        await _wait_again_and_again(pacer)
    assert caught.value.waited_ms >= 50


async def test_a_token_gives_the_next_one_its_full_time() -> None:
    """The limit between tokens takes the place of what was left."""
    pacer = Pacer(30.0, 0.02, FAR_NS)
    assert await pacer.wait(asyncio.to_thread(int)) == 0
    pacer.token()
    with pytest.raises(Silence, match="nothing came for"):
        await pacer.wait(asyncio.Event().wait())


async def test_time_that_the_reader_takes_is_not_the_servers() -> None:
    """Between two waits any time may pass."""
    pacer = Pacer(30.0, 0.02, FAR_NS)
    pacer.token()
    began = time.monotonic()
    while time.monotonic() - began < 0.05:
        pass
    assert await pacer.wait(_soon(3)) == 3


async def test_the_deadline_bounds_every_wait() -> None:
    """A deadline that has passed leaves no time, and one to come no more than it."""
    for deadline_ns in (0, time.monotonic_ns() + 10_000_000):
        with pytest.raises(Silence):
            await Pacer(30.0, 30.0, deadline_ns).wait(asyncio.Event().wait())


async def test_all_time_counts_before_the_first_token() -> None:
    """What comes at once and is no token takes no wait, and still uses up the time."""
    pacer = Pacer(0.02, 30.0, FAR_NS)
    with pytest.raises(Silence) as caught:
        await _read_nothing(pacer)
    assert caught.value.waited_ms >= 20
    pacer = Pacer(30.0, 30.0, 0)
    pacer.token()
    with pytest.raises(Silence):
        pacer.nothing()


async def test_all_time_counts_once_it_is_hurried() -> None:
    """After the last token nothing that comes takes more time, not even another token."""
    pacer = Pacer(30.0, 30.0, FAR_NS)
    pacer.token()
    pacer.nothing()
    pacer.hurry(0.0)
    pacer.token()
    with pytest.raises(Silence):
        pacer.nothing()


async def test_hurrying_only_shortens() -> None:
    """What is left is never made longer."""
    pacer = Pacer(0.02, 30.0, FAR_NS)
    pacer.hurry(30.0)
    with pytest.raises(Silence):
        await pacer.wait(asyncio.Event().wait())


async def _at_once() -> None:
    pass


async def _read_nothing(pacer: Pacer) -> None:
    while True:
        await pacer.wait(_at_once())
        pacer.nothing()


async def _soon(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def _wait_again_and_again(pacer: Pacer) -> None:
    while True:
        await pacer.wait(asyncio.to_thread(int))
