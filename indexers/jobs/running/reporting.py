"""Makes the final report of a run from the counts in the store and from what this process has seen."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from indexers.jobs.report import LISTED, EnrichmentUse, Noted, ReportedFailure, RunReport, report_to_json
from indexers.jobs.report_html import report_html
from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.running.share import Share
from indexers.jobs.state import DocumentRecord, DocumentState, Failure, Run, RunState

REPORTS = "reports"


class Reporting:
    """Reports one run."""

    def __init__(self, parts: RunParts, share: Share) -> None:
        self._parts = parts
        self._share = share
        self._reaching = Reaching(parts.patience_s)

    async def report(self, run: Run, state: RunState, reason: str) -> str:
        """Writes the report into the job's folder, as JSON and as HTML, and returns the JSON.

        Raises:
            JobStoreUnavailable: what failed cannot be read.
        """
        report = await self._made(run, state, reason)
        text = report_to_json(report)
        folder = self._parts.folder / REPORTS
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{run.run_id}.json").write_text(text, encoding="utf-8")
        (folder / f"{run.run_id}.html").write_text(report_html(report), encoding="utf-8")
        return text

    async def _made(self, run: Run, state: RunState, reason: str) -> RunReport:
        collected, spec, ended = self._share.collected, run.spec, datetime.now(UTC)
        failures = await self._failures(run)
        return RunReport(
            job=spec.name,
            run_id=run.run_id,
            collection=spec.collection,
            source=spec.source.kind,
            state=state.value,
            reason=reason,
            asked_by=run.request.reason,
            started_at=(run.started_at or run.created_at).isoformat(),
            ended_at=ended.isoformat(),
            seconds=collected.seconds,
            items={one.value: count for one, count in run.items.items() if count},
            documents={one.value: count for one, count in run.documents.items() if count},
            chunks=run.chunks,
            tokens=run.tokens,
            failures_by_kind=dict(run.failures),
            failures=tuple(map(_reported, failures)),
            skips=tuple(Noted(one.document_id, one.reason) for one in await self._listed(run, DocumentState.SKIPPED)),
            warnings=tuple(collected.warnings),
            deleted=tuple(one.document_id for one in await self._listed(run, DocumentState.DELETED)),
            chunk_lengths=collected.chunk_lengths.counts,
            course=collected.course,
            duplicates=tuple(collected.duplicates),
            duplicate_count=collected.duplicate_count,
            languages=dict(collected.languages),
            slowest=collected.slowest,
            enrichments=self._enrichments(),
        )

    async def _failures(self, run: Run) -> list[Failure]:
        store = self._parts.store
        found = await self._reaching.reach(partial(store.failures, run.key, limit=LISTED))
        return [one for one in found if one.run_id == run.run_id]

    async def _listed(self, run: Run, state: DocumentState) -> list[DocumentRecord]:
        return await self._reaching.reach(partial(self._parts.store.documents, run.run_id, (state,), limit=LISTED))

    def _enrichments(self) -> tuple[EnrichmentUse, ...]:
        if self._parts.enricher is None:
            return ()
        return self._parts.enricher.figures()


def _reported(failure: Failure) -> ReportedFailure:
    return ReportedFailure(failure.name, failure.kind, failure.reason, failure.document_id, failure.attempt)
