"""The settings reference and the example file say what the tree says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from retrieval.settings import Settings
from retrieval.settings.load import leaves, load_settings
from retrieval.settings.reference import example_toml, reference_markdown
from retrieval.settings.shown import MASK, shown_settings, toml_value

ROOT = Path(__file__).parents[2]
LISTS_OF_TABLES = {
    "auth.keys",
    "cache.policies",
    "generation.queue.tenants",
    "generation.routing.rules",
    "cache.redis.tenant_keys",
    "generation.backends",
    "rerank.anytime.lines",
}


@pytest.mark.parametrize(
    ("file", "written"), [("docs/settings.md", reference_markdown), ("headrace.example.toml", example_toml)]
)
def test_checked_in_file_is_current(file, written):
    """The checked-in reference and example are what `headrace config reference` and `headrace config example` print."""
    assert (ROOT / file).read_text(encoding="utf-8") == written()


def test_every_setting_has_a_docstring():
    """No setting is without a sentence that says what it does."""
    assert all(not re.search(r"\|\s+\|$", line) for line in reference_markdown().splitlines() if line.startswith("| `"))


def test_example_sets_nothing():
    """As it is, the example file leaves every setting at its default."""
    assert _values(example_toml()) == {}


def test_example_uncommented_gives_the_defaults(tmp_path, monkeypatch):
    """With the comment marks of plain settings taken away, the example gives the defaults, and names them all."""
    text = re.sub(r"^# (?=\w+ = )", "", _without_tables(example_toml()), flags=re.MULTILINE)
    monkeypatch.chdir(tmp_path)  # a relative folder in a file is relative to the file
    file = Path("headrace.toml")
    file.write_text(text, encoding="utf-8")
    loaded = load_settings(file, {}, {})
    assert loaded.settings == Settings()
    assert set(loaded.origins) == {path for path, _, _ in leaves(Settings())} - LISTS_OF_TABLES


def test_example_shows_an_entry_of_each_list_of_tables():
    """A list of tables is shown by one entry, which parses once its marks are taken away."""
    parsed = tomllib.loads(re.sub(r"^# (?=\w+ = |\[\[)", "", example_toml(), flags=re.MULTILINE))
    assert parsed["auth"]["keys"][0].keys() == {"name", "sha256", "tenant", "roles", "data_policy"}
    assert parsed["generation"]["backends"][0]["kind"] == "extractive"


def test_shown_settings_mask_secrets():
    """A secret is shown as a mask, an empty one as empty, and neither by its text."""
    loaded = load_settings(None, {"HEADRACE_INDEX__QDRANT__API_KEY": "swordfish"}, {})
    shown = {one.path: one for one in shown_settings(loaded)}
    assert shown["index.qdrant.api_key"].value == f'"{MASK}"'
    assert shown["index.qdrant.api_key"].origin == "environment"
    assert "swordfish" not in str(shown)
    assert 'api_key = ""' in shown["generation.backends"].value


@pytest.mark.parametrize(
    "value", ["plain", 'quotes " and \\', "line\nbreak", "ünïcode", True, 0, -3, 1.0, 1e-9, ("a", "b"), ()]
)
def test_toml_value_reads_back(value):
    """What is shown as TOML reads back as the same value."""
    read = tomllib.loads(f"value = {toml_value(value)}")["value"]
    assert (tuple(read) if isinstance(value, tuple) else read) == value


def _values(text: str) -> dict[str, object]:
    found = tomllib.loads(text)
    return {
        name: value for name, value in found.items() if value and any(not isinstance(v, dict) for v in value.values())
    }


def _without_tables(text: str) -> str:
    """Drops the shown entries of lists of tables."""
    return re.sub(r"^# \[\[[^\n]*\n(?:# (?:  [^\n]*|\w+ = [^\n]*)\n|#   [^\n]*\n)*", "", text, flags=re.MULTILINE)
