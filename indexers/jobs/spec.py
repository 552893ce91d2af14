"""What a job file says: where documents come from, how they are read and cut, what is stored, when and how much.

The file is TOML; `jobs/files.py` reads it and says in which line a fault is. Credentials are never in it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from indexers.sources.spec import SourceSpec
from indexers.spec_part import NAME, Part


class ParsingSpec(Part):
    """How files are read, in a child process that is bounded."""

    max_file_bytes: int = Field(default=50 * 1024 * 1024, ge=1, le=4 * 1024**3)
    """A larger file fails; files of rows are streamed, so that only a row is bounded."""

    timeout_s: float = Field(default=60.0, gt=0.0, le=3600.0)
    """The longest that one document may take; for files of rows, one row."""

    max_memory_bytes: int = Field(default=1024**3, ge=256 * 1024**2, le=64 * 1024**3)
    """Memory of the child process at most."""

    id_field: str = "id"
    """Files of rows: the field of document ids."""

    title_field: str = "title"
    """Files of rows: the field of titles."""

    text_fields: tuple[str, ...] = Field(default=("text",), min_length=1)
    """Files of rows: the fields of texts, joined by blank lines."""

    detect_language: bool = True
    """Whether the language is detected and stored as metadata `language` (ISO 639-1)."""

    near_duplicates: float = Field(default=0.9, ge=0.0, le=1.0)
    """Documents whose estimated Jaccard similarity reaches this are reported as duplicates; 0 looks for none."""


class ChunkingSpec(Part):
    """How documents are cut; absent keys take the server's settings."""

    limit_tokens: int = Field(default=0, ge=0, le=8192)
    """Tokens of a chunk at most, headings included; 0 takes the setting `chunking.limit_tokens`."""

    overlap_tokens: int = Field(default=-1, ge=-1, le=1024)
    """Tokens that pieces of one long block share; -1 takes the setting `chunking.overlap_tokens`."""

    @model_validator(mode="after")
    def _has_room(self) -> ChunkingSpec:
        if 0 < self.limit_tokens < 32:
            raise ValueError("limit_tokens must be 0 or at least 32")
        return self


class MetadataSpec(Part):
    """What is stored with each document."""

    fields: dict[str, Literal["keyword", "integer", "float", "bool", "datetime", "text"]] = Field(
        default={}, max_length=64
    )
    """Fields to declare, which can then be filtered by."""

    set: dict[str, str | int | float | bool] = Field(default={})
    """Values for every document; stronger than its own."""

    rename: dict[str, str] = Field(default={})
    """A document's own field, and the name that it gets here."""

    keep: tuple[str, ...] | None = None
    """The only fields that are kept of a document's own, after renaming; absent keeps all."""

    from_path: str = ""
    """A regular expression over the path; its named groups become metadata."""

    id_prefix: str = Field(default="", max_length=200)
    """What document ids begin with, where several jobs write into one collection."""

    @model_validator(mode="after")
    def _compiles(self) -> MetadataSpec:
        import re  # noqa: PLC0415

        try:
            re.compile(self.from_path)
        except re.error as error:
            raise ValueError(f"from_path is no regular expression: {error}") from None
        return self


class ScheduleSpec(Part):
    """When the job runs by itself; without any of these, when it is asked to."""

    cron: str = ""
    """Five fields, as in `0 3 * * *`, in the time zone below."""

    every_s: float = Field(default=0.0, ge=0.0, le=31_536_000.0)
    """Seconds from the end of a run to the next; 0 for none."""

    watch: bool = False
    """Whether a change in the source starts a run; for folders."""

    timezone: str = "UTC"
    """The time zone of `cron`, as in `Europe/Berlin`."""


class LimitsSpec(Part):
    """Bounds of a run."""

    attempts: int = Field(default=4, ge=1, le=100)
    """How often a document is tried before it is given up, when what went wrong may pass."""

    backoff_s: float = Field(default=1.0, ge=0.0, le=3600.0)
    """Seconds before the second attempt; each further one waits twice as long, with jitter, an hour at most."""

    shrink_share: float = Field(default=0.5, ge=0.0, le=1.0)
    """A run that would delete more than this share of the job's documents stops and asks; 1 never asks."""

    shrink_documents: int = Field(default=20, ge=0, le=1_000_000_000)
    """Deleting up to so many documents never asks."""

    max_documents: int = Field(default=10_000_000, ge=1, le=10_000_000_000)
    """A run that comes by more documents stops."""

    parsers: int = Field(default=0, ge=0, le=256)
    """Child processes that parse; 0 takes one for two processors."""


class EnrichmentSpec(Part):
    """A step that asks a generation backend about each document or chunk."""

    name: str = Field(pattern=NAME)
    """Its name, by which reports and metrics call it."""

    task: Literal["summary", "labels", "fields", "questions"]
    """`summary`: a few sentences. `labels`: which of the labels apply. `fields`: values of declared fields.
    `questions`: questions that the text answers."""

    over: Literal["document", "chunk"] = "document"
    """What one call sees: a whole document, cut to `input_tokens`, or each part of it."""

    into: Literal["metadata", "search_text"] = "metadata"
    """Where the result goes: metadata, or text that is searched along with the passage but never shown or cited."""

    field: str = ""
    """The metadata field of the result; empty takes the step's name."""

    backend: str = ""
    """The backend that is asked; empty takes the cheapest that the rules allow."""

    labels: tuple[str, ...] = ()
    """For `labels`: what may be chosen from."""

    fields: dict[str, str] = Field(default={})
    """For `fields`: each field's name and what to look for, in a person's words."""

    input_tokens: int = Field(default=1_500, ge=32, le=100_000)
    """Tokens of the text that a call sees at most."""

    output_tokens: int = Field(default=200, ge=1, le=8_192)
    """Tokens of an answer at most."""

    max_tokens: int = Field(default=1_000_000, ge=1)
    """Prompt and answer tokens of a run at most; beyond, documents go without the result and are named."""

    max_cost: float = Field(default=0.0, ge=0.0)
    """Cost of a run at most, in the unit of the backends' prices; 0 for no bound."""

    @model_validator(mode="after")
    def _agrees(self) -> EnrichmentSpec:
        if self.task == "labels" and not self.labels:
            raise ValueError('task = "labels" needs labels to choose from')
        if self.task == "fields" and not self.fields:
            raise ValueError('task = "fields" needs fields to look for')
        if self.over == "chunk" and self.into != "search_text":
            raise ValueError('over = "chunk" needs into = "search_text": metadata belongs to documents')
        if self.into == "search_text" and self.task in ("labels", "fields"):
            raise ValueError(f'task = "{self.task}" needs into = "metadata"')
        return self


class JobSpec(Part):
    """An indexing job."""

    name: str = Field(pattern=NAME)
    """Its name; empty in a file takes the file's name."""

    collection: str = Field(pattern=NAME)
    """The collection that it fills; made when it is not there."""

    description: str = Field(default="", max_length=1_024)
    """What it is for."""

    engine: Literal["local", "ray"] = "local"
    """Who does the work: this machine's workers, or a Ray cluster."""

    policy_class: str = Field(default="", pattern=r"^(|[a-z0-9][a-z0-9_-]{0,62})$")
    """What may be done with the documents; stored as metadata `policy_class`, which routing rules can ask for."""

    source: SourceSpec
    """Where documents come from."""

    parsing: ParsingSpec = ParsingSpec()
    """How files are read."""

    chunking: ChunkingSpec = ChunkingSpec()
    """How documents are cut."""

    metadata: MetadataSpec = MetadataSpec()
    """What is stored with each document."""

    schedule: ScheduleSpec = ScheduleSpec()
    """When it runs by itself."""

    limits: LimitsSpec = LimitsSpec()
    """Bounds of a run."""

    enrich: tuple[EnrichmentSpec, ...] = Field(default=(), max_length=16)
    """Steps that ask a generation backend, in order."""
