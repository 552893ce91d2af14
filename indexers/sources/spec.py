"""What a job file says of its source. Credentials are never in it: keys that end in `_ref` say where they are found."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from indexers.spec_part import Part, SecretRef


class FolderSource(Part):
    """Files on this machine."""

    kind: Literal["folder"]
    """`folder`."""

    path: str = Field(min_length=1)
    """A folder or a file; relative to the job file's folder."""

    include: tuple[str, ...] = ("**/*",)
    """Globs of paths below it that are read. `**` stands for any number of folders."""

    exclude: tuple[str, ...] = ()
    """Globs of paths below it that are left out; hidden files and folders always are."""

    detect: Literal["content", "modified"] = "content"
    """How a change is noticed: by a hash of the content, or by size and time of modification, without reading."""


class FilesSource(Part):
    """Files anywhere that fsspec reaches: `s3://`, `gs://`, `sftp://`, `https://`, and others."""

    kind: Literal["files"]
    """`files`."""

    url: str = Field(pattern=r"^[a-z][a-z0-9+.-]*://")
    """Where the files are, without credentials; globs are allowed."""

    include: tuple[str, ...] = ("**/*",)
    """Globs of paths below the URL that are read."""

    exclude: tuple[str, ...] = ()
    """Globs of paths below the URL that are left out."""

    username: str = ""
    """The user, or the access key's id."""

    password_ref: SecretRef = ""
    """Where the password, or the secret key, is found."""

    key_file: str = ""
    """A private key for SFTP; relative to the job file's folder."""

    known_hosts_file: str = ""
    """The host keys that are trusted for SFTP; empty takes the user's own file."""

    endpoint_url: str = ""
    """Another endpoint than the service's own, as for MinIO."""

    region: str = ""
    """The region of an object store."""

    anonymous: bool = False
    """Whether a public bucket is read without credentials."""

    allow_private: bool = False
    """Whether addresses of private networks and of this machine may be read."""

    timeout_s: float = Field(default=60.0, gt=0.0, le=3600.0)
    """The longest that one request may take."""


class SiteSource(Part):
    """Pages of a web site: those of its sitemaps, or those that can be reached by links."""

    kind: Literal["site"]
    """`site`."""

    start: tuple[str, ...] = Field(min_length=1)
    """Addresses to begin with: pages, or sitemaps, which end in `.xml` or `.xml.gz`."""

    include: tuple[str, ...] = ()
    """Globs of addresses that are read; empty reads what lies below the start addresses."""

    exclude: tuple[str, ...] = ()
    """Globs of addresses that are left out."""

    max_pages: int = Field(default=10_000, ge=1, le=1_000_000)
    """Pages that are read at most."""

    max_depth: int = Field(default=10, ge=0, le=100)
    """Links that are followed one after another at most; 0 reads the start addresses and sitemaps alone."""

    requests_per_second: float = Field(default=2.0, gt=0.0, le=1000.0)
    """How often a host is asked; its robots.txt may make it slower."""

    user_agent: str = Field(default="headrace", min_length=1, max_length=200)
    """How we name ourselves; robots.txt is read for this name."""

    obey_robots: bool = True
    """Whether robots.txt is obeyed; only for sites of your own may it be ignored."""

    header_refs: dict[str, SecretRef] = Field(default={})
    """Headers to send to the hosts of the start addresses, as for a token, and where their values are found."""

    allow_private: bool = False
    """Whether addresses of private networks and of this machine may be read."""

    timeout_s: float = Field(default=30.0, gt=0.0, le=3600.0)
    """The longest that one request may take."""


class GitSource(Part):
    """Files of a Git repository at a branch, tag or commit."""

    kind: Literal["git"]
    """`git`."""

    url: str = Field(min_length=1)
    """The repository: `https://`, `ssh://`, or a path on this machine; without credentials."""

    ref: str = "HEAD"
    """A branch, tag or commit."""

    include: tuple[str, ...] = ("**/*",)
    """Globs of paths that are read."""

    exclude: tuple[str, ...] = ()
    """Globs of paths that are left out; hidden files and folders always are."""

    username: str = ""
    """The user for `https://`."""

    password_ref: SecretRef = ""
    """Where the password or token is found."""

    allow_private: bool = False
    """Whether addresses of private networks and of this machine may be read."""

    timeout_s: float = Field(default=600.0, gt=0.0, le=86_400.0)
    """The longest that fetching may take."""


class SqlSource(Part):
    """Rows of a database, by a query that SQLAlchemy can run."""

    kind: Literal["sql"]
    """`sql`."""

    url: str = Field(min_length=1)
    """The database as SQLAlchemy writes it, without password: `postgresql+psycopg://user@host/db`."""

    password_ref: SecretRef = ""
    """Where the password is found."""

    query: str = Field(min_length=1)
    """A SELECT. Its columns become the document's id, title, text and metadata."""

    id_column: str = "id"
    """The column of document ids."""

    title_column: str = ""
    """The column of titles; empty for none."""

    text_columns: tuple[str, ...] = Field(default=("text",), min_length=1)
    """The columns of texts, joined by blank lines."""

    format: Literal["plain", "markdown"] = "plain"
    """How the texts show their structure."""

    watermark_column: str = ""
    """A column that only rises with changes, such as `updated_at`: rows above its last value are read. Empty reads
    all."""

    full_every: int = Field(default=24, ge=1, le=10_000)
    """With a watermark: every so many runs all rows are read, since deleted rows show in no other way."""

    deleted_column: str = ""
    """A column that is true in rows that are deleted; empty for none."""

    rows_per_read: int = Field(default=1_000, ge=1, le=100_000)
    """Rows that are handed on at a time."""

    timeout_s: float = Field(default=600.0, gt=0.0, le=86_400.0)
    """The longest that the query may take."""


SourceSpec: TypeAlias = Annotated[
    FolderSource | FilesSource | SiteSource | GitSource | SqlSource, Field(discriminator="kind")
]
