"""Where settings come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.errors import ConfigError
from retrieval.live import LiveSettings
from retrieval.settings.load import Loaded, load_settings


def write(folder: Path, text: str) -> Path:
    """Writes a configuration file."""
    path = folder / "headrace.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_settings_flags_beat_variables_beat_the_file(tmp_path: Path) -> None:
    """The origin of every value that is no default is known."""
    file = write(tmp_path, "[retrieval]\ntop_k = 3\ncandidates = 40\nrrf_k = 7\n")
    loaded = load_settings(
        file, {"HEADRACE_RETRIEVAL__TOP_K": "4", "HEADRACE_RETRIEVAL__CANDIDATES": "50"}, {"retrieval.candidates": 60}
    )
    retrieval = loaded.settings.retrieval
    assert (retrieval.rrf_k, retrieval.top_k, retrieval.candidates) == (7, 4, 60)
    assert loaded.origins == {
        "retrieval.rrf_k": "file",
        "retrieval.top_k": "environment",
        "retrieval.candidates": "flag",
    }


@pytest.mark.parametrize(
    ("text", "environ", "named"),
    [
        ("[retrieval]\ntop_kk = 3\n", {}, "retrieval.top_kk"),
        ("[retrievall]\ntop_k = 3\n", {}, "retrievall"),
        ("[retreival]\n", {}, "retreival"),
        ("[retrieval.nope]\n", {}, "retrieval.nope"),
        ("", {"HEADRACE_RETRIEVAL__TOPK": "3"}, "HEADRACE_RETRIEVAL__TOPK"),
        ("[retrieval]\ntop_k = 0\n", {}, "retrieval.top_k"),
        ("[retrieval]\ntop_k = 300\n", {}, "top_k must not be above max_top_k"),
        ("[retrieval]\ndense_weight = nan\n", {}, "retrieval.dense_weight"),
        ("retrieval = 3\n", {}, "retrieval"),
        ("[retrieval\n", {}, "headrace.toml"),
        ("[[auth.keys]]\nname = 'a'\nsha256 = 'zz'\ntenant = 'A!'\n", {}, "auth.keys.0.sha256"),
    ],
)
def test_settings_faults_name_the_key(tmp_path: Path, text: str, environ: dict[str, str], named: str) -> None:
    """A misspelt key, a value out of bounds and broken TOML are all errors that say where."""
    with pytest.raises(ConfigError) as refused:
        load_settings(write(tmp_path, text), environ, {})
    assert named in str(refused.value)


def test_settings_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    """Two mistakes need one run to be seen."""
    with pytest.raises(ConfigError) as refused:
        load_settings(write(tmp_path, "[retrieval]\ntop_k = 0\nrrf_k = 0\n"), {}, {})
    assert len(refused.value.faults) == 2


def test_settings_missing_file_that_was_asked_for_is_an_error(tmp_path: Path) -> None:
    """A file named by the user must be there."""
    with pytest.raises(ConfigError, match="no such file"):
        load_settings(tmp_path / "absent.toml", {}, {})


def test_settings_lists_come_from_variables_as_json() -> None:
    """Keys can be given in a variable."""
    key = '[{"name":"a","sha256":"' + "0" * 64 + '","tenant":"t"}]'
    loaded = load_settings(None, {"HEADRACE_AUTH__KEYS": key}, {})
    assert loaded.settings.auth.keys[0].tenant == "t"


def test_live_reload_takes_live_settings_and_names_the_rest(tmp_path: Path) -> None:
    """Thresholds change at once; a port needs a restart and keeps its value."""
    file = write(tmp_path, "[retrieval]\ntop_k = 3\n")

    def load() -> Loaded:
        return load_settings(file, {}, {})

    live = LiveSettings(load(), load)
    seen: list[int] = []
    live.subscribe(lambda settings: seen.append(settings.retrieval.top_k))
    write(tmp_path, "[retrieval]\ntop_k = 5\n[server]\nport = 6000\n")
    done = live.reload()
    assert done.changed == ("retrieval.top_k",)
    assert done.needs_restart == ("server.port",)
    assert (live.current.retrieval.top_k, live.current.server.port) == (5, 50051)
    assert done.asked.settings.server.port == 6000
    assert seen == [5]


def test_live_reload_of_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    """One bad value, and not even the good ones are applied."""
    file = write(tmp_path, "[retrieval]\ntop_k = 3\n")

    def load() -> Loaded:
        return load_settings(file, {}, {})

    live = LiveSettings(load(), load)
    before = live.current
    write(tmp_path, "[retrieval]\ntop_k = 5\nrrf_k = -1\n")
    with pytest.raises(ConfigError):
        live.reload()
    assert live.current is before


def test_settings_data_folder_of_a_file_is_relative_to_the_file(tmp_path: Path) -> None:
    """The same file means the same folder from any working directory; a flag means what the caller sees."""
    file = write(tmp_path, "[data]\nfolder = 'store'\n")
    assert load_settings(file, {}, {}).settings.data.folder == tmp_path / "store"
    assert load_settings(file, {}, {"data.folder": "other"}).settings.data.folder == Path("other")
