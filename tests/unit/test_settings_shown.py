"""What people see of settings."""

from __future__ import annotations

from pathlib import Path

from retrieval.settings.load import load_settings
from retrieval.settings.shown import MASK, shown_settings

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
