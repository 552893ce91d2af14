"""Job files are read whole or not at all, with every fault in the line where it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.errors import InvalidJob
from indexers.jobs.examples import example_toml
from indexers.jobs.file_faults import SOURCES
from indexers.jobs.files import load_job, name_of, parse_job, spec_to_toml
from indexers.jobs.spec import JobSpec, MetadataSpec
from indexers.sources.spec import FolderSource, SqlSource

MINIMAL = 'collection = "books"\n[source]\nkind = "folder"\npath = "docs"\n'


def _faults(text: str) -> list[str]:
    with pytest.raises(InvalidJob) as raised:
        parse_job(text, "handbook", "jobs/handbook.toml")
    return list(raised.value.faults)


def test_parse_job_takes_the_name_given() -> None:
    """A file that says no name has the file's."""
    spec = parse_job(MINIMAL, "handbook", "x")
    assert (spec.name, spec.collection) == ("handbook", "books")
    assert spec.source == FolderSource(kind="folder", path="docs")
    assert parse_job('name = "own"\n' + MINIMAL, "handbook", "x").name == "own"


def test_parse_job_names_line_key_and_the_key_that_was_meant() -> None:
    """A misspelt key is told with its line, what was probably meant, and what is known."""
    [fault] = _faults(MINIMAL + 'includ = ["**/*.md"]\n')
    assert fault.startswith("jobs/handbook.toml:5: source.includ: there is no such key (did you mean 'include'?)")
    assert "known keys: kind, path, include, exclude, detect" in fault


def test_parse_job_tells_all_faults_at_once_in_order() -> None:
    """Whoever mends a file need not run it again for the next fault."""
    text = 'colection = "x"\n' + MINIMAL + '[parsing]\ntimeout_s = "soon"\n[[enrich]]\nname = "a"\ntask = "poem"\n'
    faults = _faults(text)
    assert [fault.split(": ")[:2] for fault in faults] == [
        ["jobs/handbook.toml:1", "colection"],
        ["jobs/handbook.toml:7", "parsing.timeout_s"],
        ["jobs/handbook.toml:10", "enrich[0].task"],
    ]


def test_parse_job_names_the_table_that_lacks_a_key() -> None:
    """A key that is missing has the line of the table that it is missing from."""
    [fault] = _faults('collection = "x"\n\n[source]\nkind = "git"\n')
    assert fault == "jobs/handbook.toml:3: source.url: is missing; give it a value"
    assert _faults('collection = "x"\n') == ["jobs/handbook.toml:1: source: is missing; give it a value"]


def test_parse_job_names_the_kinds_of_sources() -> None:
    """An unknown kind is told with those that there are."""
    [fault] = _faults('collection = "x"\n[source]\nkind = "folders"\npath = "x"\n')
    assert fault == (
        "jobs/handbook.toml:3: source.kind: must say what kind of source it is: folder, files, site, git, sql"
    )


def test_parse_job_names_the_line_of_broken_toml() -> None:
    """What is no TOML is told with its line, in a sentence."""
    [fault] = _faults('collection = "x"\n[source\nkind = "folder"\n')
    assert fault.startswith("jobs/handbook.toml:2: is no valid TOML: ")
    [fault] = _faults("a = [" + "[" * 5000)
    assert "jobs/handbook.toml" in fault


def test_parse_job_checks_what_several_keys_say() -> None:
    """Faults of a whole table have its line."""
    [fault] = _faults(MINIMAL + "[chunking]\nlimit_tokens = 3\n")
    assert fault == "jobs/handbook.toml:5: chunking: limit_tokens must be 0 or at least 32"
    [fault] = _faults(MINIMAL + '[schedule]\nevery_s = 60.0\ntimezone = "Mars/Olympus"\n')
    assert fault.startswith("jobs/handbook.toml:7: schedule.timezone: is no time zone")


@pytest.mark.parametrize(
    "line",
    [
        'url = "postgresql://reader:hunter2@db/wiki"',
        'url = "https://x/?access_token=hunter2"',
        'password = "hunter2"',
        'password_ref = "hunter2"',
        'api_token = "hunter2"',
        'query = "-----BEGIN RSA PRIVATE KEY-----hunter2"',
    ],
)
def test_parse_job_refuses_credentials_and_never_repeats_them(line: str) -> None:
    """A credential in a job file is refused with the advice to refer to it, and is not in the message."""
    rest = {"url": 'url = "sqlite://"', "query": 'query = "SELECT 1"'}
    lines = [line, *(other for key, other in rest.items() if not line.startswith(f"{key} "))]
    faults = _faults('collection = "x"\n[source]\nkind = "sql"\n' + "\n".join(lines) + "\n")
    [fault] = [one for one in faults if one.startswith("jobs/handbook.toml:4: ")]
    assert "hunter2" not in "".join(faults)
    assert "_ref" in fault or "env:NAME" in fault


def test_parse_job_takes_hostile_texts_for_what_they_are() -> None:
    """Texts that are far too long, nest far too deep or repeat what a search looks for are refused like others."""
    for hostile in ("sk-" * 300_000, "a" * 1_000_000, "a://" * 200_000, "gho_" * 200_000, "-----BEGIN " * 90_000):
        assert _faults(f'collection = "x"\nname = "{hostile}"\n')
    assert "longer than" in _faults("#" * 2_000_000)[0]
    for deep in ("[" * 20_000 + "]" * 20_000, "{a = " * 250 + "1" + "}" * 250):
        assert _faults(f"a = {deep}\n")


def test_parse_job_takes_a_user_without_password() -> None:
    """A user's name alone is no credential."""
    text = 'collection = "x"\n[source]\nkind = "sql"\nquery = "SELECT 1"\nurl = "postgresql://me@db/wiki"\n'
    assert isinstance(parse_job(text, "a", "a").source, SqlSource)


def test_load_job_says_what_paths_start_from(tmp_path: Path) -> None:
    """Relative paths start from the file's folder, and the name is the file's."""
    (tmp_path / "My Books.toml").write_text("\ufeff" + MINIMAL, encoding="utf-8")
    spec, folder = load_job(tmp_path / "My Books.toml")
    assert (spec.name, folder) == ("my-books", str(tmp_path.resolve()))
    assert name_of(Path("jobs/-_.toml")) == ""


def test_load_job_names_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, one of another encoding and one that is far too large are faults like others."""
    (tmp_path / "latin.toml").write_bytes(b'name = "a"\n# caf\xe9\n')
    (tmp_path / "large.toml").write_bytes(b"#" * (1024 * 1024 + 1))
    for name, said in (("no.toml", "cannot be read"), ("latin.toml", "2: is no valid UTF-8"), ("large.toml", "larger")):
        with pytest.raises(InvalidJob, match=said):
            load_job(tmp_path / name)


@pytest.mark.parametrize("kind", SOURCES)
def test_example_parses_as_it_is(kind: str) -> None:
    """What `headrace jobs example` prints is a job of that kind."""
    assert parse_job(example_toml(kind), "x", "x").source.kind == kind


@pytest.mark.parametrize("kind", SOURCES)
def test_example_parses_with_all_its_defaults(kind: str) -> None:
    """Every key that stands in a comment can be had by removing the mark before it."""
    keys = {name for part in (JobSpec, MetadataSpec) for name in part.model_fields}
    lines = example_toml(kind).splitlines()
    shown = [line for line in lines if line.startswith("# ") and line[2:].partition(" = ")[1]]
    assert len(shown) > len(keys)
    without_steps = lines[: lines.index("# [[enrich]]")]
    text = "\n".join(line[2:] if line in shown else line for line in without_steps)
    assert parse_job(text, "x", "x").metadata.keep == ("author", "year")


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)


@given(TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS | st.integers(-(2**53), 2**53) | st.booleans(), max_size=3))
def test_spec_to_toml_reads_back_as_the_same_job(
    path: str, description: str, values: dict[str, str | int | float | bool]
) -> None:
    """A job that is shown as TOML is the job, whatever characters its texts have."""
    source = FolderSource(kind="folder", path=path.strip() or "x", include=(description, "b"))
    spec = JobSpec(
        name="a", collection="b", description=description, source=source, metadata=MetadataSpec(set=values, keep=())
    )
    assert parse_job(spec_to_toml(spec), "other", "x") == spec


def test_spec_to_toml_leaves_out_defaults() -> None:
    """People see what was chosen."""
    assert spec_to_toml(parse_job(MINIMAL, "handbook", "x")) == (
        'name = "handbook"\ncollection = "books"\n\n[source]\nkind = "folder"\npath = "docs"\n'
    )


def _documented() -> list[str]:
    text = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text(encoding="utf-8")
    return [block for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[source]" in block]


@pytest.mark.parametrize("block", _documented(), ids=lambda block: block.split('kind = "')[1].partition('"')[0])
def test_examples_of_the_documentation_parse(block: str) -> None:
    """Every job file that the page shows is one."""
    assert parse_job(block if block.startswith("collection") else f'collection = "x"\n{block}', "x", "x").name == "x"
