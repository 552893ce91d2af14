"""One Generate call as its caller saw it, and what a run of them came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench._common.statistics import Quantiles, quantiles

REFUSED = "RESOURCE_EXHAUSTED"
TOLERATED = 1.05  # of the deadline, that an admitted call may take


@dataclass(frozen=True, slots=True)
class Call:
    """When a call was planned, and how it ended; times count from the planned one, whatever the client was at."""

    planned_ns: int  # since the start of the run
    late_ns: int  # of the client itself
    first_ns: int  # to the first piece of the answer; 0 without any
    ended_ns: int
    code: str  # OK, or the name of a status
    queue_ns: int  # waited in queues, as the server says; 0 when it did not answer


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """What became of the calls of one load."""

    rate: float  # calls a second
    calls: int
    goodput: float  # whole answers within the deadline, a second
    refused: int
    missed: int  # neither refused nor answered in time
    overran: int  # ended more than 5 % after the deadline
    codes: dict[str, int]
    first_piece: Quantiles  # of calls that were answered
    answered: Quantiles
    refusal: Quantiles  # how long callers waited for a refusal
    queued: Quantiles
    client_lateness: Quantiles
    most_inside: int = 0  # requests at once in the model server
    wasted: int = 0  # requests that the model server worked on in vain, or held until their caller left


def figures_of(calls: Sequence[Call], rate: float, deadline_s: float, warm_s: float, seconds: float) -> LoadFigures:
    """Returns the figures of the calls that were planned after `warm_s`, over `seconds`."""
    counted = [one for one in calls if warm_s * 1e9 <= one.planned_ns < (warm_s + seconds) * 1e9]
    deadline_ns = deadline_s * 1e9
    good = [one for one in counted if one.code == "OK" and one.ended_ns <= deadline_ns]
    refused = [one for one in counted if one.code == REFUSED]
    codes = sorted({one.code for one in counted})
    return LoadFigures(
        rate=rate,
        calls=len(counted),
        goodput=len(good) / seconds,
        refused=len(refused),
        missed=len(counted) - len(good) - len(refused),
        overran=sum(one.ended_ns > TOLERATED * deadline_ns for one in counted),
        codes={code: sum(one.code == code for one in counted) for code in codes},
        first_piece=quantiles([one.first_ns for one in good]),
        answered=quantiles([one.ended_ns for one in good]),
        refusal=quantiles([one.ended_ns for one in refused]),
        queued=quantiles([one.queue_ns for one in good]),
        client_lateness=quantiles([one.late_ns for one in counted]),
    )
