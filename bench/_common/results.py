"""The results file of a tool: its figures, and everything that somebody needs to get them again."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

from encoders.cpu import usable_cpus
from retrieval.settings import Settings
from retrieval.settings.load import leaves

Json: TypeAlias = "str | int | float | bool | Mapping[str, Json] | list[Json] | None"

_PACKAGES = ("grpcio", "numpy", "onnxruntime", "qdrant-client", "qdrant-edge-py", "tokenizers", "uvloop")


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where a tool writes: the JSON file, and the plot beside it; None writes nothing."""

    json_file: Path | None
    plot_file: Path | None

    @classmethod
    def of(cls, json_file: Path | None, plot_file: Path | None) -> Outputs:
        """Puts the plot beside the JSON file unless it is said where it goes."""
        beside = json_file.with_suffix(".png") if json_file else None
        return cls(json_file, plot_file or beside)


def write_results(path: Path, figures: Mapping[str, Json], settings: Settings | None) -> None:
    """Writes the figures, with the circumstances under the key `run`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {**figures, "run": circumstances(settings)}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def plain(figures: Any) -> Mapping[str, Json]:
    """Returns a dataclass of figures as JSON, numbers rounded to a ten-thousandth."""
    return {name: _rounded(value) for name, value in asdict(figures).items()}


def circumstances(settings: Settings | None) -> Mapping[str, Json]:
    """Returns commit, command, machine, versions, date, and the settings that differ from the defaults."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "command": command(),
        "machine": _machine(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "settings": {} if settings is None else _changed(settings),
    }


def command() -> str:
    """Returns the command line of this run, from the repository root; absolute paths are shortened to their names."""
    tool = Path(sys.argv[0]).stem
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    return shlex.join(["python", "-m", f"bench.{tool}", *words])


def _rounded(value: Any) -> Json:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {str(name): _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, (list, tuple)) else cast("Json", value)


def _commit() -> str:
    found = _git("rev-parse", "HEAD")
    if not found:
        return "unknown"
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return f"{found} with changes" if changed else found


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _machine() -> Mapping[str, Json]:
    return {
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "architecture": platform.machine(),
        "processor": _processor(),
        "usable_cpus": usable_cpus(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _changed(settings: Settings) -> Mapping[str, Json]:
    defaults = {path: value for path, value, _ in leaves(Settings())}
    return {path: _plain(value) for path, value, _ in leaves(settings) if value != defaults[path] and _shown(path)}


def _shown(path: str) -> bool:
    # Folders of this machine say nothing to others; secrets never leave the settings.
    return path not in ("data.folder", "auth.keys", "index.qdrant.api_key", "server.unix_socket")


def _plain(value: object) -> Json:
    if isinstance(value, (str, int, float, bool)):
        return Path(value).name if isinstance(value, str) and value.startswith("/") else value
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.model_dump_json() if isinstance(value, BaseModel) else str(value)
