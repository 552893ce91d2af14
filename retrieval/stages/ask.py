"""A request for an answer as the router and the backends see it: who asks, in which conversation, under which rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from retrieval.assembly import PassageCounter
from retrieval.caching.keys import Purpose, hash_parts
from retrieval.conversation.history import Fitted, fit_history
from retrieval.conversation.summaries import Owner, Summaries
from retrieval.deadline import Deadline
from retrieval.dispatch.service import BackendService
from retrieval.dispatch.types import Job, Ticket
from retrieval.routing.asking import Asking, Reading, Subject
from retrieval.routing.router import Router
from retrieval.settings.generation import GenerationSettings
from retrieval.speech import GenerationParams
from retrieval.types import Arrangement, Context, GenerateRequest, Prompt, RetrieveRequest


@dataclass(frozen=True, slots=True)
class Times:
    """When an answer must have begun and be whole, and since when it is waited for; on the clock of monotonic_ns."""

    wait_until_ns: int
    deadline_ns: int
    since_ns: int


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A request for an answer, before anything was searched."""

    request: GenerateRequest
    asking: Asking
    reading: Reading
    history: Fitted
    backends: tuple[tuple[str, str], ...]  # that may answer as far as is known, each with its model
    max_cost: float  # the ceiling that holds; 0 for none

    def job(self, times: Times, permits: Callable[[str], bool]) -> Job:
        """Returns the answer that is wanted of a backend."""
        asking, request = self.asking, self.request

        def prompt(context: Context, sources: Arrangement) -> Prompt:
            return Prompt(asking.instructions, context, asking.question, sources, asking.conversation, request.tools)

        ticket = replace(asking.ticket, deadline_ns=times.wait_until_ns, since_ns=times.since_ns)
        params = GenerationParams(request.max_output_tokens, request.temperature, times.deadline_ns)
        return Job(ticket, params, _root(asking), prompt, _affinity(request), permits)


@dataclass(frozen=True, slots=True)
class Asker:
    """Makes inquiries, under the settings in force."""

    router: Router
    services: Mapping[str, BackendService]
    summaries: Summaries
    settings: Callable[[], GenerationSettings]

    def inquire(self, request: GenerateRequest, deadline: Deadline) -> Inquiry:
        """Returns what a request asks.

        Raises:
            BackendUnknown, BackendForbidden, NoBackendAllowed: no backend may answer.
            InvalidRequest: question and output leave no room in any window.
        """
        settings, retrieve = self.settings(), request.retrieve
        subject = subject_of(retrieve)
        names = self.router.allowed(request.backend, subject)
        services = [self.services[name] for name in names]
        history = self._history(retrieve, services[0].counter)
        asking = Asking(
            backend=request.backend,
            subject=subject,
            instructions="\n\n".join(part for part in (settings.instructions, request.instructions) if part),
            question=retrieve.query,
            conversation=history.conversation,
            tools=request.tools,
            max_output_tokens=request.max_output_tokens,
            asked_context_tokens=retrieve.thresholds.context_tokens,
            max_cost=request.max_cost,
            ticket=Ticket(retrieve.tenant, request.priority, deadline.at_ns),
        )
        backends = tuple((service.settings.name, service.model) for service in services)
        ceiling = self.router.ceiling(request.max_cost)
        return Inquiry(request, asking, self.router.reading(asking), history, backends, ceiling)

    def _history(self, request: RetrieveRequest, counter: PassageCounter) -> Fitted:
        settings = self.settings().conversation
        fitted = fit_history(request.turns, None, settings.history_tokens, counter)
        if not (fitted.dropped and settings.summarise):
            return fitted
        known = self.summaries.find(owner_of(request), request.turns)
        return fit_history(request.turns, known, settings.history_tokens, counter) if known else fitted


def subject_of(request: RetrieveRequest) -> Subject:
    """Returns who asks of what, as the rules see it."""
    return Subject(request.tenant, request.collection, request.data_policy, bool(request.turns))


def owner_of(request: RetrieveRequest) -> Owner:
    """Returns whose conversation it is."""
    return Owner(request.tenant, request.data_policy, request.collection)


def _affinity(request: GenerateRequest) -> str:
    """Names the conversation, apart from those of other tenants that have the same name for theirs."""
    if not request.session:
        return ""
    return hash_parts(Purpose.ANSWER, (request.retrieve.tenant, request.session)).hex()


def _root(asking: Asking) -> str:
    """Names all that stands before the sources in a prompt, and whose it is."""
    subject = asking.subject
    return hash_parts(Purpose.ANSWER, (subject.tenant, subject.collection, asking.instructions)).hex()
