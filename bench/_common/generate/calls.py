"""One Generate call as its client saw it, with what the server's ledger and the model server's stamps say of it.

All times are of the monotonic clock, which the processes of a Linux machine share, so that a time that one process
notes can be taken from another's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.v1 import common_pb2 as common

RETRIEVAL = frozenset({"REWRITE", "LOOKUP", "EMBED", "SEARCH", "FUSE", "FETCH", "RERANK", "ASSEMBLE"})
"""The stages that are no part of our own share; all of them end before the backend is asked."""


@dataclass(slots=True)
class Call:
    """When things happened to a call; 0 for what did not happen."""

    target: int  # which service
    planned_ns: int  # since the start of the run
    due_ns: int
    sent_ns: int
    first_ns: int = 0  # the first piece of the answer
    ended_ns: int = 0
    came_ns: int = 0  # the request to the model server, by its stamp
    written_ns: int = 0  # the first token by the model server
    retrieval_ns: int = 0  # in stages of retrieval
    inside_ns: int = 0  # from arrival to the first piece, without retrieval and the attempt that answered
    model_ns: int = 0  # of the attempt that answered, to its first token
    token_ns: int = 0  # between later tokens
    hedges: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    pieces: int = 0  # messages that held a part of the answer
    tokens: int = 0
    code: str = ""  # OK, CUT when the client left at the end of the run, or the name of a status
    delays_ns: list[int] = field(default_factory=list)  # from the writing of each stamped token to its arrival

    @property
    def own_ns(self) -> int:
        """The service's share of the time to the first piece: all but retrieval and the model server."""
        return (self.came_ns - self.sent_ns - self.retrieval_ns) + (self.first_ns - self.written_ns)

    @property
    def grpc_ns(self) -> int:
        """The part of `own_ns` outside of what the server's ledger sees."""
        return self.first_ns - self.sent_ns - self.retrieval_ns - self.inside_ns - self.model_ns

    @property
    def upstream_ns(self) -> int:
        """The part of `own_ns` inside the attempt at the model server; it, `grpc_ns` and `inside_ns` are all of it."""
        return self.model_ns - (self.written_ns - self.came_ns)

    def read_piece(self, text: str, now_ns: int) -> None:
        """Notes a piece of the answer, and the stamps in it."""
        words = text.split()
        if not self.first_ns:
            self.first_ns = now_ns
            came, colon, _ = words[0].partition(":")
            self.came_ns = int(came) if colon else 0
        stamps = [int(stamp) for word in words if (stamp := word.rpartition(":")[2]).isdigit()]
        self.written_ns = self.written_ns or next(iter(stamps), 0)
        self.delays_ns += [now_ns - stamp for stamp in stamps]
        self.pieces += 1
        self.tokens += len(words)

    def read_ledger(self, ledger: common.Ledger) -> None:
        """Notes what the server says of the call."""
        made = ledger.generation
        self.retrieval_ns = retrieval_ns(ledger.stages)
        self.model_ns, self.token_ns = made.first_token_ns, made.token_ns
        self.inside_ns = ledger.first_delta_ns - self.retrieval_ns - made.first_token_ns
        self.hedges = sum(attempt.hedge for attempt in made.attempts)


def retrieval_ns(stages: Iterable[common.StageCost]) -> int:
    """Returns the wall time of the stages of retrieval."""
    return sum(cost.wall_ns for cost in stages if common.Stage.Name(cost.stage).removeprefix("STAGE_") in RETRIEVAL)
