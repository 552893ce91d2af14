"""The formulas of `bench.scale`, against figures worked out by hand, published ones, and what the product does."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bench._common.results import plain
from bench._common.scale import formulas
from bench._common.scale.costs import (
    Costs,
    Driver,
    Encoding,
    Reading,
    Record,
    Remembered,
    Served,
    Size,
    Wire,
    costs_of,
)
from bench._common.scale.growth import growth_of
from bench._common.scale.indexing_tables import timeouts, work_of
from bench._common.scale.numbers import digits, in_bytes, in_time, size, table
from bench._common.scale.paper import sections, written_into
from bench._common.scale.server_tables import point_of
from indexers.models import OneModel
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from indexers.types import CollectionKey
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded
from tests.fakes.qdrant_servicer import FakeQdrant, serving

_REPOSITORY = Path(__file__).resolve().parents[2]


def _size(chunks: int, graph_bytes: int) -> Size:
    """A size at which a chunk takes a millisecond to build, and each search as long as the logarithm says."""
    served = Served(chunks * 2e-3, chunks * 500, chunks * 3_000, math.log(chunks), chunks * 1e-3, 1.0)
    return Size(chunks, chunks, chunks * 1e-3, 1_000, chunks * 7_000, graph_bytes, chunks, served, served)


@pytest.fixture
def costs() -> Costs:
    """Returns unit costs that are easy to reckon with."""
    return Costs(
        encoding=Encoding(400, 200, 50, 2, 180.0, 50.0, 8_000.0, 10_000.0, 9_000.0, 1.0),
        reading=Reading(800.0, 2.0, 0.1, 0.5, 1.9),
        record=Record(500.0, 500.0, 100.0, 1_600.0, 248.0, 2_500.0, 40.0, 6_000.0),
        sizes=(_size(5_000, 0), _size(10_000, 1), _size(20_000, 1)),
        further=(),
        driver=Driver(1_000, 0.4, 0.1, 500.0, 10_000.0),
        wire=Wire(1.0, 0.1, 1.0, 50_000.0, 1_600.0, 1_600.0),
        remembered=Remembered(150.0, 200.0, 100.0, 2_400.0, 600.0),
        load_average=0.1,
    )


def test_links_are_those_of_the_paper_on_hnsw() -> None:
    """With M = 16: 32 links at the bottom, and 16 for each of 1 / ln(16) layers above it."""
    assert formulas.link_bytes(16) == pytest.approx(4 * (32 + 16 / 2.772589), rel=1e-6)


def test_rule_of_thumb_is_the_published_one() -> None:
    """Qdrant's example: a million vectors of 1,024 numbers are 6,144,000,000 bytes."""
    assert formulas.planned_bytes(1_000_000, 1_024) == 6_144_000_000


def test_parts_add_up_to_the_published_memory_of_a_large_collection() -> None:
    """LAION-400M: bits of 512 dimensions, twice 6 links of 4 bytes, ids; 53.81 GiB were observed."""
    vectors, links, ids = 512 / 8, 2 * 6 * formulas.LINK_BYTES, formulas.id_bytes(external=8)
    assert 400_000_000 * (vectors + links + ids) / 2**30 == pytest.approx(53.81, rel=0.01)


def test_point_in_memory_leaves_originals_on_disk() -> None:
    """What is in memory stands on disk too, and sparse vectors twice."""
    point = formulas.PointBytes(100, 25, 10, 5, 8, 2, 1_000, 50, 40)
    assert point.memory(originals_on_disk=True) == 25 + 10 + 5 + 8 + 2
    assert point.memory(originals_on_disk=False) == 150
    assert point.disk == 100 + 25 + 10 + 5 + 16 + 2 + 1_000 + 50 + 40


def test_token_vectors_are_sixteen_times_their_codes() -> None:
    """Two bits a number in the record, 32 on a server."""
    assert formulas.token_bytes(10, 240) == 16 * 10 * 60


def test_nodes_hold_copies_and_are_at_least_three() -> None:
    """Of 100 bytes 80 are used; 200 in two copies take five such nodes."""
    assert formulas.nodes(200, 100) == 5
    assert formulas.nodes(1, 100) == 3
    assert formulas.nodes(1, 100, copies=4) == 4


def test_embedding_is_linear_in_chunks_and_cores() -> None:
    """A thousand chunks of 150 tokens at 7,500 a second and core."""
    assert formulas.embedding_s(1_000, 150, 7_500, 1) == 20
    assert formulas.embedding_s(10_000, 150, 7_500, 4) == 50


def test_run_goes_as_its_slowest_part() -> None:
    """Ten cores are fed by this driver; more of them wait."""
    assert formulas.cores_fed(100.0, 10.0) == 10
    assert formulas.run_s(100.0, 5, 10.0) == 20
    assert formulas.run_s(100.0, 1_000, 10.0) == 10


async def test_write_takes_as_many_calls_as_the_product_makes() -> None:
    """A conditional write of new documents, and both looks beside it, counted by a server."""
    fake = FakeQdrant()
    async with serving(fake) as port:
        catalog = QdrantCatalog(QdrantOptions("127.0.0.1", port, build_automatically=False), OneModel(MODEL))
        index = await catalog.create(CollectionKey("default", "counted"), {}, "")
        for documents, texts in ((1, 1), (64, 2), (20, 60)):
            written = [
                encoded(f"{documents}-{number}", [f"pump {number} seal {text}" for text in range(texts)])
                for number in range(documents)
            ]
            fake.calls.clear()
            await index.upsert(written, 0)
            calls = formulas.write_calls(documents, documents * texts, 4)
            assert len(fake.calls) == calls, Counter(fake.calls)
            fake.calls.clear()
            await index.current_epoch()
            await index.look_up([one.document.document_id for one in written])
            assert len(fake.calls) == formulas.LOOK_CALLS
        await catalog.close()


def test_server_write_is_calls_and_the_clients_work() -> None:
    """Two documents of 10 chunks, 100 token vectors each: 11 a piece, so 2 pieces; 1 + 2 + 7 + 6 calls."""
    assert formulas.write_calls(2, 20, 100) == 1 + 2 + 7
    assert formulas.server_write_s(2, 10, 100, 0.001, 0.01) == pytest.approx((16 * 0.01 + 20 * 0.001) / 2)


def test_migration_takes_as_long_as_the_slower_of_encoding_and_writing() -> None:
    """Two chunks a document, 11 of which go in a piece: a batch of 32 documents takes 3 calls, and 2 and 6 more."""
    assert formulas.migrate_s(0.02, 2, 100, 0.001, 0.0) == pytest.approx(0.04)
    assert formulas.migrate_s(0.0, 2, 100, 0.03, 0.0) == pytest.approx(0.06)
    assert formulas.migrate_s(0.0, 2, 100, 0.0, 0.01) == pytest.approx(8 / 32 * 0.01)


def test_copy_reads_fifty_and_writes_pieces() -> None:
    """With 100 token vectors a chunk 11 go in a piece, so fifty take five writes and one read."""
    assert formulas.copy_s(0.002, 100, 0.01) == pytest.approx(0.002 + 6 / 50 * 0.01)


def test_builds_follow_the_policy_of_embedded_collections() -> None:
    """Every 16,384 chunks while a tenth is less, then every tenth; the last build holds all."""
    assert formulas.changed_until_build(1_000) == 16_384
    assert formulas.changed_until_build(1_000_000) == 100_000
    assert formulas.builds_until(1_000) == [1_000]
    assert formulas.builds_until(40_000) == [16_384, 32_768, 40_000]
    sizes = formulas.builds_until(1_000_000)
    assert sizes[-2] < 1_000_000
    assert all(after == pytest.approx(before + max(16_384, 0.1 * before)) for before, after in pairwise(sizes[:-1]))


def test_copies_of_a_doubling_collection_are_twice_its_size_at_most() -> None:
    """At 64, 128, 256, ... chunks everything is copied."""
    assert formulas.doubled_chunks(256) == 64 + 128 + 256
    assert 1e6 < formulas.doubled_chunks(1e6) <= 2e6


def test_growth_is_found_again() -> None:
    """Fits give back what made the figures, and the size within a time is the inverse of the time at a size."""
    sizes = [10_000.0, 20_000.0, 30_000.0]
    power = formulas.power(sizes, [3e-4 * n**1.1 for n in sizes])
    assert (power.factor, power.exponent) == (pytest.approx(3e-4), pytest.approx(1.1))
    assert power.size_within(power.at(123_456)) == pytest.approx(123_456)
    logarithmic = formulas.logarithmic(sizes, [1 + 0.5 * math.log(n) for n in sizes])
    assert logarithmic.at(1e6) == pytest.approx(1 + 0.5 * math.log(1e6))
    assert formulas.logarithmic(sizes, [3.0, 2.0, 1.0]).at(1e9) == pytest.approx(2.0)
    assert formulas.line(sizes, [5 + 2 * n for n in sizes]).at(7) == pytest.approx(19)
    with pytest.raises(ValueError, match="two sizes"):
        formulas.power(sizes[:1], [1.0])


def test_scattered_search_asks_every_shard() -> None:
    """The caller waits for one shard, and all of them compute."""
    asked = formulas.scattered(formulas.Line(1.0, 0.001), 10_000, 10)
    assert (asked.core_s, asked.slowest_s) == (pytest.approx(20.0), pytest.approx(2.0))


def test_price_is_that_of_core_hours() -> None:
    """Two cores for half an hour at 0.5."""
    assert formulas.money(2, 1_800, 0.5) == pytest.approx(0.5)


def test_numbers_are_shown_in_units_of_people() -> None:
    """Three digits, and no unit that hides the size."""
    assert [in_bytes(value) for value in (0, 999, 52_345, 1.5e12)] == ["0 B", "999 B", "52.3 KB", "1.5 TB"]
    assert [in_time(value) for value in (2e-6, 0.0015, 90, 600, 7_200, 864_000)] == [
        "2 us",
        "1.5 ms",
        "90 s",
        "10 min",
        "2 h",
        "10 days",
    ]
    assert [size(value) for value in (1e6, 50_000, 2.5e5)] == ["10^6", "50,000", "250,000"]
    assert digits(1234.5) == "1,234"
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_parts_go_between_the_marks_and_nowhere_else() -> None:
    """A second time changes nothing; a mark too many, or one too few, is refused."""
    text = "# T\n\n<!-- figures: one -->\nold\n<!-- end -->\n\nafter\n"
    written = written_into(text, {"one": "| new |"})
    assert written == "# T\n\n<!-- figures: one -->\n| new |\n<!-- end -->\n\nafter\n"
    assert written_into(written, {"one": "| new |"}) == written
    with pytest.raises(SystemExit, match="two"):
        written_into(text, {"one": "", "two": ""})
    with pytest.raises(SystemExit, match="one"):
        written_into(text, {})


def test_growth_is_read_from_sizes_with_a_graph(costs: Costs) -> None:
    """The size without one is searched in another way; larger ones decide where there are some."""
    growth = growth_of(costs)
    assert growth.build.at(1e6) == pytest.approx(1_000)
    assert growth.dense.at(1e6) == pytest.approx(math.log(1e6) / 1e3)
    assert growth.largest == 20_000
    wider = replace(costs, further=(_size(10_000, 1), _size(100_000, 1)))
    assert growth_of(wider).largest == 100_000
    with pytest.raises(SystemExit, match="two sizes"):
        growth_of(replace(costs, sizes=costs.sizes[:2]))


def test_work_is_shared_out_to_cores_and_the_driver(costs: Costs) -> None:
    """180 tokens at 5,000 a core, half of 2 ms of reading; the driver writes two chunks in 0.4 ms."""
    work = work_of(costs, round_trip_s=0.0)
    assert work.parallel == pytest.approx(0.036 + 0.001)
    assert work.embedded == pytest.approx(0.0002)
    assert work.rows == work.files == work.client == pytest.approx(0.001)
    assert work.bare == pytest.approx(0.0001)
    assert work_of(costs).files > work_of(costs).rows > work.rows


def test_a_chunk_on_a_server_is_the_sum_of_its_parts(costs: Costs) -> None:
    """Codes of two bits are 32 bits there; without them the rest is what it was."""
    point = point_of(costs)
    assert point.originals == 1_600
    assert point.tokens == 50 * 200 * 4 == 16 * costs.record.code_bytes
    assert point_of(costs, 0.0).disk == pytest.approx(point.disk - point.tokens)
    assert point_of(costs, quantized=False).quantized == 0


def test_builds_that_fit_into_their_hour(costs: Costs) -> None:
    """A millisecond a chunk here; there 2 ms of the client, and four calls of 2 ms for fifty chunks."""
    here, there = timeouts(costs)
    assert here == pytest.approx(3.6e6)
    assert there == pytest.approx(3_600 / (0.002 + 4 / 50 * 0.002))


def test_results_are_read_as_they_were_written(costs: Costs) -> None:
    """What the tool writes, with the circumstances beside it, gives the same unit costs."""
    written = plain(costs)
    assert plain(costs_of({**written, "run": {}})) == written
    with pytest.raises(KeyError):
        costs_of({"run": {}})


def test_paper_has_a_mark_for_every_part(costs: Costs) -> None:
    """`docs/scale.md` can be written by the tool as it is, twice with the same outcome, and no part is empty."""
    paper = (_REPOSITORY / "docs/scale.md").read_text(encoding="utf-8")
    parts = sections(costs)
    written = written_into(paper, parts)
    assert written_into(written, parts) == written
    assert all(len(part.splitlines()) > 2 and part in written for part in parts.values())
    # 10^8 chunks of 180 tokens at 5,000 a core and second
    assert "| 10^8 | 1,000 |" in parts["embedding"]
