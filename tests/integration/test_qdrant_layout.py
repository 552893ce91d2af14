"""What is asked of a Qdrant server when collections are made, and how it is reached."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
import trustme
from qdrant_client import grpc as qdrant

from indexers.errors import IndexUnavailable
from indexers.models import OneModel
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import ClusterShape, QdrantOptions, StorageShape
from indexers.types import CollectionKey, FieldType
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, found_documents, hybrid
from tests.fakes.qdrant_servicer import FakeQdrant, serving

KEY = CollectionKey("tenant", "docs")
CHUNKS = "headrace.tenant.docs.g0"
QUANTIZED = StorageShape(vectors_on_disk=True, graph_on_disk=True, quantize=True, oversampling=3.0)


@asynccontextmanager
async def _catalog(fake: FakeQdrant, options: QdrantOptions) -> AsyncIterator[QdrantCatalog]:
    async with serving(fake) as port:
        catalog = QdrantCatalog(
            replace(options, host="127.0.0.1", grpc_port=port, build_automatically=False), OneModel(MODEL)
        )
        try:
            yield catalog
        finally:
            await catalog.close()


async def test_collections_are_spread_as_configured() -> None:
    """Shards, copies and confirmations go into every physical collection; more than half confirm by themselves."""
    fake, cluster = FakeQdrant(), ClusterShape(shard_number=3, replication_factor=3)
    async with _catalog(fake, QdrantOptions("", cluster=cluster)) as catalog:
        await catalog.create(KEY, {}, "")
    assert len(fake.created) == 3
    for made in fake.created.values():
        numbers = (made.shard_number, made.replication_factor, made.write_consistency_factor)
        assert numbers == (3, 3, 2)


async def test_payload_indexes_come_before_the_data() -> None:
    """Every index is there before the first point, and the tenant's says what it is."""
    fake = FakeQdrant()
    async with _catalog(fake, QdrantOptions("")) as catalog:
        index = await catalog.create(KEY, {"lang": FieldType.KEYWORD, "year": FieldType.INTEGER}, "")
        made = dict(fake.collections[CHUNKS].indexes)
        assert set(made) == {"tenant", "document_id", "version", "fields.lang", "fields.year"}
        assert made["tenant"].field_index_params.keyword_index_params.is_tenant
        assert "owner" in fake.collections["headrace.tenant.docs.documents.d0"].indexes
        await index.upsert([encoded("d", ["words"], {"lang": "en", "year": 2021})])
        assert fake.collections[CHUNKS].indexes == made
        filled = len(fake.calls)
        await index.build()
        since = fake.calls[filled:]
        last_index = max(at for at, call in enumerate(since) if call == "CreateFieldIndex")
        assert "Upsert" in since[last_index:]
        assert "Upsert" not in since[: last_index + 1]


async def test_quantized_vectors_only_choose() -> None:
    """int8 vectors choose more hits than are wanted, originals score them; given hits are scored by originals alone."""
    fake = FakeQdrant()
    async with _catalog(fake, QdrantOptions("", storage=QUANTIZED)) as catalog:
        index = await catalog.create(KEY, {}, "")
        await index.upsert([encoded("d", ["alpha beta"])])
        dense = fake.declared["dense"]
        assert dense.quantization_config.scalar.type == qdrant.QuantizationType.Int8
        assert dense.quantization_config.scalar.always_ram
        assert (dense.on_disk, dense.hnsw_config.on_disk) == (True, True)
        assert await found_documents(index, hybrid(index, "alpha")) == {"d"}
        params = [one.params.quantization for one in fake.asked]
        assert [(one.ignore, one.rescore) for one in params] == [
            (False, True),
            (False, True),
            (True, True),
            (True, True),
        ]
        assert [one.oversampling for one in params[:2]] == [3.0, 3.0]
        assert fake.asked[2].prefetch[0].params.quantization.rescore
        await index.search(hybrid(index, "alpha", exact=True), None)
        assert all(one.params.quantization.ignore for one in fake.asked)


@pytest.mark.parametrize("consistency", ["one", "majority"])
async def test_writers_decide_by_what_most_copies_say(consistency: str) -> None:
    """However many copies a search asks, a writer's reads ask for more than one where there are several."""
    fake = FakeQdrant()
    cluster = ClusterShape(replication_factor=3, read_consistency=consistency, write_ordering="weak")  # type: ignore[arg-type]
    async with _catalog(fake, QdrantOptions("", cluster=cluster)) as catalog:
        index = await catalog.create(KEY, {}, "")
        await index.upsert([encoded("d", ["words"])], since=0)
    assert {one.read_consistency.type for one in fake.reads} == {qdrant.ReadConsistencyType.Majority}
    orderings = {(name, one.ordering.type) for name, one in fake.writes}
    assert ("SetPayload", qdrant.WriteOrderingType.Strong) in orderings
    assert ("Upsert", qdrant.WriteOrderingType.Weak) in orderings
    assert {name for name, one in fake.writes if not one.wait} == set()


async def test_server_is_checked_by_its_own_authority(tmp_path: Path) -> None:
    """With the right certificates the key goes over TLS; with others, or none, nothing is said to the server."""
    authority, other = trustme.CA(), trustme.CA()
    certificate = authority.issue_cert("localhost")
    key, chain = certificate.private_key_pem.bytes(), b"".join(one.bytes() for one in certificate.cert_chain_pems)
    right, wrong = tmp_path / "right.pem", tmp_path / "wrong.pem"
    authority.cert_pem.write_to_path(right)
    other.cert_pem.write_to_path(wrong)
    fake = FakeQdrant()
    async with serving(fake, grpc.ssl_server_credentials([(key, chain)])) as port:
        options = QdrantOptions("localhost", port, api_key="secret", tls=True, ca_file=right)
        for file, reached in ((wrong, False), (None, False), (right, True)):
            catalog = QdrantCatalog(replace(options, ca_file=file), OneModel(MODEL))
            if reached:
                await catalog.create(KEY, {}, "")
            else:
                with pytest.raises(IndexUnavailable):
                    await catalog.create(KEY, {}, "")
                assert fake.calls == []
            await catalog.close()
    assert fake.api_keys == {"secret"}
