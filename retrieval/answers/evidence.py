"""Gate 3: whether retrieval, run for the question of now on the index of now, still finds what an answer was made from.

Every passage that the answer cites must be among the hits with the same content, and no passage that the answer was not
made with may stand above the worst placed of them. So a changed, deleted or better new document ends an answer's life
by itself, on every replica, without a message.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.answers.entry import Answer, fingerprint
from retrieval.reuse import EvidenceReport
from retrieval.types import Hit


def check_evidence(answer: Answer, hits: Sequence[Hit]) -> EvidenceReport:
    """Compares the hits, best first, with what the answer was made from."""
    known = {one.chunk_id: one.fingerprint for one in answer.seen}
    cited = {chunk_id for source in answer.cited for chunk_id in source.chunk_ids}
    same = [known.get(hit.passage.chunk_id) == fingerprint(hit.passage) for hit in hits]
    ranks = [
        rank
        for rank, (hit, unchanged) in enumerate(zip(hits, same, strict=True), start=1)
        if unchanged and hit.passage.chunk_id in cited
    ]
    weakest = max(ranks, default=0)
    newcomers = sum(not unchanged for unchanged in same[:weakest])
    return EvidenceReport(cited=len(cited), found=len(ranks), weakest_rank=weakest, newcomers=newcomers)
