"""The command line against a real server in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from indexers.parsing.parsed import ParsedDocument
from indexers.types import Document
from retrieval.cli.child import child_server
from retrieval.cli.demo import QUESTIONS, run_demo
from retrieval.cli.exits import ImportBroken, WorkFailed
from retrieval.cli.index_files import Files
from retrieval.cli.index_job import IndexJob
from retrieval.cli.index_remote import index_remote
from retrieval.cli.main import execute
from retrieval.client import Client
from retrieval.server.endpoint_file import running_server

ROOT = Path(__file__).parents[2]
ENVIRON = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'proto'}"}
TEXTS = {
    "dam.md": "# Dams\n\nA dam holds back a river. The spillway lets surplus water pass safely.\n",
    "turbine.md": "# Turbines\n\nA turbine turns the energy of falling water into rotation.\n",
    "notes/fish.txt": "Fish ladders let salmon climb past a weir to their spawning grounds.\n",
}


def run(capsys, *arguments, environ=None):
    """Runs a command and returns its exit code, what it printed, and what it said on standard error."""
    code = execute(arguments, environ or {})
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def texts(tmp_path):
    """A folder of small files."""
    folder = tmp_path / "texts"
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@contextmanager
def serving(folder, settings):
    """Runs a server on a free port while the body runs; it says that it serves, and ends with exit code 0."""
    config = folder / "headrace.toml"
    config.write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "retrieval.cli.main", "serve", "--port", "0"]
    options = ["--config", str(config), "--data", str(folder)]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, env=ENVIRON, text=True) as process:
        assert process.stderr is not None
        said = next((line for line in process.stderr if '"serving"' in line), "")
        assert said, "the server did not begin to serve"
        yield
        process.terminate()
        process.stderr.read()
        assert process.wait() == 0


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The data folder of a running server."""
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, "[retrieval]\ntop_k = 5\n"):
        yield folder


def test_index_by_itself_then_only_what_changed(capsys, texts, tmp_path):
    """Without a server the data folder is opened here; a second run embeds nothing, pruning removes what is gone."""
    command = ("index", str(texts), "-c", "notes", "--data", str(tmp_path / "data"), "--json")
    code, out, _ = run(capsys, *command, "--create-field", "river:keyword", "--metadata", "river=Inn")
    first = json.loads(out)
    assert (code, first["written"], first["failed"]) == (0, 3, 0)
    assert first["epoch"]["generation"] == 1
    (texts / "dam.md").unlink()
    code, out, _ = run(capsys, *command, "--metadata", "river=Inn", "--prune")
    second = json.loads(out)
    assert (code, second["written"], second["unchanged"], second["removed"]) == (0, 0, 2, 1)


def test_index_goes_on_past_a_bad_file(capsys, texts, tmp_path):
    """A broken file, a missing path and a file of another kind are named; the rest is indexed, the exit code is 1."""
    (texts / "broken.pdf").write_bytes(b"%PDF-1.7 nothing else")
    (texts / "picture.png").write_bytes(b"\x89PNG")
    data = str(tmp_path / "data")
    code, out, err = run(capsys, "index", str(texts), str(tmp_path / "missing"), "-c", "notes", "--data", data)
    assert code == 1
    assert "broken.pdf" in out
    assert "missing" in out
    assert "picture.png" in out
    assert "could not be indexed" in err


def test_path_from_files_to_an_answer(capsys, served, texts):
    """Through the server: files are indexed, listed, counted, found, and answer a question with cited sources."""
    at = ("--data", str(served))
    options = ("--create-field", "year:integer", "--metadata", "year=1958", "--json")
    code, out, _ = run(capsys, "index", str(texts), "-c", "water", *options, *at)
    assert (code, json.loads(out)["written"]) == (0, 3)
    code, out, _ = run(capsys, "index", str(texts), "-c", "water", *options, *at)
    assert (code, json.loads(out)["unchanged"]) == (0, 3)
    (texts / "turbine.md").rename(texts / "wheel.md")
    code, out, _ = run(capsys, "index", str(texts), "-c", "water", "--prune", *options, *at)
    pruned = json.loads(out)
    assert (code, pruned["written"], pruned["unchanged"], pruned["removed"]) == (0, 1, 2, 1)

    code, out, _ = run(capsys, "ask", "What lets salmon past a weir?", "-c", "water", *at, "--json")
    answer = json.loads(out)
    assert code == 0
    assert "Fish ladders" in answer["answer"]
    assert answer["sources"][answer["citations"][0]["number"] - 1]["document_id"] == "notes/fish.txt"
    assert sum(stage["wall_ns"] for stage in answer["ledger"]["stages"]) == answer["ledger"]["total_ns"]

    code, out, _ = run(capsys, "ask", "What lets salmon past a weir?", "-c", "water", *at)
    assert code == 0
    assert out.startswith("Fish ladders")
    assert "cited" in out
    assert "lookup" in out

    code, out, _ = run(capsys, "retrieve", "energy of water", "-c", "water", "--where", "year >= 1950", *at, "--json")
    assert code == 0
    assert json.loads(out)["hits"][0]["metadata"] == {"year": 1958}
    assert run(capsys, "retrieve", "energy of water", "-c", "water", *at)[0] == 0


def test_cache_is_shown_explained_and_emptied(capsys, served, texts):
    """A kept answer is explained by its key, served again, counted, and gone once its document's cache is emptied."""
    at = ("-c", "kept", "--data", str(served))
    ask = ("ask", "What lets salmon past a weir?", *at)
    assert run(capsys, "index", str(texts), *at)[0] == 0
    assert run(capsys, *ask, "--only-if-cached")[0] == 1
    first = json.loads(run(capsys, *ask, "--json")[1])["reuse"]
    again = json.loads(run(capsys, *ask, "--json", "--only-if-cached")[1])["reuse"]
    assert (first["kind"], first["stored"], again["kind"], again["key"]) == ("unspecified", True, "equal", first["key"])
    assert "served the answer to the same question" in run(capsys, *ask)[1]
    assert "nothing served, not asked, as was wished" in run(capsys, *ask, "--no-cache", "--no-store")[1]

    code, out, _ = run(capsys, "cache", "explain", first["key"], *at)
    assert (code, "salmon" in out, "as it was" in out) == (0, True, True)
    passages = json.loads(run(capsys, "cache", "explain", first["key"], *at, "--json")[1])["passages"]
    assert {one["document_id"] for one in passages if one["cited"]} == {"notes/fish.txt"}
    code, out, _ = run(capsys, "cache", "stats", "--data", str(served))
    assert (code, "answers" in out, "results" in out) == (0, True, True)

    forgotten = json.loads(run(capsys, "cache", "invalidate", *at, "--document", "notes/fish.txt", "--json")[1])
    assert (forgotten["memory"] > 0, forgotten["shared"]) == (True, 0)
    code, _, err = run(capsys, "cache", "explain", first["key"], *at)
    assert (code, "ANSWER_NOT_FOUND" in err) == (1, True)
    assert run(capsys, "cache", "invalidate", "--yes", "--data", str(served))[0] == 0


def test_server_run_goes_on_past_documents_that_cannot_be_sent(capsys, served, texts):
    """A name that is no UTF-8 is made valid; a document that cannot become a message is named; the rest is indexed."""
    Path(os.fsdecode(os.fsencode(texts) + b"/bad\xffname.md")).write_text("Of a strange name.", encoding="utf-8")
    rows = [{"id": "huge", "text": "A row.", "metadata": {"n": 2**70}}, {"id": "good", "text": "Another row."}]
    rows.append({"id": "title", "text": "A third row.", "title": "half \ud800"})
    rows.append({"id": "value", "text": "A fourth row.", "metadata": {"a": "half \ud800"}})
    (texts / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    code, out, err = run(capsys, "index", str(texts), "-c", "strange", "--data", str(served), "--json")
    report = json.loads(out)
    listed = run(capsys, "documents", "list", "-c", "strange", "--data", str(served), "--json")[1]
    found = {one["id"] for one in json.loads(listed)["documents"]}
    assert code == 1
    assert "could not be indexed" in err
    assert found >= {*TEXTS, "bad\ufffdname.md", "good"}
    assert "huge" not in found
    assert report["failed"] + report["written"] == len(TEXTS) + 5


@pytest.mark.parametrize("through_server", [True, False], ids=["server", "local"])
def test_folders_do_not_replace_each_other(capsys, served, texts, tmp_path, through_server):
    """A file whose id is taken by a file of another folder fails, naming both, unless replacing is asked for."""
    other = tmp_path / "other place"
    other.mkdir()
    (other / "dam.md").write_text("Another dam.", encoding="utf-8")
    (other / "a lock.md").write_text("A lock.", encoding="utf-8")
    at = ("-c", "places", "--data", str(served if through_server else tmp_path / "data"), "--json")
    assert run(capsys, "index", str(texts), *at)[0] == 0
    for written in (1, 0):
        code, out, _ = run(capsys, "index", str(other), *at)
        report = json.loads(out)
        assert (code, report["written"], report["failed"]) == (1, written, 1)
        assert (other / "dam.md").as_uri() in report["failures"][0]["reason"]
        assert (texts / "dam.md").as_uri() in report["failures"][0]["reason"]
    assert json.loads(run(capsys, "index", str(texts), *at)[1])["unchanged"] == 3
    code, out, _ = run(capsys, "index", str(other), "--replace-sources", *at)
    assert (code, json.loads(out)["written"]) == (0, 1)


def test_nothing_indexed_is_not_said_to_be_in_place(capsys, tmp_path):
    """When the only path is not there, nothing else is claimed."""
    code, _, err = run(capsys, "index", str(tmp_path / "none"), "-c", "x", "--data", str(tmp_path / "data"))
    assert code == 1
    assert "no others" in err


def test_tenant_with_a_server_is_refused(capsys, served, texts):
    """A server takes the tenant from the key, so the option is a wrong use rather than ignored."""
    code, _, err = run(capsys, "index", str(texts), "-c", "x", "--tenant", "acme", "--data", str(served))
    assert code == 2
    assert "key decides the tenant" in err


class _Killer:
    """Ends the server at the first document that is read, as a crash in the middle of an import."""

    def __init__(self, process, items):
        self._process = process
        self._items = items

    def __iter__(self):
        self._process.kill()
        self._process.wait()
        yield from self._items


async def test_server_that_dies_in_an_import_is_told_apart(texts, tmp_path):
    """The sentence says that the import broke off, what is kept, and that the same command goes on."""
    command = [sys.executable, "-m", "retrieval.cli.main", "serve", "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRON, text=True) as process:
        assert process.stderr is not None
        assert next((line for line in process.stderr if '"serving"' in line), "")
        address = running_server(tmp_path)
        assert address is not None
        job = IndexJob("notes", {}, _Killer(process, Files([texts], {})), ())
        async with Client(address) as client:
            with pytest.raises(ImportBroken, match="same command goes on"):
                await index_remote(client, job, None)


def test_key_opens_its_own_tenant(capsys, texts, tmp_path):
    """A server with keys refuses callers without one; the key comes from an option or a variable."""
    made = json.loads(
        run(capsys, "keys", "new", "app", "--tenant", "acme", "--role", "read", "--role", "write", "--json")[1]
    )
    entry = "\n".join(f"{name} = {json.dumps(made[name])}" for name in ("name", "sha256", "tenant", "roles"))
    with serving(tmp_path, f"[[auth.keys]]\n{entry}\n"):
        at = ("--data", str(tmp_path))
        code, _, err = run(capsys, "collections", "list", *at)
        assert code == 1
        assert "API key" in err
        assert run(capsys, "index", str(texts), "-c", "notes", *at, environ={"HEADRACE_API_KEY": made["key"]})[0] == 0
        code, out, _ = run(capsys, "collections", "list", *at, "--api-key", made["key"], "--json")
        assert (code, [one["name"] for one in json.loads(out)["collections"]]) == (0, ["notes"])
    assert (tmp_path / "acme" / "notes").is_dir()


def test_documents_are_looked_after(capsys, served, texts):
    """Documents are listed page by page, shown, counted, and deleted by id and by filter."""
    at = ("-c", "archive", "--data", str(served))
    assert run(capsys, "index", str(texts), *at, "--create-field", "year:integer", "--metadata", "year=1958")[0] == 0
    page = json.loads(run(capsys, "documents", "list", *at, "--limit", "2", "--json")[1])
    rest = json.loads(run(capsys, "documents", "list", *at, "--page-token", page["next_page_token"], "--json")[1])
    assert [one["id"] for one in page["documents"] + rest["documents"]] == sorted(TEXTS)
    assert "salmon" in run(capsys, "documents", "show", "notes/fish.txt", *at)[1]
    assert json.loads(run(capsys, "documents", "count", *at, "--where", "year < 1950", "--json")[1])["documents"] == 0
    assert run(capsys, "documents", "delete", "dam.md", *at)[0] == 0
    code, _, err = run(capsys, "documents", "delete", "dam.md", *at)
    assert code == 1
    assert "not in 'archive'" in err
    assert json.loads(run(capsys, "documents", "delete", *at, "--where", "year = 1958", "--json")[1])["deleted"] == 2


def test_collections_are_looked_after(capsys, served):
    """A collection is created, changed, shown, listed, built and deleted."""
    at = ("--data", str(served))
    assert run(capsys, "collections", "create", "rivers", "--field", "name:keyword", *at)[0] == 0
    assert run(capsys, "collections", "create", "rivers", *at)[0] == 1
    code, out, _ = run(capsys, "collections", "update", "rivers", "--field", "length:float", *at, "--json")
    assert (code, json.loads(out)["fields"]) == (0, {"length": "float", "name": "keyword"})
    assert "rivers" in run(capsys, "collections", "list", *at)[1]
    assert "length:float" in run(capsys, "collections", "show", "rivers", *at)[1]
    assert run(capsys, "collections", "build", "rivers", *at)[0] == 0
    code, out, _ = run(capsys, "collections", "create", "plain", "--no-token-vectors", *at)
    assert code == 0
    assert "not stored" in out
    assert run(capsys, "collections", "delete", "rivers", "--yes", *at)[0] == 0
    code, _, err = run(capsys, "collections", "show", "rivers", *at)
    assert code == 1
    assert err.startswith("headrace: ")
    assert "NOT_FOUND" in err


def test_server_is_looked_at_and_reloaded(capsys, served):
    """Info and health answer, a reload says what has changed, and a bad file is refused while the old settings stay."""
    at = ("--data", str(served))
    assert json.loads(run(capsys, "info", *at, "--json")[1])["models"][0]["role"] == "dense"
    assert "bundled:minilm-l6" in run(capsys, "info", *at)[1]
    assert json.loads(run(capsys, "health", *at, "--json")[1])["status"] == "serving"
    config = served / "headrace.toml"
    config.write_text("[retrieval]\ntop_k = 6\n", encoding="utf-8")
    changed = json.loads(run(capsys, "config", "reload", *at, "--json")[1])["changed"]
    assert [(one["path"], one["value"]) for one in changed] == [("retrieval.top_k", "6")]
    assert "nothing has changed" in run(capsys, "config", "reload", *at)[1]
    config.write_text("[retrieval]\ntop_q = 6\n", encoding="utf-8")
    code, _, err = run(capsys, "config", "reload", *at)
    assert code != 0
    assert "top_q" in err


async def test_demo_answers_its_questions(tmp_path, capsys):
    """The demo indexes what it is given, asks a server of its own over gRPC, streams answers and shows the stages."""
    texts = (
        "Default arguments are made when the function is defined, so calls share them.",
        "A shell command prints output.",
    )
    documents = [ParsedDocument(Document(f"topic/{n}", f"topic {n}", text)) for n, text in enumerate(texts)]
    environ = {**ENVIRON, "HEADRACE_SERVER__HOST": "no such host"}
    result = await run_demo(tmp_path, documents, environ, streamed=True)
    out = capsys.readouterr().out
    assert [answer["question"] for answer in result["answers"]] == list(QUESTIONS)
    assert "Default arguments are made when the function is defined, so calls share them. [1]" in out
    assert "generate" in out
    assert not (tmp_path / "server.json").exists()


async def test_child_server_that_cannot_start_shows_its_log(tmp_path):
    """When the server of the demo does not start, the error holds the end of its log."""
    config = tmp_path / "headrace.toml"
    config.write_text("[retrieval]\ntop_q = 6\n", encoding="utf-8")
    with pytest.raises(WorkFailed, match="top_q"):
        async with child_server(config, tmp_path, ENVIRON):
            pytest.fail("it must not serve")
