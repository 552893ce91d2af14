"""Running `headrace models` in a process of its own against a hub on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.hub_server import HubServer

ROOT = Path(__file__).parents[2]


@dataclass
class Hub:
    """A hub that is up, and a folder for the client's cache and for models."""

    server: HubServer
    folder: Path

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Runs `headrace models` against this hub."""
        shared = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HEADRACE_"))}
        own = {"HF_ENDPOINT": self.server.url, "HF_HOME": str(self.folder / "cache")}
        return subprocess.run(
            [sys.executable, "-m", "retrieval.cli.main", "models", *arguments, "--folder", str(self.folder / "models")],
            env={**shared, **own, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'proto'}", **environ},
            capture_output=True,
            text=True,
            timeout=240,
            cwd=self.folder,
            check=False,
        )

    @property
    def pulled(self) -> list[str]:
        """Lists what lies in the models folder, hidden files included."""
        models = self.folder / "models"
        return sorted(path.relative_to(models).as_posix() for path in models.rglob("*") if path.is_file())


def sentence(ended: subprocess.CompletedProcess[str]) -> str:
    """Returns the one sentence in which a failed command ended."""
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr.strip().splitlines()[-1]
