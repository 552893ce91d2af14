"""Term statistics as an uncompressed .npz file; which kind they are of shows in the names of its arrays."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from encoders.bm25 import Bm25Statistics
from encoders.learned import LearnedStatistics
from encoders.term_statistics import TermStatistics


def save_statistics(statistics: TermStatistics, target: Path | BinaryIO) -> None:
    """Writes statistics."""
    if isinstance(target, Path):
        with target.open("wb") as file:
            save_statistics(statistics, file)
    else:
        np.savez(target, **dict(statistics.arrays()))  # type: ignore[arg-type]  # any name may be a boolean


def load_statistics(source: Path | BinaryIO) -> TermStatistics:
    """Reads what `save_statistics` wrote."""
    with np.load(source, allow_pickle=False) as stored:
        count = int(stored["document_count"])
        if "highest" in stored:
            return LearnedStatistics(count, stored["terms"], stored["highest"])
        average = float(stored["average_length"])
        return Bm25Statistics(count, average, stored["terms"], stored["document_frequencies"])
