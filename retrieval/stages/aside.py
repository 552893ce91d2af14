"""A small piece of text that a model writes beside an answer: a rewritten question, a summary of earlier turns.

It goes to the backends that the same hard rules allow as the request itself, to none but the one that the request names
if it names one, and never to one that only quotes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from indexers.types import Epoch
from retrieval.dispatch.dispatcher import Dispatcher
from retrieval.dispatch.types import Finished, Job, Route, Ticket
from retrieval.errors import BackendCut, NoBackendAllowed
from retrieval.route import Priority
from retrieval.routing.asking import Asking
from retrieval.routing.router import Router
from retrieval.settings.generation import GenerationSettings
from retrieval.speech import Conversation, Delta, FinishReason, GenerationParams
from retrieval.stages.ask import subject_of
from retrieval.types import NO_CONTEXT, Arrangement, Context, Found, Prompt, RetrieveRequest

_NOTHING = Found((), NO_CONTEXT, Epoch(0, 0))


@dataclass(frozen=True, slots=True)
class Aside:
    """Writes for one request; a `retrieval.conversation.SideModel`."""

    router: Router
    dispatcher: Dispatcher
    settings: Callable[[], GenerationSettings]
    request: RetrieveRequest
    backend: str  # that the request is for; `auto` for the router's choice
    priority: Priority

    async def write(self, instructions: str, text: str, max_output_tokens: int, deadline_ns: int) -> tuple[str, str]:
        """Returns what a model writes, and the backend's name.

        Raises:
            BackendError: no backend may or can write it.
            Overloaded: all of them are full.
            InvalidRequest: the text fits into no window.
        """
        ticket = Ticket(self.request.tenant, self.priority, deadline_ns)
        asking = Asking(
            backend=self.settings().conversation.rewrite_backend or self.backend,
            subject=subject_of(self.request),
            instructions=instructions,
            question=text,
            conversation=Conversation(),
            tools=None,
            max_output_tokens=max_output_tokens,
            asked_context_tokens=0,
            max_cost=0.0,
            ticket=ticket,
        )
        route = _writers(self.router.route(asking, _NOTHING))

        def prompt(context: Context, sources: Arrangement) -> Prompt:
            return Prompt(instructions, context, text, sources)

        params = GenerationParams(max_output_tokens, 0.0, deadline_ns)
        job = Job(ticket, params, f"aside:{self.request.tenant}", prompt)
        return await _collected(self.dispatcher, route, job)


def _writers(route: Route) -> Route:
    legs = tuple(leg for leg in route.legs if leg.service.settings.kind != "extractive")
    if not legs:
        raise NoBackendAllowed(tuple((leg.service.settings.name, "extractive") for leg in route.legs))
    return Route(legs, route.report)


async def _collected(dispatcher: Dispatcher, route: Route, job: Job) -> tuple[str, str]:
    texts: list[str] = []
    async with aclosing(dispatcher.stream(route, job)) as events:
        async for event in events:
            if isinstance(event, Delta):
                texts.append(event.text)
            elif isinstance(event, Finished):
                if event.end.finish_reason is not FinishReason.STOP:
                    break
                return "".join(texts), event.report.backend
    raise BackendCut(route.report.backend, sum(map(len, texts)), "it did not come to an end of its own")
