"""What can go wrong while a cross-encoder is trained; a tree of its own, since no request ever meets it.

TrainingError
├── TrainingDataInvalid   a file cannot be learnt from
├── RunDiffers            the work folder holds a run of another plan or of other settings
└── NotBetter             the gate refused the model; what is installed stays
"""

from __future__ import annotations

from pathlib import Path


class TrainingError(Exception):
    """Anything that training raises on purpose."""


class TrainingDataInvalid(TrainingError):
    """A file cannot be learnt from."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}; correct the file or leave it out")
        self.path = path
        self.reason = reason


class RunDiffers(TrainingError):
    """The work folder holds a run of another plan or of other settings; what two runs make must not be mixed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} holds a run of another plan, or of other settings; name another folder, or empty this one"
        )
        self.folder = folder


class NotBetter(TrainingError):
    """The gate refused the model."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the model is not installed: {reason}; give it more data or time, or do without it")
        self.reason = reason
