"""How texts and pairs become ids, and how tokens are counted and placed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.sources import ModelSource, locate
from encoders.tokenizing import Tokenization
from tests.fakes.tiny_tokenizers import tiny_tokenizer

BUNDLED = locate(ModelSource("bundled:minilm-l6")) / "tokenizer.json"


@pytest.fixture(scope="module")
def bundled() -> Tokenization:
    """Opens the bundled tokenizer with its own limit."""
    return Tokenization.open(BUNDLED, "bundled", 256)


@pytest.fixture
def tiny() -> Tokenization:
    """Opens the tiny tokenizer with a limit of 20 tokens."""
    return Tokenization(tiny_tokenizer(), "tiny", 20)


@pytest.mark.parametrize("text", ["Hello, pumps!", "", "valve " * 3000, "naïve 東京 🙂", "[SEPARATE] x"])
def test_texts_give_what_the_tokenizer_itself_gives(bundled: Tokenization, text: str) -> None:
    """Framing and cutting on our side agrees with the library's own."""
    reference = Tokenizer.from_file(str(BUNDLED))
    reference.no_padding()
    reference.enable_truncation(256)
    (found,) = bundled.texts([text])
    assert found.ids.tolist() == reference.encode(text).ids
    assert found.type_ids.tolist() == [0] * len(found.ids)


def test_pairs_give_what_the_tokenizer_itself_gives(bundled: Tokenization) -> None:
    """A pair that fits has the library's ids and type ids."""
    reference = Tokenizer.from_file(str(BUNDLED))
    reference.no_padding()
    reference.no_truncation()
    (found,) = bundled.pairs("which valve?", ["Valve 7 is tightened."])
    expected = reference.encode("which valve?", "Valve 7 is tightened.")
    assert (found.ids.tolist(), found.type_ids.tolist()) == (expected.ids, expected.type_ids)
    assert not found.truncated


def test_texts_are_cut_at_the_limit_and_say_so(bundled: Tokenization) -> None:
    """EMB-07, EMB-20: alone or in a list, a cut text has exactly the limit, and its full count is known."""
    alone = bundled.texts(["w " * 600 + "alpha"])[0]
    listed = bundled.texts(["w " * 600 + "alpha", "w " * 600 + "omega", "short"])
    assert alone.ids.tolist() == listed[0].ids.tolist()
    assert [found.token_count for found in listed[:2]] == [256, 256]
    assert [found.full_token_count for found in listed[:2]] == [603, 603]
    assert [found.truncated for found in listed] == [True, True, False]
    assert alone.ids[0] == listed[2].ids[0]
    assert alone.ids[-1] == listed[2].ids[-1]


def test_prompt_comes_before_the_text_and_survives_the_cut(tiny: Tokenization) -> None:
    """A prompt is part of what the model sees, however long the text is."""
    (found,) = tiny.texts(["pump " * 100], "query: ")
    assert found.token_count == 20
    assert found.ids[1:3].tolist() == tiny.texts(["query:"])[0].ids[1:3].tolist()


def test_long_query_leaves_half_of_a_pair_to_the_passage(tiny: Tokenization) -> None:
    """A query never pushes the passage out; a short passage is kept whole."""
    long_query, passage = "pump " * 50, "seal " * 50
    (found,) = tiny.pairs(long_query, [passage])
    assert tiny.pair_query_limit == 8
    assert found.token_count == 20
    assert found.type_ids.tolist() == [0] * 10 + [1] * 10
    assert found.full_token_count == 103
    (short,) = tiny.pairs("pump", [passage])
    assert short.type_ids.tolist() == [0] * 3 + [1] * 17


@pytest.mark.parametrize(
    "variant", ["pump\u200bseal", "\ufeffpump seal", "pump\u00a0seal", "pump\x00seal", "pump\ud800seal"]
)
def test_invisible_characters_separate_words(bundled: Tokenization, variant: str) -> None:
    """TOK-07: characters that are not seen neither glue words together nor fail."""
    assert bundled.texts([variant])[0].ids.tolist() == bundled.texts(["pump seal"])[0].ids.tolist()


@pytest.mark.parametrize("text", ["pump\u200bseal", "\ufeffpump  seal", "🙂 pump\u00a0seal"])
def test_offsets_point_into_the_text_as_it_was_given(bundled: Tokenization, text: str) -> None:
    """Offsets count the code points of the original, invisible ones included."""
    spans = [text[start:end] for start, end in bundled.offsets(text)]
    assert spans[-2:] == ["pump", "seal"]


def test_special_tokens_in_a_text_are_text(bundled: Tokenization) -> None:
    """A passage cannot end its own part of a pair by spelling a separator."""
    separator = bundled.texts([""])[0].ids[-1]
    (found,) = bundled.texts(["pump [SEP] seal"])
    assert found.ids.tolist().count(int(separator)) == 1


def test_long_text_is_counted_in_segments_as_in_one(bundled: Tokenization) -> None:
    """A text of a megabyte has the same tokens at the same places as its parts."""
    sentence = "The pump's seal (no. 7) is tightened to 40 newton metres. "
    text = sentence * 18_000
    per_sentence = bundled.count(sentence)
    assert bundled.count(text) == per_sentence * 18_000
    spans = bundled.offsets(text)
    assert len(spans) == per_sentence * 18_000
    assert [text[start:end] for start, end in spans[-3:]] == ["newton", "metres", "."]
    assert bundled.texts([text])[0].full_token_count == per_sentence * 18_000 + 2


def test_long_text_without_spaces_is_counted(bundled: Tokenization) -> None:
    """A run without white space is cut where it is, and counting ends."""
    assert bundled.count("。" * 200_000) == 200_000


def test_counts_from_many_threads_equal_those_of_one(bundled: Tokenization) -> None:
    """TOK-01: limits of different callers do not leak into each other's results."""
    embed = Tokenization.open(BUNDLED, "embed", 512)
    texts = [f"pump {number} " + "valve seal " * (number * 7 % 300) for number in range(60)]

    def work(number: int) -> tuple[int, int, int]:
        text = texts[number % len(texts)]
        return (
            embed.texts([text])[0].token_count,
            bundled.pairs("which pump?", [text])[0].token_count,
            bundled.count(text),
        )

    expected = [work(number) for number in range(len(texts))]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(len(texts) * 8)))
    assert found == expected * 8


def test_missing_tokenizer_is_named(tmp_path: Path) -> None:
    """A folder without tokenizer.json is a model that was not found."""
    with pytest.raises(ModelNotFound, match=r"tokenizer\.json"):
        Tokenization.open(tmp_path / "tokenizer.json", "m", 64)


def test_broken_tokenizer_is_refused(tmp_path: Path) -> None:
    """A file that is no tokenizer is refused with one sentence."""
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": 3}', encoding="utf-8")
    with pytest.raises(ModelUnsupported, match="no tokenizer file"):
        Tokenization.open(path, "m", 64)


def test_limit_without_room_for_text_is_refused() -> None:
    """A limit that the special tokens fill is refused when the model is opened, not at the first text."""
    with pytest.raises(ModelUnsupported, match="no room"):
        Tokenization(tiny_tokenizer(), "tiny", 4)
