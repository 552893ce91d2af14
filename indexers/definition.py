"""Making and changing what a collection promises; the same rules for every catalog."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from encoders.bm25 import NO_STATISTICS
from encoders.learned import NO_LEARNED_STATISTICS
from encoders.term_statistics import TermStatistics
from indexers.errors import ModelMismatch, SchemaConflict
from indexers.names import check_fields, check_key
from indexers.options import DenseModel, SparseModel
from indexers.types import CollectionDefinition, CollectionKey, FieldType


def new_definition(
    key: CollectionKey, fields: Mapping[str, FieldType], description: str, model: DenseModel, *, token_vectors: bool
) -> CollectionDefinition:
    """Returns the definition of a new collection for the vectors of a model, token vectors too if they are wanted.

    Raises:
        InvalidName, InvalidInput: a name or the number of fields is out of bounds.
    """
    return CollectionDefinition(
        key=check_key(key),
        fields=check_fields(fields),
        description=description,
        dense_model_id=model.model_id,
        dense_revision=model.revision,
        dim=model.dim,
        created_at=datetime.now(UTC),
        code_bytes=model.codec.code_bytes if token_vectors and model.codec is not None else 0,
        sparse_model_id=model.sparse.model_id if model.sparse else "",
        sparse_revision=model.sparse.revision if model.sparse else "",
    )


def no_statistics(definition: CollectionDefinition) -> TermStatistics:
    """Returns the term statistics of the collection when it is empty: of the kind that all its later ones are of."""
    return NO_LEARNED_STATISTICS if definition.sparse_model_id else NO_STATISTICS


def added_fields(declared: Mapping[str, FieldType], asked: Mapping[str, FieldType]) -> dict[str, FieldType]:
    """Returns the declared fields and the asked ones together.

    Raises:
        SchemaConflict: a declared field would change its type.
    """
    for name, kind in asked.items():
        if declared.get(name, kind) is not kind:
            raise SchemaConflict(name, declared[name].value, kind.value)
    return check_fields({**declared, **asked})


def check_model(definition: CollectionDefinition, model: DenseModel, reason: str = "") -> None:
    """Refuses a collection that holds another model's vectors (case VEC-04); `reason` says why those are of no use.

    Raises:
        ModelMismatch: says both models with their dimensions.
    """
    sparse = SparseModel(definition.sparse_model_id, definition.sparse_revision) if definition.sparse_model_id else None
    stored = DenseModel(definition.dense_model_id, definition.dense_revision, definition.dim, sparse=sparse)
    if stored != model:
        raise ModelMismatch(
            collection=definition.key.collection,
            stored=_named(stored),
            stored_dim=stored.dim,
            configured=_named(model),
            configured_dim=model.dim,
            reason=reason,
        )


def is_of(definition: CollectionDefinition, model: DenseModel) -> bool:
    """Tells whether a collection holds a model's vectors."""
    try:
        check_model(definition, model)
    except ModelMismatch:
        return False
    return True


def _named(model: DenseModel) -> str:
    sparse = "" if model.sparse is None else f" with {model.sparse.model_id}@{model.sparse.revision}"
    return f"{model.model_id}@{model.revision}{sparse}"
