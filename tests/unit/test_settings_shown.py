"""What people see of settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.settings.load import load_settings
from retrieval.settings.shown import MASK, shown_settings, toml_value

KEYS = "".join(
    f"[[auth.keys]]\nname = 'of {tenant}'\nsha256 = '{digit * 64}'\ntenant = '{tenant}'\n"
    for tenant, digit in (("one", "1"), ("two", "2"))
)


def _keys(folder: Path, tenant: str | None) -> str:
    file = folder / "headrace.toml"
    file.write_text(KEYS, encoding="utf-8")
    shown = shown_settings(load_settings(file, {}, {}), tenant)
    return next(setting.value for setting in shown if setting.path == "auth.keys")


def test_hashes_of_keys_are_masked(tmp_path: Path) -> None:
    """Who has keys is shown, their hashes are not."""
    value = _keys(tmp_path, None)
    assert "of one" in value
    assert "of two" in value
    assert value.count(f'sha256 = "{MASK}"') == 2
    assert "1" * 64 not in value


def test_tenants_see_only_their_own_keys(tmp_path: Path) -> None:
    """Keys of other tenants are left out, whether the tenant has some of its own or none."""
    assert "of one" in _keys(tmp_path, "one")
    assert "of two" not in _keys(tmp_path, "one")
    assert _keys(tmp_path, "three") == "[]"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://ann:pw@h:8000/v1", f"http://{MASK}@h:8000/v1"),
        ("http://pw@h/v1", f"http://{MASK}@h/v1"),
        ("http://ann:p@w@h/v1", f"http://{MASK}@h/v1"),
        ("http://h/v1?api-key=pw&v=pw", f"http://h/v1?api-key={MASK}&v={MASK}"),
        ("http://h/v1?pw", f"http://h/v1?{MASK}"),
        ("http://h:8000/v1", "http://h:8000/v1"),
        ("bundled:minilm-l6", "bundled:minilm-l6"),
        ("Answer like http://ann:pw@h does.", "Answer like http://ann:pw@h does."),
        ("?", "?"),
    ],
)
def test_addresses_are_shown_without_what_opens_them(address: str, shown: str) -> None:
    """Names, passwords and the values of a query are masked; what is no address is shown as it is."""
    assert toml_value(address) == f'"{shown}"'


def test_addresses_of_backends_are_shown_without_what_opens_them() -> None:
    """That of a backend and those of its replicas."""
    flags = {
        "generation.backends": [
            {
                "name": "extractive",
                "kind": "openai",
                "model": "m",
                "base_url": "http://ann:pw-one@h/v1",
                "replicas": ["http://h/v1?key=pw-two"],
            }
        ],
    }
    shown = str(list(shown_settings(load_settings(None, {}, flags))))
    assert "pw-" not in shown
    assert shown.count(MASK) == 2
