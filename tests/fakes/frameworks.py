"""A collection for the adapters' tests, and the environment in which frameworks send nothing to anybody.

Imported before any framework is, since Haystack reads its variable when it is imported.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ["LANGSMITH_TRACING"] = "false"

from headrace.v1 import common_pb2 as common
from retrieval.client import Client, document

QUESTION = "How thick are the walls of the penstock?"
FIELDS = {
    "kind": common.FIELD_TYPE_KEYWORD,
    "year": common.FIELD_TYPE_INTEGER,
    "checked": common.FIELD_TYPE_DATETIME,
    "tags": common.FIELD_TYPE_KEYWORD,
    "page": common.FIELD_TYPE_INTEGER,
}
CHECKED = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
DOCUMENTS = (
    document(
        "penstock",
        "The penstock of the plant is a steel pipe with walls of 24 millimetres.",
        title="Penstock",
        metadata={"kind": "pipe", "year": 1998, "checked": CHECKED, "tags": ("steel", "pressure"), "page": 7},
        source_uri="file:///plant/penstock.md",
    ),
    document(
        "gate",
        "The intake gate closes in 12 seconds when the turbine trips.",
        metadata={"kind": "gate", "year": 2011, "checked": datetime(2020, 1, 1, tzinfo=UTC), "tags": ("steel",)},
    ),
    document("fish", "Eels pass the weir through a ladder on the left bank.", metadata={"kind": "ladder"}),
)


async def fill(client: Client, collection: str) -> None:
    """Indexes the documents."""
    await client.create_collection(collection, fields=FIELDS)
    await client.upsert(collection, DOCUMENTS)
