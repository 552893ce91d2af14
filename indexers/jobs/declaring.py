"""The metadata fields that a job declares: those that it names, and those that it fills by itself."""

from __future__ import annotations

from collections.abc import Mapping

from indexers.jobs.running.mapping import POLICY_FIELD
from indexers.jobs.spec import JobSpec
from indexers.language import LANGUAGE_FIELD
from indexers.types import FieldType


def declared_fields(spec: JobSpec, existing: Mapping[str, FieldType]) -> dict[str, FieldType]:
    """Returns the fields to declare; what a collection declares already as something else is left to the job's own."""
    fields = {name: FieldType(kind) for name, kind in spec.metadata.fields.items()}
    filled = [POLICY_FIELD] if spec.policy_class else []
    filled += [LANGUAGE_FIELD] if spec.parsing.detect_language else []
    for name in filled:
        if name not in existing:
            fields.setdefault(name, FieldType.KEYWORD)
    return {name: kind for name, kind in fields.items() if existing.get(name) is not kind}
