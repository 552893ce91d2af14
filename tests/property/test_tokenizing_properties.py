"""What holds for the tokens of every text."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from encoders.sources import ModelSource, locate
from encoders.tokenizing import Tokenization
from tests.fakes.tiny_tokenizers import tiny_tokenizer

_TINY = Tokenization(tiny_tokenizer(), "tiny", 16)
_BUNDLED = Tokenization.open(locate(ModelSource("bundled:minilm-l6")) / "tokenizer.json", "bundled", 24)
_COUNTERS = st.sampled_from([_TINY, _BUNDLED])
_TEXTS = st.text(max_size=200)


@given(_COUNTERS, _TEXTS)
def test_offsets_are_ordered_spans_inside_the_text(counter: Tokenization, text: str) -> None:
    """Every token has a span; spans lie inside the text and never go back."""
    spans = counter.offsets(text)
    assert len(spans) == counter.count(text)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(first[0] <= second[0] for first, second in itertools.pairwise(spans))


@given(_COUNTERS, _TEXTS)
def test_text_has_its_own_tokens_and_the_frame_and_never_more_than_the_limit(counter: Tokenization, text: str) -> None:
    """The full count is the text's plus the special tokens; what the model sees is cut at the limit."""
    (found,) = counter.texts([text])
    assert found.full_token_count == counter.count(text) + 2
    assert found.token_count == min(found.full_token_count, counter.max_tokens)
    assert len(found.type_ids) == len(found.ids)


@given(_COUNTERS, _TEXTS, st.lists(_TEXTS, max_size=4))
def test_pair_is_the_same_alone_and_in_a_list(counter: Tokenization, query: str, passages: list[str]) -> None:
    """A pair's ids do not depend on the other passages, and never exceed the limit."""
    together = counter.pairs(query, passages)
    alone = [counter.pairs(query, [passage])[0] for passage in passages]
    assert [found.ids.tolist() for found in together] == [found.ids.tolist() for found in alone]
    assert all(
        found.token_count == min(found.full_token_count, counter.max_tokens) or found.truncated for found in alone
    )
