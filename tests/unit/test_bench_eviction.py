"""The policies that the cache is measured against, on sequences worked out by hand, and the traces of keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from random import Random

import pytest

from bench._common.eviction_policies import Belady, Lru, Ours, Policy, Sieve, Sketch, WTinyLfu
from bench._common.traces.events import Ask, Kind, Law, Trace
from bench._common.traces.keys import KeyLaw, question_trace, zipf_trace

A, B, C, D, E = range(5)


def _hits(policy: Policy, keys: Sequence[int]) -> str:
    """Replays keys of one byte each: H for a hit, a dot for a miss."""
    return "".join("H" if policy.request(key, 1) else "." for key in keys)


def test_lru_lets_the_least_recently_used_leave() -> None:
    """A is used again, so B leaves for D; then C for B."""
    assert _hits(Lru(3), [A, B, C, A, D, B, C]) == "...H..."
    assert _hits(Lru(3), [A, B, C, A, D, A, C]) == "...H.HH"


def test_sieve_spares_what_was_used_and_its_hand_goes_on_from_there() -> None:
    """D spares A and takes B; E takes C, at which the hand stands now, not A, whose mark is gone."""
    assert _hits(Sieve(3), [A, B, C, A, D, E, A]) == "...H..H"
    # The hand has passed A for good: D and E, newer than it, leave before A does.
    assert _hits(Sieve(3), [A, B, C, A, D, E, B, C, A]) == "...H....H"


def test_sieve_whose_entries_were_all_used_takes_the_oldest() -> None:
    """The hand goes all the way round, and finds the first one without its mark."""
    assert _hits(Sieve(2), [A, B, A, B, C, B, A]) == "..HH.H."


def test_w_tiny_lfu_admits_only_what_is_asked_for_more_often() -> None:
    """A scan of fresh keys does not drive out keys that were asked for twice."""
    cache = WTinyLfu(100, 100)
    hot = [key for key in range(80) for _ in range(2)]
    _hits(cache, hot)
    _hits(cache, range(1000, 1500))
    assert _hits(cache, range(80)).count("H") >= 75


def test_sketch_counts_and_forgets() -> None:
    """Estimates are at least the truth until the counts are halved, after ten requests for each entry."""
    sketch = Sketch(16)
    for _ in range(5):
        sketch.add(A)
    assert sketch.estimate(A) == 5
    assert sketch.estimate(B) == 0
    for _ in range(154):
        sketch.add(B)
    assert sketch.estimate(B) == 16  # the counter's end, and the doorkeeper
    sketch.add(C)
    assert sketch.estimate(A) == 2  # 4 in the counters and 1 in the doorkeeper, halved
    assert sketch.estimate(B) == 7


def test_belady_keeps_what_is_needed_soonest() -> None:
    """With room for two: C is never needed again and not taken in; A and B stay."""
    keys = [A, B, C, A, B, D, A]
    assert _hits(Belady(2, keys), keys) == "...HH.H"


def test_belady_is_the_best_of_all_choices() -> None:
    """On short random sequences nothing that could leave instead would give more hits."""
    random = Random(5)
    for _ in range(30):
        keys = [random.randrange(4) for _ in range(9)]
        assert _hits(Belady(2, keys), keys).count("H") == _most_hits(keys, 2)


def _most_hits(keys: Sequence[int], room: int) -> int:
    """Tries every set of keys to keep after every request."""
    best = {frozenset[int](): 0}
    for key in keys:
        after: dict[frozenset[int], int] = {}
        for held, hits in best.items():
            there = held | {key}
            for kept in (there, *map(frozenset, itertools.combinations(there, room))):
                if len(kept) <= room:
                    after[kept] = max(after.get(kept, 0), hits + (key in held))
        best = after
    return max(best.values())


@pytest.mark.parametrize(
    "make", [Lru, Sieve, lambda room: WTinyLfu(room, 20), lambda room: Ours(room, 0)], ids=["lru", "sieve", "w", "ours"]
)
def test_no_policy_beats_belady_or_takes_what_is_too_large(make: Callable[[int], Policy]) -> None:
    """A bound for all; an entry larger than the cache passes by, and what is there stays."""
    trace = zipf_trace(KeyLaw(requests=3000, keys=300), 1)
    best = Belady(50, trace.keys)
    policy = make(50)
    assert _hits(policy, trace.keys).count("H") <= _hits(best, trace.keys).count("H")
    assert not policy.request(10_000, 51)
    assert not policy.request(10_000, 51)


def test_key_trace_follows_its_law() -> None:
    """The same for a seed; the first key is asked for about twice as often as the second; scans are of fresh keys."""
    law = KeyLaw(requests=20_000, keys=1000, scan_every=5000, scan_length=100)
    trace = zipf_trace(law, 3)
    assert trace == zipf_trace(law, 3)
    assert trace != zipf_trace(law, 4)
    assert len(trace.keys) == 20_400
    assert sorted(key for key in trace.keys if key >= 1000) == list(range(1000, 1400))
    assert 1.7 < trace.keys.count(0) / trace.keys.count(1) < 2.3
    assert trace.distinct_bytes == sum(trace.sizes[key] for key in set(trace.keys))


def test_question_trace_has_a_key_for_each_text_and_version() -> None:
    """The same words after a write that changed the answer are another key."""
    asks = tuple(
        Ask(n, 0, n, text, "q", Kind.EXACT, (), v)
        for n, (text, v) in enumerate([("a", 0), ("b", 0), ("a", 0), ("a", 1)])
    )
    assert question_trace(Trace("s", 1, Law(), (), asks)).keys == [0, 1, 0, 2]
