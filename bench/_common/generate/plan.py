"""What a load generator is told to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """The load. With `streams`, so many calls are open all the time; otherwise calls are sent at `rate`."""

    targets: list[str]  # of the services, which get the calls of a rate in turn
    collection: str
    warm_s: float  # before what is counted
    seconds: float  # that are counted
    streams: int = 0
    ramp_s: float = 0.0  # over which the streams begin
    think_ms: float = 0.0  # before a stream's next call at most, so that it does not meet the end of the last one
    rate: float = 0.0  # calls a second, as a Poisson process
    tokens: int = 50  # of an answer, at the median
    spread: float = 0.0  # the standard deviation of the logarithm of that
    questions: int = 48  # different ones
    repeats: int = 1  # of each question, one after another
    most: int = 0  # calls; 0 for no bound
    connections: int = 1  # to each service
    pause_ms: float = 0.0  # that the client takes for each piece of an answer
    window_bytes: int = 0  # that its transport reads ahead; 0 for gRPC's own choice
    cut: bool = False  # whether calls are left at the end; otherwise they are waited for
    timeout_s: float = 60.0
    seed: int = 1

    @property
    def whole_s(self) -> float:
        """How long calls are begun."""
        return self.warm_s + self.seconds
