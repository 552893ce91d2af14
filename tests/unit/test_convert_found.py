"""What was found as a message: the same whether it was built now or is remembered."""

from __future__ import annotations

from dataclasses import replace

from indexers.types import Epoch, Passage
from retrieval.clock import Ledger, Stage, StageCost
from retrieval.server.convert.answers import event_to_pb, retrieved_to_pb
from retrieval.server.convert.found import FoundMessages
from retrieval.types import Citation, Context, Dropped, DropReason, Hit, Retrieved, ScoreParts


def _retrieved(text: str, request_id: str = "r1") -> Retrieved:
    passage = Passage(
        chunk_id=f"c-{text}", document_id="d", title="Pumps", heading_path=("Use", "Start"), text=text, start=3, end=9,
        ordinal=1, page=2, source_uri="file:a", metadata={"size": 3, "kind": "pump", "tags": ("a", "b")}, token_count=4,
    )  # fmt: skip
    hits = (Hit(passage, 0.5, ScoreParts(dense=0.25, late=0.75)),)
    dropped = (Dropped("c-2", DropReason.DUPLICATE),)
    context = Context(f"[1] {text}", 7, 100, "words", (Citation(1, passage, (passage.chunk_id,)),), dropped)
    ledger = Ledger((StageCost(Stage.SEARCH, 10, 0, 0), StageCost(Stage.OTHER, 5, 0, 0)), 15)
    return Retrieved(request_id, hits, context, ledger, Epoch(1, 2))


def test_message_of_a_result_holds_all_of_it() -> None:
    """Scores that were not asked for are absent, metadata keeps its types."""
    message = retrieved_to_pb(_retrieved("starts"), FoundMessages())
    [hit] = message.hits
    assert (hit.chunk_id, hit.text, list(hit.heading_path), hit.score) == ("c-starts", "starts", ["Use", "Start"], 0.5)
    assert hit.scores.HasField("dense")
    assert not hit.scores.HasField("sparse")
    assert (hit.metadata["size"].integer_value, hit.metadata["kind"].string_value) == (3, "pump")
    assert [one.number for one in message.context.citations] == [1]
    assert len(message.context.dropped) == 1
    assert (message.epoch.generation, message.epoch.write_sequence, message.ledger.total_ns) == (1, 2, 15)


def test_message_of_a_known_result_is_that_of_its_own_request() -> None:
    """Request, epoch and ledger are those of now; the rest is what was found before."""
    found, first = FoundMessages(), _retrieved("starts")
    before = retrieved_to_pb(first, found)
    again = replace(first, request_id="r2", epoch=Epoch(3, 4), ledger=replace(first.ledger, total_ns=99))
    after = retrieved_to_pb(again, found)
    assert (after.request_id, after.epoch.generation, after.ledger.total_ns) == ("r2", 3, 99)
    assert after == retrieved_to_pb(again, FoundMessages())
    assert before == retrieved_to_pb(first, FoundMessages())


def test_results_that_are_other_objects_never_share_a_message() -> None:
    """Many results come and go, and each is written as it is: an identity is not taken for a later object's."""
    found = FoundMessages(capacity_bytes=20_000)
    for number in range(500):
        retrieved = _retrieved(f"text {number}")
        assert event_to_pb(retrieved, found).retrieved.hits[0].text == f"text {number}"
        fewer = replace(retrieved, hits=())  # the same context, other hits
        assert not event_to_pb(fewer, found).retrieved.hits


def test_message_that_is_changed_does_not_change_what_is_remembered() -> None:
    """What a caller does to its message is its own."""
    found, retrieved = FoundMessages(), _retrieved("starts")
    retrieved_to_pb(retrieved, found).hits[0].text = "spoilt"
    assert retrieved_to_pb(retrieved, found).hits[0].text == "starts"
