"""What was learned of similar questions, apart for each collection of each tenant, and as much of it as has room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from indexers.types import CollectionKey
from retrieval.answers.risk import RiskControl
from retrieval.caching.keys import CacheKey

_MOST_COLLECTIONS = 256


class Risks:
    """The risk controls; the one that was not used for longest gives way."""

    def __init__(self, most: int = _MOST_COLLECTIONS) -> None:
        self._most = most
        self._controls: OrderedDict[CollectionKey, RiskControl] = OrderedDict()

    def of(self, collection: CollectionKey) -> RiskControl:
        """Returns the control of a collection, a new one if there is none."""
        control = self._controls.get(collection)
        if control is None:
            control = self._controls[collection] = RiskControl()
            if len(self._controls) > self._most:
                self._controls.popitem(last=False)
        self._controls.move_to_end(collection)
        return control

    def of_tenant(self, tenant: str) -> Iterator[tuple[str, RiskControl]]:
        """Yields the tenant's collections, by name, with their controls."""
        for key in sorted(self._controls, key=lambda key: key.collection):
            if key.tenant == tenant:
                yield key.collection, self._controls[key]

    def forget(self, key: CacheKey) -> None:
        """Drops what is known of an answer that is gone."""
        control = self._controls.get(CollectionKey(key.tenant, key.collection))
        if control is not None:
            control.forget(key.digest)
