"""Which server of a backend gets a request: the one that has read its beginning before, unless it is too busy.

Servers are ranked by rendezvous hashing (Thaler and Ravishankar 1998): what begins alike goes to the same server, and
when one goes only its own requests move. Loads are bounded (Mirrokni, Thorup and Zadimoghaddam 2018): a server that has
much more to do than its siblings is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b

from retrieval.dispatch.endpoint import Endpoint
from retrieval.dispatch.types import Ticket

LOAD_FACTOR = 1.5
"""How many times the mean load a server may have and still be chosen for what it has read before."""

PATIENCE_NS = 50_000_000
"""How much longer than at another server a request may wait for the one that has read its beginning."""


def pick(key: str, endpoints: Sequence[Endpoint], ticket: Ticket) -> Endpoint:
    """Returns the server for requests that begin with what `key` names; `endpoints` is not empty."""
    if len(endpoints) == 1:
        return endpoints[0]
    waits_ns = [_wait_ns(endpoint, ticket) for endpoint in endpoints]
    loads = [endpoint.lane.running + endpoint.lane.waiting for endpoint in endpoints]
    bound = math.ceil(LOAD_FACTOR * (sum(loads) + 1) / len(endpoints))
    longest_ns = min(waits_ns) + PATIENCE_NS
    numbers = range(len(endpoints))
    fitting = [number for number in numbers if waits_ns[number] <= longest_ns and loads[number] < bound]
    if not fitting:
        return endpoints[min(numbers, key=lambda number: (waits_ns[number], loads[number]))]
    return max((endpoints[number] for number in fitting), key=lambda endpoint: _weight(key, endpoint))


def _wait_ns(endpoint: Endpoint, ticket: Ticket) -> int:
    """The predicted wait; one that cannot be predicted is longer than patience."""
    return 0 if endpoint.has_room else endpoint.lane.wait_ns(ticket) or PATIENCE_NS + 1


def _weight(key: str, endpoint: Endpoint) -> bytes:
    named = f"{endpoint.backend.name}\0{endpoint.server}\0{key}"
    return blake2b(named.encode("utf-8", "surrogatepass"), digest_size=8).digest()
