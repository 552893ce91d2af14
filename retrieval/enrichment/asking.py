"""One question about one text to a model, under the same routing rules as any other request.

The text counts as a source with its document's metadata: a rule that keeps documents of a class from a backend keeps
them from it here as well. Work of this kind is in the background: whoever waits for an answer goes first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from indexers.errors import TargetUnavailable
from indexers.types import Document, Epoch, Passage
from retrieval.dispatch.dispatcher import Dispatcher
from retrieval.dispatch.types import Finished, Job, Leg, Route, Ticket
from retrieval.errors import BackendError, InvalidRequest, NoBackendAllowed, Overloaded
from retrieval.route import Priority
from retrieval.routing.asking import Asking, Subject
from retrieval.routing.router import Router
from retrieval.settings.backends import BackendSettings
from retrieval.settings.generation import AUTO, GenerationSettings
from retrieval.speech import Conversation, Delta, FinishReason, GenerationParams, Usage
from retrieval.types import NO_CONTEXT, Arrangement, Citation, Context, Found, Prompt

_PATIENCE_S = 300.0
_PLACEHOLDER_TOKENS = 64
_PRICED = 1_000_000  # tokens that prices are for


class Unusable(Exception):
    """The model gave no answer that can be used; asking again would not help."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a model wrote, and what that took."""

    text: str
    tokens: int  # of prompt and answer
    cost: float  # in the unit of the backends' prices


@dataclass(frozen=True, slots=True)
class TextModel:
    """Asks the backends of the settings, for one tenant and collection."""

    router: Router
    dispatcher: Dispatcher
    settings: Callable[[], GenerationSettings]
    tenant: str
    collection: str

    async def ask(self, instructions: str, text: str, document: Document, backend: str, output_tokens: int) -> Said:
        """Returns what a model says of a text of the document.

        Raises:
            Unusable: no backend may be asked, or the answer broke off or was cut.
            TargetUnavailable: none can be asked now.
        """
        deadline_ns = time.monotonic_ns() + int(_PATIENCE_S * 1e9)
        ticket = Ticket(self.tenant, Priority.BACKGROUND, deadline_ns)
        asking = Asking(
            backend=backend or AUTO,
            subject=Subject(self.tenant, self.collection, "", in_conversation=False),
            instructions=instructions,
            question=text,
            conversation=Conversation(),
            tools=None,
            max_output_tokens=output_tokens,
            asked_context_tokens=_PLACEHOLDER_TOKENS,
            max_cost=0.0,
            ticket=ticket,
        )

        def prompt(context: Context, sources: Arrangement) -> Prompt:
            return Prompt(instructions, NO_CONTEXT, text, sources)

        params = GenerationParams(output_tokens, 0.0, deadline_ns)
        try:
            route = _writers(self.router.route(asking, _about(document)))
            return await self._collected(route, Job(ticket, params, f"enrich:{self.tenant}", prompt))
        except (NoBackendAllowed, InvalidRequest) as error:
            raise Unusable(str(error)) from error
        except (BackendError, Overloaded) as error:
            raise TargetUnavailable("the generation backend", str(error)) from error

    async def _collected(self, route: Route, job: Job) -> Said:
        texts: list[str] = []
        async with aclosing(self.dispatcher.stream(route, job)) as events:
            async for event in events:
                if isinstance(event, Delta):
                    texts.append(event.text)
                elif isinstance(event, Finished):
                    if event.end.finish_reason is not FinishReason.STOP:
                        raise Unusable(f"the answer ended with {event.end.finish_reason.value}")
                    usage, name = event.end.usage, event.report.backend
                    settings = next(leg.service.settings for leg in route.legs if leg.service.settings.name == name)
                    return Said(
                        "".join(texts).strip(), usage.prompt_tokens + usage.output_tokens, _cost(settings, usage)
                    )
        raise Unusable("the answer broke off")


def _about(document: Document) -> Found:
    """Returns the document's metadata as rules look at them: those of a source."""
    # A backend that could not take the source would be left out, so it has a text of one character.
    passage = Passage("", document.document_id, "", (), ".", 0, 1, 0, 0, document.metadata)
    context = Context(".", 1, _PLACEHOLDER_TOKENS, "", (Citation(1, passage, ()),))
    return Found((), context, Epoch(0, 0))


def _writers(route: Route) -> Route:
    """Leaves out the backend that only quotes."""
    legs = tuple(Leg(leg.service, NO_CONTEXT) for leg in route.legs if leg.service.settings.kind != "extractive")
    if not legs:
        raise NoBackendAllowed(tuple((leg.service.settings.name, "extractive") for leg in route.legs))
    return Route(legs, route.report)


def _cost(settings: BackendSettings, usage: Usage) -> float:
    fresh = usage.prompt_tokens - usage.cached_prompt_tokens
    paid = fresh * settings.input_price + usage.cached_prompt_tokens * settings.cached_input_price
    return (paid + usage.output_tokens * settings.output_price) / _PRICED
