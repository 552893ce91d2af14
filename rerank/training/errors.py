"""What can go wrong while a cross-encoder is trained; a tree of its own, since no request ever meets it.

TrainingError
├── TrainingDataInvalid   a file cannot be learnt from
├── TrainingUnavailable   the extra `train` is not installed
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


class TrainingUnavailable(TrainingError):
    """The extra `train` is not installed."""

    def __init__(self, missing: str) -> None:
        super().__init__(f"training needs {missing}, which is not installed; install headrace[train]")
        self.missing = missing


class NotBetter(TrainingError):
    """The gate refused the model."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the model is not installed: {reason}; give it more data or time, or do without it")
        self.reason = reason
