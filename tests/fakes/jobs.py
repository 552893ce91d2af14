"""Jobs for tests, declared in a store."""

from __future__ import annotations

from indexers.jobs.files import parse_job
from indexers.jobs.state import Job, JobKey
from indexers.jobs.store import JobStore
from tests.fakes.job_store import EPOCH

FOLDER_JOB = 'collection = "books"\n[source]\nkind = "folder"\npath = "docs"\n'


def job_of(name: str = "handbook", text: str = FOLDER_JOB, tenant: str = "acme", base_folder: str = "/srv") -> Job:
    """Returns a job that was declared at the beginning of time."""
    return Job(JobKey(tenant, name), parse_job(text, name, name), base_folder, EPOCH)


async def declared(store: JobStore, name: str = "handbook", text: str = FOLDER_JOB, tenant: str = "acme") -> Job:
    """Declares a job and returns it."""
    job = job_of(name, text, tenant)
    await store.put_job(job)
    return job
