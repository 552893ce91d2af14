"""Commands that need no server: settings, keys, help, and how errors end a command."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from retrieval.cli.main import execute
from retrieval.cli.session import Session, Surroundings
from retrieval.server.endpoint_file import NAME as ENDPOINT_FILE
from retrieval.server.endpoint_file import running_server
from retrieval.settings.service import ApiKey

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments, environ=None):
    """Runs a command and returns its exit code, what it printed, and what it said on standard error."""
    code = execute(arguments, environ or {})
    said = capsys.readouterr()
    return code, said.out, said.err


def test_help_names_every_command(capsys):
    """The help names all commands and says what exit codes mean."""
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for command in (
        "serve",
        "index",
        "ask",
        "retrieve",
        "collections",
        "documents",
        "cache",
        "config",
        "keys",
        "info",
        "demo",
    ):
        assert command in out
    assert "Exit codes" in out


@pytest.mark.parametrize("command", ["serve", "index", "ask", "retrieve", "demo", "info", "health"])
def test_command_has_help(capsys, command):
    """Each command explains itself, without the context parameter that is none of the caller's."""
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert "Usage" in out
    assert "ctx" not in out.lower()


def test_help_loads_no_engine():
    """Asking for help loads neither models, stores, gRPC nor the settings tree."""
    program = (
        "import sys\nfrom retrieval.cli.main import execute\ncode = execute(['--help'], {})\n"
        "heavy = {'onnxruntime', 'qdrant_edge', 'qdrant_client', 'grpc', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy or code else 0)"
    )
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'proto'}"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr


def test_config_show_tells_origins(capsys, tmp_path):
    """Every setting is shown with the source that it comes from, the stronger one winning."""
    (tmp_path / "headrace.toml").write_text("[retrieval]\ntop_k = 7\ncandidates = 50\n", encoding="utf-8")
    environ = {"HEADRACE_RETRIEVAL__CANDIDATES": "60", "HEADRACE_API_KEY": "hush-hush", "HEADRACE_SERVER": "host:1"}
    code, out, _ = run(capsys, "config", "show", "--json", "--set", "log.level=debug", environ=environ)
    shown = json.loads(out)
    found = {one["path"]: (one["value"], one["origin"]) for one in shown["settings"]}
    assert code == 0
    assert shown["file"] == "headrace.toml"
    assert found["retrieval.top_k"] == ("7", "file")
    assert found["retrieval.candidates"] == ("60", "environment")
    assert found["log.level"] == ('"debug"', "flag")
    assert found["server.port"] == ("50051", "default")
    assert "hush-hush" not in out


def test_config_show_prints_a_table(capsys):
    """Without --json the settings are a table."""
    code, out, _ = run(capsys, "config", "show", "--data", "elsewhere")
    assert code == 0
    assert "data.folder" in out
    assert '"elsewhere"' in out


def test_config_check_names_files_that_are_not_there(capsys, tmp_path):
    """A missing tokenizer, certificate or GGUF file is told before a server is started, by its setting."""
    backends = [
        {"name": "own", "kind": "llama", "model": "gone.gguf"},
        {
            "name": "llm",
            "kind": "openai",
            "model": "m",
            "base_url": "https://h/v1",
            "tokenizer": "gone.json",
            "tls_ca_file": "gone.pem",
        },
    ]
    environ = {
        "HEADRACE_GENERATION__BACKENDS": json.dumps(backends),
        "HEADRACE_GENERATION__DEFAULT_BACKEND": "auto",
        "HEADRACE_CONTEXT__TOKENIZER": "bundled",
    }
    code, _, err = run(capsys, "config", "check", environ=environ)
    assert code == 2
    for named in ("'own': model", "'llm': tokenizer", "'llm': tls_ca_file"):
        assert named in err
    for name in ("gone.gguf", "gone.json", "gone.pem"):
        (tmp_path / name).touch()
    assert run(capsys, "config", "check", environ=environ)[0] == 0


def test_config_check_is_good(capsys):
    """Settings that can be used give exit code 0, and say where they come from."""
    assert run(capsys, "config", "check") == (0, "the defaults: good\n", "")
    assert json.loads(run(capsys, "config", "check", "--json")[1]) == {"file": None, "ok": True}


@pytest.mark.parametrize(
    ("arguments", "environ", "said"),
    [
        (["--set", "retrieval.topk=3"], {}, "retrieval.topk"),
        (["--set", "retrieval.top_k=0"], {}, "retrieval.top_k"),
        (["--set", "nonsense"], {}, "PATH=VALUE"),
        (["--set", "auth.keys=[1"], {}, "JSON"),
        ([], {"HEADRACE_RETREIVAL__TOP_K": "3"}, "HEADRACE_RETREIVAL__TOP_K"),
        (["--config", "missing.toml"], {}, "missing.toml"),
        (["--set", "cache.redis.url=rdis://127.0.0.1"], {}, "cache.redis.url"),
        (["--set", "cache.redis.url=redis://"], {}, "cache.redis.url"),
        (["--set", "cache.redis.url=rediss://h", "--set", "cache.redis.tls_ca_file=/no/ca"], {}, "redis.tls_ca_file"),
        (["--set", "cache.redis.share_results=true"], {}, "cache.redis.share_results"),
        (["--set", "server.host=0.0.0.0"], {}, "server.host"),
    ],
)
def test_config_check_refuses(capsys, arguments, environ, said):
    """A misspelt key, a bad value, an unknown variable and a missing file end with exit code 2 and the fault."""
    code, out, err = run(capsys, "config", "check", *arguments, environ=environ)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["example", "reference"])
def test_config_writes_its_documentation(capsys, command):
    """The reference and the example file are printed, as text and inside JSON alike."""
    code, out, _ = run(capsys, "config", command)
    assert code == 0
    assert "top_k" in out
    assert json.loads(run(capsys, "config", command, "--json")[1]) == {"text": out}


def test_keys_new_makes_an_entry_that_admits_the_key(capsys):
    """The printed entry is one that the settings take, and its hash is the key's."""
    code, out, _ = run(capsys, "keys", "new", "app", "--tenant", "acme", "--role", "read", "--role", "write")
    lines = out.splitlines()
    key = lines[0].removeprefix("key: ")
    entry = ApiKey.model_validate(tomllib.loads(out[out.index("[[") :])["auth"]["keys"][0])
    assert code == 0
    assert entry.sha256 == hashlib.sha256(key.encode()).hexdigest()
    assert (entry.name, entry.tenant, entry.roles) == ("app", "acme", ("read", "write"))


def test_keys_new_as_json(capsys):
    """As JSON there is the key and what the configuration stores; two keys are never the same."""
    first, second = (json.loads(run(capsys, "keys", "new", "app", "--json")[1]) for _ in range(2))
    assert first.keys() == {"key", "name", "sha256", "tenant", "data_policy", "roles", "expires_at"}
    assert first["key"] != second["key"]


@pytest.mark.parametrize(
    "wrong", [["--role", "owner"], ["--tenant", "No Spaces"], ["--expires", "tomorrow"]], ids=["role", "tenant", "time"]
)
def test_keys_new_refuses(capsys, wrong):
    """A role, tenant or time that the settings would not take is refused before a key is made."""
    code, out, err = run(capsys, "keys", "new", "app", *wrong)
    assert (code, out) == (2, "")
    assert err


@pytest.mark.parametrize(
    "command",
    [
        ["collections", "list"],
        ["documents", "count", "-c", "notes"],
        ["retrieve", "why?", "-c", "notes"],
        ["ask", "why?", "-c", "notes"],
        ["info"],
        ["health"],
        ["config", "reload"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_command_without_a_server_says_so(capsys, command):
    """When nothing answers at the address, the command ends with exit code 1 and one sentence that names it."""
    code, out, err = run(capsys, *command, "--server", "127.0.0.1:1")
    assert (code, out) == (1, "")
    assert err.startswith("headrace: no server answers at 127.0.0.1:1")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["collections", "create", "notes", "--field", "year"], ["documents", "delete", "-c", "notes"]]
)
def test_wrong_use_is_refused_before_the_server_is_asked(capsys, arguments):
    """What the command line alone shows to be wrong ends with exit code 2, without a server."""
    code, _, err = run(capsys, *arguments, "--server", "127.0.0.1:1")
    assert code == 2
    assert err.startswith("headrace: ")


def test_filter_that_does_not_parse_is_wrong_use(capsys):
    """A filter with a syntax error ends with exit code 2 and says where."""
    code, _, err = run(capsys, "documents", "count", "-c", "notes", "--where", "year >=", "--server", "127.0.0.1:1")
    assert code == 2
    assert err.startswith("headrace: ")


def test_server_of_a_data_folder_is_found(tmp_path):
    """The address in a data folder counts while its process lives; a leftover or broken file does not."""
    assert running_server(tmp_path) is None
    file = tmp_path / ENDPOINT_FILE
    file.write_text(json.dumps({"address": "127.0.0.1:9", "pid": os.getpid()}), encoding="utf-8")
    assert running_server(tmp_path) == "127.0.0.1:9"
    assert running_server(tmp_path, pid=os.getpid() + 1) is None
    file.write_text(json.dumps({"address": "127.0.0.1:9", "pid": 2**22 + 1}), encoding="utf-8")
    assert running_server(tmp_path) is None
    file.write_text("{", encoding="utf-8")
    assert running_server(tmp_path) is None


def test_client_variables_are_no_settings():
    """The client's two variables are taken out of the environment before settings are read from it."""
    surroundings = Surroundings.of(
        {"HEADRACE_SERVER": "host:1", "HEADRACE_API_KEY": "key", "HEADRACE_LOG__LEVEL": "debug"}
    )
    assert (surroundings.server, surroundings.api_key) == ("host:1", "key")
    assert Session(surroundings).load().settings.log.level == "debug"


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "--yes"), (("--document", "d"), "--collection"), (("-c", "docs", "--older-than", "soon"), "like 90s")],
)
def test_cache_invalidate_refuses_what_is_not_clear(capsys, options, said):
    """Everything is forgotten only when that is said; a document needs its collection; an age must be one."""
    code, _, err = run(capsys, "cache", "invalidate", *options)
    assert code == 2
    assert said in err
