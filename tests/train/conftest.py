"""A tiny bi-encoder with torch weights, made on the spot, and one training run that the tests share."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from tests.fakes.tiny_models import tiny_tokenizer

_LIMIT = 64


@pytest.fixture(scope="session")
def tiny_start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes four random layers and their tokenizer as sentence-transformers does."""
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries warn of each other while they are imported
        from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, set_seed

    set_seed(1)
    folder = tmp_path_factory.mktemp("start")
    tokenizer = tiny_tokenizer()
    tokenizer.no_truncation()
    tokenizer.no_padding()
    shape = {"num_hidden_layers": 4, "hidden_size": 192, "num_attention_heads": 4, "intermediate_size": 384}
    # Wide weights: logits of small ones are all but equal, and int8 could not tell them apart.
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=_LIMIT, initializer_range=0.08, **shape
    )
    BertModel(config).save_pretrained(folder)
    specials = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=_LIMIT, **specials)
    fast.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    fast.save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": _LIMIT}), encoding="utf-8")
    return folder
