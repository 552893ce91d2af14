"""How many cores count."""

from __future__ import annotations

from pathlib import Path

import pytest

from encoders.cpu import cgroup_quota, usable_cpus


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")
    return path


@pytest.mark.parametrize(
    ("content", "quota"),
    [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None), ("nonsense", None), ("100000 0\n", None)],
)
def test_quota_of_version_2(tmp_path: Path, content: str, quota: float | None) -> None:
    """`cpu.max` holds quota and period, or `max`."""
    _write(tmp_path / "cpu.max", content)
    assert cgroup_quota(tmp_path, tmp_path / "none") == quota


@pytest.mark.parametrize(("content", "quota"), [("50000\n", 0.5), ("-1\n", None)])
def test_quota_of_version_1(tmp_path: Path, content: str, quota: float | None) -> None:
    """Two files hold them, and -1 means that there is none."""
    _write(tmp_path / "cpu" / "cpu.cfs_quota_us", content)
    _write(tmp_path / "cpu" / "cpu.cfs_period_us", "100000\n")
    assert cgroup_quota(tmp_path, tmp_path / "none") == quota


def test_quota_is_the_smallest_of_the_group_and_those_above(tmp_path: Path) -> None:
    """A process in a nested group is bound by each group on the way up."""
    membership = _write(tmp_path / "self", "4:memory:/other\n0::/system/app\n")
    root = tmp_path / "root"
    _write(root / "system" / "app" / "cpu.max", "400000 100000")
    _write(root / "system" / "cpu.max", "300000 100000")
    _write(root / "other" / "cpu.max", "100000 100000")
    assert cgroup_quota(root, membership) == 3.0


def test_usable_cpus_round_a_quota_up(tmp_path: Path) -> None:
    """Half a core is one worker; there is always one."""
    _write(tmp_path / "cpu.max", "50000 100000")
    assert usable_cpus(tmp_path, tmp_path / "none") == 1


def test_usable_cpus_without_a_quota_follow_the_affinity_mask(tmp_path: Path) -> None:
    """Without control groups the mask alone counts."""
    assert usable_cpus(tmp_path, tmp_path / "none") >= 1
