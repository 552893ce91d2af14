"""What must not be cached: by tenant, by collection, or by what a document's metadata says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from indexers.types import Metadata
from retrieval.caching.written import is_written
from retrieval.settings.caching import CachePolicySettings
from retrieval.types import Hit


def may_cache(policies: Sequence[CachePolicySettings], tenant: str, collection: str) -> bool:
    """Tells whether anything of this collection may be cached."""
    return not any(_concerns(policy, tenant, collection) and not policy.field for policy in policies)


def may_keep(policies: Sequence[CachePolicySettings], tenant: str, collection: str, hits: Iterable[Hit]) -> bool:
    """Tells whether a result or an answer made from these passages may be kept."""
    ours = [policy for policy in policies if policy.field and _concerns(policy, tenant, collection)]
    return not ours or not any(
        holds_value(hit.passage.metadata, policy.field, (policy.value,)) for hit in hits for policy in ours
    )


def holds_value(metadata: Metadata, field: str, values: Sequence[str]) -> bool:
    """Tells whether a metadata field has one of the values. Without values any will do.

    A field of several values has each of them. They are compared as `is_written` says.
    """
    held = metadata.get(field)
    ones = held if isinstance(held, tuple) else () if held is None else (held,)
    return bool(ones) and (not values or any(is_written(one, text) for one in ones for text in values))


def _concerns(policy: CachePolicySettings, tenant: str, collection: str) -> bool:
    return policy.tenant in ("", tenant) and policy.collection in ("", collection)
