"""Jobs, runs and failures: values to protobuf messages and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from headrace.v1 import jobs_pb2
from indexers.jobs.remaining import remaining_s
from indexers.jobs.state import DocumentState, Failure, ItemState, Job, Run, RunState
from indexers.jobs.toml_text import spec_to_toml
from retrieval.server.convert.metadata import datetime_to_pb

_STATES = {state: jobs_pb2.RunState.Value(f"RUN_STATE_{state.name}") for state in RunState}


def job_to_pb(job: Job, last_run: Run | None, next_run_at: datetime | None, now: datetime) -> jobs_pb2.Job:
    """Returns the job as a message."""
    message = jobs_pb2.Job(
        name=job.key.name,
        spec_toml=spec_to_toml(job.spec),
        collection=job.spec.collection,
        description=job.spec.description,
        paused=job.paused,
        update_time=datetime_to_pb(job.updated_at),
    )
    if last_run is not None:
        message.last_run.CopyFrom(run_to_pb(last_run, now))
    if next_run_at is not None:
        message.next_run_time.CopyFrom(datetime_to_pb(next_run_at))
    return message


def run_to_pb(run: Run, now: datetime) -> jobs_pb2.Run:
    """Returns the run as a message, as it stands `now`."""
    message = jobs_pb2.Run(
        run_id=run.run_id,
        job=run.key.name,
        state=_STATES[run.state],
        reason=run.reason,
        create_time=datetime_to_pb(run.created_at),
        cancel_requested=run.cancel_requested,
        scanned=run.scanned,
        items=_counts(run.items),
        documents=_counts(run.documents),
        failures=dict(run.failures),
        chunks=run.chunks,
        tokens=run.tokens,
        worker=run.worker,
        report_json=run.report,
        remaining_s=remaining_s(run, now),
    )
    if run.started_at is not None:
        message.start_time.CopyFrom(datetime_to_pb(run.started_at))
    if run.ended_at is not None:
        message.end_time.CopyFrom(datetime_to_pb(run.ended_at))
    return message


def failure_to_pb(failure: Failure) -> jobs_pb2.JobFailure:
    """Returns the dead letter as a message."""
    return jobs_pb2.JobFailure(
        run_id=failure.run_id,
        item_uri=failure.item_uri,
        document_id=failure.document_id,
        name=failure.name,
        reason=failure.reason,
        kind=failure.kind,
        attempt=failure.attempt,
        fail_time=datetime_to_pb(failure.failed_at),
    )


def _counts(counts: Mapping[ItemState, int] | Mapping[DocumentState, int]) -> dict[str, int]:
    return {state.value: count for state, count in counts.items() if count}
