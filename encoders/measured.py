"""What was measured on this machine, kept in one JSON file, so that a warm start reads instead of measuring.

A figure belongs to a model's revision, to the processor with its features, and to the version of ONNX Runtime; with any
of them changed it is measured anew. The file is a cache: one that is missing, damaged or cannot be written costs time,
never a start.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from encoders.onnx import RUNTIME_VERSION

_FORMAT = 1
_KEPT = 256  # entries; the oldest go first
_FEATURES = ("model name", "flags", "Features", "CPU implementer", "CPU part")


class Measurements:
    """A mapping from (what, revision) to plain figures; without a file it remembers until the process ends."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._own: dict[str, Any] = {}

    def get(self, what: str, revision: str) -> Any:
        """Returns what was put for this machine; None when nothing was."""
        with self._lock:
            return self._all().get(_key(what, revision))

    def put(self, what: str, revision: str, figures: Mapping[str, Any]) -> None:
        """Remembers figures of this machine, for the next start as well if the file can be written."""
        with self._lock:
            entries = self._all()
            entries.pop(_key(what, revision), None)
            entries[_key(what, revision)] = dict(figures)
            self._own = dict(list(entries.items())[-_KEPT:])
            if self._file is not None:
                with suppress(OSError):
                    _replace(self._file, json.dumps({"format": _FORMAT, "entries": self._own}, indent=1))

    def _all(self) -> dict[str, Any]:
        # Read each time: another process may share the file, and there are a handful of reads in a start.
        if self._file is None:
            return dict(self._own)
        try:
            stored = json.loads(self._file.read_text(encoding="utf-8"))
            known = stored["entries"] if stored["format"] == _FORMAT else {}
            return dict(known) | self._own
        except (OSError, ValueError, KeyError, TypeError):
            return dict(self._own)


@lru_cache(maxsize=1)
def machine() -> str:
    """Returns 16 hexadecimal digits for the processor, its features, and the version of ONNX Runtime."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    features = sorted({line for line in lines if line.partition(":")[0].strip() in _FEATURES})
    named = "\n".join([platform.machine(), platform.processor(), RUNTIME_VERSION, *features])
    return blake2b(named.encode(), digest_size=8).hexdigest()


def _key(what: str, revision: str) -> str:
    return f"{what}/{revision}/{machine()}"


def _replace(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_name(f"{file.name}.{os.getpid()}.new")
    written.write_text(content, encoding="utf-8")
    written.replace(file)
