"""A context made for one model, given to another with less room."""

from __future__ import annotations

from dataclasses import replace

from retrieval.assembly import assemble
from retrieval.assembly.fitting import fit_context
from retrieval.types import Dropped, DropReason, Hit, ScoreParts
from tests.fakes.counters import WordCounter
from tests.fakes.routing import passage


def test_merged_chunks_leave_together_and_are_listed_after_earlier_drops() -> None:
    """Chunks under one number go as one; what assembly had dropped stays listed before them."""
    first, second = passage(1, 30), passage(2, 30)
    after = replace(second, chunk_id="c3", text="w9", start=second.end, end=second.end + 2, ordinal=1)
    copy = replace(passage(1, 30), chunk_id="c4", document_id="d4")
    hits = [Hit(each, 0.9, ScoreParts()) for each in (first, second, after, copy)]
    context = assemble(hits, 1000, WordCounter(), 0.8, -1.0)
    assert context.dropped == (Dropped("c4", DropReason.DUPLICATE),)
    fitted = fit_context(context, 40, WordCounter())
    assert [citation.number for citation in fitted.citations] == [1]
    assert [entry.chunk_id for entry in fitted.dropped] == ["c4", "c2", "c3"]


def test_nothing_fits_into_no_room() -> None:
    """Without room the context is empty, and every chunk is listed."""
    context = assemble([Hit(passage(1), 0.9, ScoreParts())], 1000, WordCounter(), 0.8, -1.0)
    fitted = fit_context(context, 0, WordCounter())
    assert (fitted.text, fitted.token_count, fitted.citations) == ("", 0, ())
    assert fitted.dropped == (Dropped("c1", DropReason.BUDGET),)
