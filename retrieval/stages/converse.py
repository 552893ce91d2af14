"""Earlier turns: the question in words that can be searched by themselves, and a summary of what had no room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from retrieval.conversation.history import Fitted
from retrieval.conversation.rewriting import Rewriter
from retrieval.conversation.summaries import Summaries
from retrieval.deadline import Deadline
from retrieval.dispatch.dispatcher import Dispatcher
from retrieval.route import ConversationReport, Priority
from retrieval.routing.router import Router
from retrieval.settings.generation import GenerationSettings
from retrieval.stages.aside import Aside
from retrieval.stages.ask import Inquiry, owner_of
from retrieval.trace import Trace
from retrieval.types import RetrieveRequest


@dataclass(frozen=True, slots=True)
class Conversing:
    """What is done for conversations, under the settings in force."""

    rewriter: Rewriter
    summaries: Summaries
    router: Router
    dispatcher: Dispatcher
    settings: Callable[[], GenerationSettings]

    async def standalone(
        self, request: RetrieveRequest, backend: str, priority: Priority | None, trace: Trace, deadline: Deadline
    ) -> RetrieveRequest:
        """Returns the request with a question that can be searched by itself.

        `backend` is the one that the request is for; without a priority no model is asked, whatever the settings say.
        """
        model = None if priority is None else self._aside(request, backend, priority)
        standalone = await self.rewriter.standalone(request.query, request.turns, model, deadline.at_ns)
        if not standalone.changed:
            return request
        trace.rewritten, trace.rewritten_by = standalone.text, standalone.by
        return replace(request, query=standalone.text)

    def summarise_later(self, inquiry: Inquiry) -> None:
        """Starts a summary of the turns that had no room, if the settings ask for it and the request may be kept."""
        request, history = inquiry.request.retrieve, inquiry.history
        settings = self.settings().conversation
        new = history.dropped - history.summarised
        if settings.summarise and new > 0 and not request.cache_control.no_store and request.thresholds.use_cache:
            model = self._aside(request, inquiry.request.backend, Priority.BACKGROUND)
            self.summaries.start(owner_of(request), request.turns, history.dropped, model, settings)

    async def close(self) -> None:
        """Gives up the summaries that are being made."""
        await self.summaries.close()

    def _aside(self, request: RetrieveRequest, backend: str, priority: Priority) -> Aside:
        return Aside(self.router, self.dispatcher, self.settings, request, backend, priority)


def conversation_report(request: RetrieveRequest, history: Fitted | None, trace: Trace) -> ConversationReport:
    """Returns what became of the earlier turns of a request."""
    return ConversationReport(
        turns=len(request.turns),
        kept=history.kept if history else 0,
        dropped=history.dropped if history else 0,
        summarised=history.summarised if history else 0,
        rewritten=trace.rewritten,
        by=trace.rewritten_by,
    )
