"""Tiny tokenizers of three families: BERT's word pieces, ModernBERT's bytes, and XLM-RoBERTa's sentence pieces."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

POISON = "poison"  # a word whose embedding is not a number
WORDS = (POISON, "pump", "seal", "valve", "torque", "query", "passage", "the", "of", "soup", "cats")
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:;!?()-_/'\"[]äöüß"
_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def tiny_tokenizer(words: Sequence[str] = WORDS) -> Tokenizer:
    """Builds the tokenizer; it ships truncation and padding as the one of all-MiniLM-L6-v2 does."""
    pieces = [*_SPECIALS, *_CHARACTERS, *(f"##{character}" for character in _CHARACTERS), *words]
    vocabulary = {piece: position for position, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(_SPECIALS))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    return tokenizer


def byte_tokenizer() -> Tokenizer:
    """Builds a GPT-2 style tokenizer with special tokens behind the vocabulary, as ModernBERT has it."""
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [(word[:end], word[end]) for word in WORDS for end in range(1, len(word))]
    merges = list(dict.fromkeys([*merges, *(("Ġ", word) for word in WORDS)]))
    pieces += ["".join(pair) for pair in merges]
    tokenizer = Tokenizer(models.BPE(vocab={piece: place for place, piece in enumerate(pieces)}, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in _SPECIALS])
    _frame(tokenizer, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ("[CLS]", "[SEP]"))
    return tokenizer


def piece_tokenizer() -> Tokenizer:
    """Builds a SentencePiece-like tokenizer that puts two closing tokens between the parts of a pair."""
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [(token, 0.0) for token in specials] + [
        (piece, -5.0) for piece in ("▁", *_CHARACTERS, *(f"▁{word}" for word in WORDS))
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=specials.index("<unk>")))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(specials)
    _frame(tokenizer, "<s> $A </s>", "<s> $A </s> </s> $B </s>", ("<s>", "</s>"))
    return tokenizer


def _frame(tokenizer: Tokenizer, single: str, pair: str, specials: Sequence[str]) -> None:
    named = [(token, tokenizer.token_to_id(token)) for token in specials]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=named)
