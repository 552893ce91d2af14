"""Migrations: protobuf messages to values and back."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from headrace.v1 import migrations_pb2
from indexers.migrating.migration import Standing
from indexers.types import CollectionDefinition
from retrieval.errors import InvalidRequest
from retrieval.migrating.types import (
    MAX_NDCG_LOSS,
    MIN_RECALL,
    Bounds,
    LabelledQuestion,
    MigrationState,
    Wanted,
)

MAX_QUESTIONS = 10_000
_QUERY_CHARACTERS = 4_096
_STEPS = dict(migrations_pb2.MigrationStep.items())


def wanted_from_pb(message: migrations_pb2.MigrateCollectionRequest) -> Wanted:
    """Returns what is asked for.

    Raises:
        InvalidRequest: a number or a question is out of bounds.
    """
    recall = message.min_recall if message.HasField("min_recall") else MIN_RECALL
    loss = message.max_ndcg_loss if message.HasField("max_ndcg_loss") else MAX_NDCG_LOSS
    for name, value in (("min_recall", recall), ("max_ndcg_loss", loss)):
        if not 0.0 <= value <= 1.0:
            raise InvalidRequest(name, "0..1", f"{name} is {value}; it must be from 0 to 1")
    if len(message.questions) > MAX_QUESTIONS:
        bound = f"at most {MAX_QUESTIONS}"
        raise InvalidRequest("questions", bound, f"{len(message.questions)} questions were sent; send {bound}")
    if message.back and message.model:
        raise InvalidRequest("model", "empty with back", "model and back are both given; give one")
    token_vectors = message.token_vectors if message.HasField("token_vectors") else None
    questions = tuple(_question(one, f"questions[{at}]") for at, one in enumerate(message.questions))
    return Wanted(message.model, message.back, token_vectors, Bounds(recall, loss), questions)


def _question(message: migrations_pb2.LabelledQuestion, field: str) -> LabelledQuestion:
    if not 1 <= len(message.query) <= _QUERY_CHARACTERS:
        bound = f"1 to {_QUERY_CHARACTERS} characters"
        raise InvalidRequest(f"{field}.query", bound, f"{field}.query must have {bound}")
    relevance = dict(message.relevance)
    if not any(relevance.values()):
        bound = "at least one document above 0"
        raise InvalidRequest(f"{field}.relevance", bound, f"{field}.relevance must name {bound}")
    return LabelledQuestion(message.query, relevance)


def migration_to_pb(state: MigrationState) -> migrations_pb2.Migration:
    """Returns a migration as a message."""
    message = migrations_pb2.Migration(
        model=state.model,
        step=migrations_pb2.MigrationStep.ValueType(_STEPS[f"MIGRATION_STEP_{state.step.name}"]),
        documents_done=state.documents_done,
        documents=state.documents,
        encoded=state.encoded,
        duration=Duration(seconds=int(state.duration_s), nanos=int(state.duration_s % 1 * 1e9)),
        reason="" if state.error is None else str(state.error),
    )
    if (check := state.check) is not None:
        message.check.recall, message.check.sampled = check.recall, check.sampled
        if check.ndcg_before is not None:
            message.check.ndcg_before = check.ndcg_before
        if check.ndcg_after is not None:
            message.check.ndcg_after = check.ndcg_after
    return message


def standing_to_pb(standing: Standing, state: MigrationState | None) -> migrations_pb2.GetMigrationResponse:
    """Returns where a collection stands."""
    message = migrations_pb2.GetMigrationResponse(
        serving=_model(standing.serving), building=_model(standing.building), previous=_model(standing.previous)
    )
    if state is not None:
        message.migration.CopyFrom(migration_to_pb(state))
    return message


def _model(definition: CollectionDefinition | None) -> str:
    return "" if definition is None else f"{definition.dense_model_id}@{definition.dense_revision}"
