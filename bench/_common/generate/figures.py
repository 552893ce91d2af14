"""What a run of calls came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench._common.generate.calls import Call
from bench._common.statistics import Quantiles, quantiles

OK = "OK"


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """Where the time to the first piece went, of calls that were answered whole."""

    requests: int
    codes: dict[str, int]  # of those that were not
    first_piece: Quantiles  # as the client saw it
    own: Quantiles  # all but retrieval and the model server
    asking: Quantiles  # the part of it before the model server has the request
    answering: Quantiles  # the part of it after the model server has written the first token
    grpc: Quantiles  # the part of it outside of what the server's ledger sees: gRPC and the loops, both ways
    inside: Quantiles  # the part of it that is in the ledger, without the attempt at the model server
    upstream: Quantiles  # the part of it that is in the attempt: HTTP and the loops, both ways
    retrieval: Quantiles
    token_delay: Quantiles  # from the writing of a token to its arrival at the client


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process computed in a while."""

    seconds: float
    requests: int  # that began
    tokens: int
    cpu_s: float

    @property
    def core_share(self) -> float:
        """The share of one core that it kept busy."""
        return self.cpu_s / self.seconds

    @property
    def token_us(self) -> float:
        """Computing time a token."""
        return 1e6 * self.cpu_s / max(1, self.tokens)

    @property
    def core_share_per_1k(self) -> float:
        """The share of one core that 1,000 tokens a second keep busy."""
        return 1e3 * self.cpu_s / max(1, self.tokens)


@dataclass(frozen=True, slots=True)
class Tail:
    """How long callers waited for the first piece, from when their call was due, and what was sent for them."""

    calls: int
    codes: dict[str, int]  # of those that were not answered
    p50_ms: float
    p99_ms: float
    p999_ms: float
    mean_ms: float
    hedged_share: float  # calls with a second request, as their ledgers say
    extra_share: float  # requests that the model servers got beyond one a call, as these count them


def stream_figures(calls: Sequence[Call]) -> StreamFigures:
    """Returns the figures of stamped calls."""
    whole = [call for call in calls if call.code == OK]
    return StreamFigures(
        requests=len(whole),
        codes=failures(calls),
        first_piece=quantiles([call.first_ns - call.sent_ns for call in whole]),
        own=quantiles([call.own_ns for call in whole]),
        asking=quantiles([call.came_ns - call.sent_ns - call.retrieval_ns for call in whole]),
        answering=quantiles([call.first_ns - call.written_ns for call in whole]),
        grpc=quantiles([call.grpc_ns for call in whole]),
        inside=quantiles([call.inside_ns for call in whole]),
        upstream=quantiles([call.upstream_ns for call in whole]),
        retrieval=quantiles([call.retrieval_ns for call in whole]),
        token_delay=quantiles([delay for call in whole for delay in call.delays_ns]),
    )


def tail(calls: Sequence[Call], requests: int, asked: int) -> Tail:
    """Returns the figures of counted calls; the model servers got `requests` for `asked` calls, counted or not."""
    whole = [call for call in calls if call.code == OK]
    waited_ms = np.asarray([call.first_ns - call.due_ns for call in whole] or [0]) / 1e6
    p50, p99, p999 = np.percentile(waited_ms, (50, 99, 99.9))
    return Tail(
        calls=len(calls),
        codes=failures(calls),
        p50_ms=float(p50),
        p99_ms=float(p99),
        p999_ms=float(p999),
        mean_ms=float(waited_ms.mean()),
        hedged_share=sum(call.hedges > 0 for call in whole) / max(1, len(whole)),
        extra_share=requests / max(1, asked) - 1.0,
    )


def failures(calls: Sequence[Call]) -> dict[str, int]:
    """Counts the ends that were not good ones."""
    return dict(sorted(Counter(call.code for call in calls if call.code != OK).items()))
