"""What a step may still use in this run, and what it has used."""

from __future__ import annotations

from dataclasses import dataclass, replace

from indexers.jobs.report import EnrichmentUse
from indexers.jobs.spec import EnrichmentSpec
from retrieval.enrichment.asking import Said


@dataclass(slots=True)
class Budget:
    """One step's account. A call is booked with its bound when it begins, and with what it took when it is over."""

    step: EnrichmentSpec
    use: EnrichmentUse
    booked: int = 0  # tokens of calls that are under way

    @classmethod
    def of(cls, step: EnrichmentSpec) -> Budget:
        """Returns a new account."""
        return cls(step, EnrichmentUse(step.name, 0, 0, 0, 0.0, 0, 0))

    def book(self) -> bool:
        """Books a call; False when the budget has no room for one more."""
        bound = self.step.input_tokens + self.step.output_tokens
        over_cost = self.step.max_cost and self.use.cost >= self.step.max_cost
        if over_cost or self.use.tokens + self.booked + bound > self.step.max_tokens:
            self.use = replace(self.use, left_out=self.use.left_out + 1)
            return False
        self.booked += bound
        return True

    def settle(self, said: Said | None) -> None:
        """Takes what a call took; None for one that failed."""
        self.booked -= self.step.input_tokens + self.step.output_tokens
        if said is None:
            self.use = replace(self.use, calls=self.use.calls + 1, failed=self.use.failed + 1)
        else:
            tokens, cost = self.use.tokens + said.tokens, self.use.cost + said.cost
            self.use = replace(self.use, calls=self.use.calls + 1, tokens=tokens, cost=cost)

    def remember(self) -> None:
        """Takes note of a result that needed no call."""
        self.use = replace(self.use, remembered=self.use.remembered + 1)
