"""The nearest stored questions of one partition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from encoders.cpu import one_blas_thread
from retrieval.answers.nearest import NearestQuestions, Neighbour
from retrieval.answers.nearest_bounds import SCAN_ROWS, Bounds
from retrieval.answers.nearest_rows import CHUNK_ROWS, Rows

Vector = NDArray[np.float32]
DIM = 192


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Keeps products on the calling thread, as the server does."""
    with one_blas_thread():
        yield


def clustered(count: int, seed: int = 7) -> Vector:
    """Returns unit vectors in clusters, with a few directions that matter more, as those of questions have."""
    random = np.random.default_rng(seed)
    scale = np.linspace(1.0, 0.1, DIM)
    centers = random.standard_normal((max(1, count // 5), DIM))
    vectors = (centers[random.integers(0, len(centers), count)] + 0.8 * random.standard_normal((count, DIM))) * scale
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def unit(*values: float) -> Vector:
    """Returns the vector of these values scaled to unit length."""
    vector = np.array(values)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def key(number: int) -> bytes:
    """Returns the key of a row."""
    return number.to_bytes(4, "big")


def filled(vectors: Vector) -> NearestQuestions:
    """Returns a partition with the vectors."""
    nearest = NearestQuestions(vectors.shape[1])
    for number, vector in enumerate(vectors):
        nearest.add(key(number), vector)
    return nearest


def scanned(vectors: Vector, vector: Vector, limit: int, least: float) -> list[Neighbour]:
    """Returns what a scan of all rows finds; every row is summed by itself, so that equal rows are equal."""
    cosines = np.vecdot(vectors, vector)
    found = [Neighbour(key(number), float(cosine)) for number, cosine in enumerate(cosines) if cosine >= least]
    return sorted(found, key=lambda neighbour: (-neighbour.similarity, neighbour.key))[:limit]


def assert_same(found: list[Neighbour], expected: list[Neighbour]) -> None:
    """Compares two results; cosines may differ by what normalising twice changes."""
    assert [neighbour.key for neighbour in found] == [neighbour.key for neighbour in expected]
    assert [neighbour.similarity for neighbour in found] == pytest.approx(
        [neighbour.similarity for neighbour in expected], abs=1e-6
    )


@pytest.fixture(scope="module")
def many() -> Vector:
    """More rows than a chunk holds."""
    return clustered(CHUNK_ROWS + 3_000)


def test_search_of_nothing_finds_nothing() -> None:
    """A partition without entries has no neighbours and takes next to no memory."""
    nearest = NearestQuestions(384)
    assert nearest.search(unit(*range(1, 385)), 5, -1.0) == []
    assert len(nearest) == 0
    assert nearest.used_bytes < 2_000


def test_search_returns_the_best_first_down_to_the_least_similarity() -> None:
    """Neighbours come by falling cosine; those below the least similarity do not."""
    nearest = NearestQuestions(2)
    nearest.add(b"same", unit(1, 0))
    nearest.add(b"near", unit(3, 4))
    nearest.add(b"right angle", unit(0, 1))
    found = nearest.search(unit(1, 0), 5, 0.5)
    assert [(neighbour.key, round(neighbour.similarity, 6)) for neighbour in found] == [(b"same", 1.0), (b"near", 0.6)]


def test_search_returns_at_most_the_limit() -> None:
    """No more than `limit` come, and those are the best."""
    nearest = filled(clustered(50))
    everything = nearest.search(clustered(1, seed=1)[0], 50, -1.0)
    assert len(everything) == 50
    assert nearest.search(clustered(1, seed=1)[0], 3, -1.0) == everything[:3]


def test_equal_vectors_come_by_key() -> None:
    """Among equal similarities the smaller key is first, whatever the order of adding and wherever the rows lie."""
    nearest = NearestQuestions(DIM)
    vectors = clustered(100)
    for number in reversed(range(100)):
        nearest.add(key(number), vectors[number % 7])
    found = nearest.search(vectors[3], 5, 0.99)
    assert [neighbour.key for neighbour in found] == [key(number) for number in (3, 10, 17, 24, 31)]


def test_an_equal_vector_reaches_a_least_similarity_of_one() -> None:
    """Rounding does not hide a question from itself, and no similarity is above 1."""
    vectors = clustered(200)
    nearest = filled(vectors)
    for number, vector in enumerate(vectors):
        [found] = nearest.search(vector, 1, 1.0)
        assert found.key == key(number)
        assert found.similarity <= 1.0


def test_add_replaces_the_vector_of_a_key() -> None:
    """A key has one vector, the last, and the next search sees it."""
    nearest = NearestQuestions(2)
    nearest.add(b"a", unit(1, 0))
    nearest.add(b"a", unit(0, 1))
    assert len(nearest) == 1
    assert nearest.search(unit(1, 0), 5, 0.5) == []
    assert [neighbour.key for neighbour in nearest.search(unit(0, 1), 5, 0.5)] == [b"a"]


def test_remove_says_whether_the_key_was_there() -> None:
    """A removed key is found no more (SEM-08: vectors do not outlive their answers); the others stay."""
    nearest = filled(clustered(20))
    assert nearest.remove(key(4))
    assert not nearest.remove(key(4))
    assert key(4) not in nearest
    found = nearest.search(clustered(20)[4], 50, -1.0)
    assert sorted(neighbour.key for neighbour in found) == [key(number) for number in range(20) if number != 4]


def test_bytes_are_given_back_when_everything_is_removed() -> None:
    """An emptied partition is as small as a new one."""
    vectors = clustered(SCAN_ROWS + 300)
    nearest = filled(vectors)
    full = nearest.used_bytes
    for number in range(len(vectors)):
        nearest.remove(key(number))
    assert full > vectors.nbytes
    assert nearest.used_bytes == NearestQuestions(DIM).used_bytes


def test_a_small_partition_is_small() -> None:
    """Ten questions take some tens of kilobytes at most, not a block made for thousands."""
    nearest = filled(clustered(10))
    assert nearest.used_bytes < 20_000


@pytest.mark.parametrize("least", [0.5, 0.7, 0.95])
@pytest.mark.parametrize("limit", [1, 8, 100])
def test_a_large_partition_is_searched_exactly(
    large: tuple[NearestQuestions, Vector], least: float, limit: int
) -> None:
    """With bounds, in several blocks, the result is that of a scan: near questions, far ones and stored ones."""
    nearest, vectors = large
    random = np.random.default_rng(5)
    asked = [*clustered(12, seed=9), *vectors[::2_400], *(unit(*random.standard_normal(DIM)) for _ in range(4))]
    for vector in asked:
        assert_same(nearest.search(vector, limit, least), scanned(vectors, vector, limit, least))


def test_the_nearest_is_found_however_low_the_bar(large: tuple[NearestQuestions, Vector]) -> None:
    """When more rows might belong to the result than are looked at, the best of all is still among those."""
    nearest, vectors = large
    for vector in clustered(20, seed=9):
        assert_same(nearest.search(vector, 1, -1.0), scanned(vectors, vector, 1, -1.0))


@pytest.fixture(scope="module")
def large(many: Vector) -> tuple[NearestQuestions, Vector]:
    """A partition with bounds and its vectors."""
    return filled(many), many


def test_additions_are_seen_while_directions_are_sought() -> None:
    """Between any two steps of fitting and converting, the row just added and older ones are found."""
    vectors = clustered(SCAN_ROWS + 200)
    nearest = filled(vectors[: SCAN_ROWS - 20])
    for number in range(SCAN_ROWS - 20, len(vectors)):
        nearest.add(key(number), vectors[number])
        older = number * 7 % SCAN_ROWS
        assert nearest.search(vectors[number], 1, 0.9)[0].key == key(number)
        assert nearest.search(vectors[older], 1, 0.9)[0].key == key(min(older, number)) or older > number


def test_removals_while_blocks_are_converted_leave_nothing_wrong() -> None:
    """A block that shrinks, vanishes and comes again while it is being converted has the right bounds afterwards."""
    vectors = clustered(3 * SCAN_ROWS)
    rows = Rows(DIM)
    bounds = Bounds(rows)
    random = np.random.default_rng(3)
    for _ in range(20):
        while len(rows) < random.integers(SCAN_ROWS + 1, len(vectors)):
            rows.append(vectors[len(rows)])
            bounds.appended()
            bounds.step()
        while len(rows) > random.integers(1, SCAN_ROWS):
            rows.pop()
            bounds.popped()
            if random.random() < 0.1:
                bounds.step()
        for vector in vectors[:: SCAN_ROWS // 2]:
            cosines = vectors[: len(rows)] @ vector
            coarse = bounds.coarse(vector)
            fine = coarse.copy()
            bounds.refine(vector, fine)
            assert (coarse >= fine - 1e-5).all()
            assert (fine >= cosines - 1e-5).all()


def test_rows_of_few_dimensions_are_found_in_large_partitions() -> None:
    """Below the dimensions that bounds need, everything is scanned."""
    vectors = np.ascontiguousarray(clustered(SCAN_ROWS + 50)[:, :8])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = filled(vectors)
    assert_same(nearest.search(vectors[5], 4, 0.9), scanned(vectors, vectors[5], 4, 0.9))


def test_rows_that_lie_in_few_directions_are_found() -> None:
    """Where nothing is left beside the directions, rounding of the rest's length does not cut off the best."""
    vectors = np.zeros((SCAN_ROWS + 400, DIM), dtype=np.float32)
    vectors[:, :3] = np.random.default_rng(2).standard_normal((len(vectors), 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = filled(vectors)
    for vector in vectors[::500]:
        assert_same(nearest.search(vector, 5, 0.9), scanned(vectors, vector, 5, 0.9))


@pytest.mark.parametrize(
    ("vector", "named"),
    [
        (np.ones(3, dtype=np.float32), r"shape \(2,\), not \(3,\)"),
        (np.ones((1, 2), dtype=np.float32), r"shape \(2,\), not \(1, 2\)"),
        (np.array([np.nan, 0.0], dtype=np.float32), "finite"),
        (np.array([np.inf, 0.0], dtype=np.float32), "finite"),
        (np.array([0.0, 0.0], dtype=np.float32), r"length 1 within 0\.001, not 0\.0"),
        (np.array([1.01, 0.0], dtype=np.float32), r"length 1 within 0\.001"),
    ],
)
def test_vectors_that_are_none_are_refused(vector: Vector, named: str) -> None:
    """A wrong shape, NaN, infinity and any length but 1 are refused by name, and nothing is stored."""
    nearest = NearestQuestions(2)
    with pytest.raises(ValueError, match=named):
        nearest.add(b"a", vector)
    with pytest.raises(ValueError, match=named):
        nearest.search(vector, 1, 0.0)
    assert len(nearest) == 0


@pytest.mark.parametrize(
    ("limit", "least", "named"),
    [(0, 0.5, "limit must be at least 1"), (1, 1.5, "between -1 and 1"), (1, float("nan"), "between -1 and 1")],
)
def test_bounds_of_a_search_are_named(limit: int, least: float, named: str) -> None:
    """A limit below 1 and a similarity that no cosine has are refused."""
    with pytest.raises(ValueError, match=named):
        NearestQuestions(2).search(unit(1, 0), limit, least)


def test_dimensions_below_one_are_refused() -> None:
    """There is no partition of no dimensions."""
    with pytest.raises(ValueError, match="at least 1"):
        NearestQuestions(0)
