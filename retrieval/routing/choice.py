"""Who of those that the rules allow may answer, in which order, and why the first is the first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrieval.routing.prospects import Prospect

_LEAST_SHARE = 1 / 3  # of the passages; with fewer a backend answers another question


def narrowed(prospects: Iterable[Prospect], max_cost: float) -> list[Prospect]:
    """Marks those that may not answer as excluded, by window, price or health; keeps the order.

    An unhealthy backend is left out while a healthy one is there, and stays otherwise: trying it tells more than
    refusing. A backend that takes little of the context is left out while another one takes all of it.
    """
    left = [each.without("window") if _takes_nothing(each) else each for each in prospects]
    left = [each.without("cost") if not each.excluded and 0.0 < max_cost < each.cost else each for each in left]
    if any(each.healthy for each in left if not each.excluded):
        left = [each if each.excluded or each.healthy else each.without("unhealthy") for each in left]
    if any(_takes_all(each) for each in left if not each.excluded):
        left = [each.without("window") if not each.excluded and _takes_little(each) else each for each in left]
    return left


def ranked(prospects: Iterable[Prospect]) -> list[Prospect]:
    """Returns those that may answer, best first: who can keep the deadline before who cannot, then by score.

    Equal ones stay in their order.
    """
    return sorted((each for each in prospects if not each.excluded), key=lambda each: (each.late, each.score))


def most_wanted(prospects: Iterable[Prospect]) -> str:
    """Returns who would answer if all were well and nobody was in haste; empty when nobody may."""
    well = [each for each in prospects if each.excluded in ("", "unhealthy")]
    return min(well, key=lambda each: each.score).name if well else ""


def reason(best_first: Sequence[Prospect]) -> str:
    """Returns what speaks most for the first against the second: `latency`, `cost` or `capability`; else `only`."""
    if len(best_first) < 2:
        return "only"
    first, second = best_first[:2]
    if first.late != second.late:
        return "latency"
    leads = {
        "latency": second.latency - first.latency,
        "cost": second.price - first.price,
        "capability": second.incapability - first.incapability,
    }
    return max(leads, key=leads.__getitem__)


def _takes_nothing(prospect: Prospect) -> bool:
    return prospect.fit is None or (prospect.fit.passages > 0 and prospect.fit.kept == 0)


def _takes_all(prospect: Prospect) -> bool:
    return prospect.fit is not None and prospect.fit.kept == prospect.fit.passages


def _takes_little(prospect: Prospect) -> bool:
    fit = prospect.fit
    return fit is not None and fit.kept < fit.passages * _LEAST_SHARE
