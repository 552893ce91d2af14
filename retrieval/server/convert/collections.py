"""Collections: protobuf messages to values and back."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.v1 import common_pb2, index_pb2
from indexers.index import Index
from indexers.types import Counts, FieldType
from retrieval.errors import InvalidRequest
from retrieval.server.convert.ledgers import epoch_to_pb
from retrieval.server.convert.metadata import datetime_to_pb

MAX_DESCRIPTION_CHARACTERS = 1024
_NUMBERS = {kind: common_pb2.FieldType.Value(f"FIELD_TYPE_{kind.name}") for kind in FieldType}
_TYPES = {number: kind for kind, number in _NUMBERS.items()}


def collection_to_pb(index: Index, counts: Counts) -> index_pb2.Collection:
    """Returns the collection as a message."""
    definition = index.definition
    return index_pb2.Collection(
        name=definition.key.collection,
        description=definition.description,
        fields=fields_to_pb(definition.fields),
        dense_model=definition.dense_model_id,
        dim=definition.dim,
        epoch=epoch_to_pb(index.epoch),
        document_count=counts.documents,
        chunk_count=counts.chunks,
        create_time=datetime_to_pb(definition.created_at),
        token_vectors=definition.code_bytes > 0,
        token_code_bytes=definition.code_bytes,
    )


def fields_to_pb(fields: Mapping[str, FieldType]) -> dict[str, common_pb2.FieldType.ValueType]:
    """Returns declared fields as a message has them."""
    return {name: _NUMBERS[kind] for name, kind in fields.items()}


def fields_from_pb(fields: Mapping[str, int]) -> dict[str, FieldType]:
    """Returns the declared fields; their names and number are for the catalog to check.

    Raises:
        InvalidRequest: a field's type is not given or not known.
    """
    for name, number in fields.items():
        if number not in _TYPES:
            field, bound = f"fields.{name}", "one of the declared types"
            raise InvalidRequest(field, bound, f"{field} has no known type; give {bound}")
    return {name: _TYPES[common_pb2.FieldType.ValueType(number)] for name, number in fields.items()}


def checked_description(description: str) -> str:
    """Returns the description as it is.

    Raises:
        InvalidRequest: it is too long.
    """
    if len(description) > MAX_DESCRIPTION_CHARACTERS:
        bound = f"at most {MAX_DESCRIPTION_CHARACTERS} characters"
        raise InvalidRequest("description", bound, f"description must have {bound}; shorten it")
    return description
