"""Trains by sentence-transformers' own trainer: it has the progress bar, the checkpoints and the GPU.

Two stages, each in a folder of its own: distillation teaches the shallow model to read a pair at all, from scores that
cost no labels; the residual stage then teaches it what the first stage gets wrong. A stage that was interrupted goes on
from its last checkpoint, one that was finished is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from transformers.trainer_utils import get_last_checkpoint, set_seed
from transformers.utils import logging as library_logging

from rerank.training.lists import TrainingList
from rerank.training.losses import ResidualLoss, distillation_loss
from rerank.training.recipe import Recipe
from rerank.training.teaching import TaughtPair


def start_model(recipe: Recipe) -> CrossEncoder:
    """Opens the first layers of a bi-encoder with a new head of one logit, the same one in every run."""
    set_seed(recipe.seed)
    return _open(recipe.start, recipe, {"num_hidden_layers": recipe.depth})


def distil(model: CrossEncoder, pairs: Sequence[TaughtPair], recipe: Recipe, folder: Path) -> CrossEncoder:
    """Returns the model after it learnt the teacher's logits."""
    data = Dataset.from_dict(
        {
            "query": [pair.query for pair in pairs],
            "passage": [pair.passage for pair in pairs],
            "label": [pair.logit for pair in pairs],
        }
    )
    # As many pairs a step as a step of lists has.
    return _stage(model, (data, distillation_loss(model), recipe.lists_per_step * 8), recipe, folder)


def fit_residual(
    model: CrossEncoder, lists: Sequence[TrainingList], scale: float, recipe: Recipe, folder: Path
) -> CrossEncoder:
    """Returns the model after it learnt to correct the first stage; `scale` makes its score a logit."""
    data = Dataset.from_dict(
        {
            "query": [one.query for one in lists],
            "passages": [list(one.passages) for one in lists],
            "base": [one.base.tolist() for one in lists],
            "labels": [one.labels.tolist() for one in lists],
        }
    )
    loss = ResidualLoss(model, recipe.loss, scale, recipe.cross_weight)
    return _stage(model, (data, loss, recipe.lists_per_step), recipe, folder)


def finished(folder: Path) -> bool:
    """Whether the stage of this folder was trained to its end."""
    return (folder / "model" / "config.json").is_file()


def _stage(model: CrossEncoder, work: tuple[Dataset, Any, int], recipe: Recipe, folder: Path) -> CrossEncoder:
    if finished(folder):
        return _open(folder / "model", recipe, {})
    data, loss, rows_per_step = work
    checkpoints = folder / "checkpoints"
    arguments = CrossEncoderTrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=rows_per_step,
        learning_rate=recipe.learning_rate,
        warmup_steps=recipe.warmup_share,
        save_steps=recipe.checkpoint_steps,
        save_total_limit=1,
        logging_steps=10,
        seed=recipe.seed,
        report_to="none",
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    trainer = CrossEncoderTrainer(model=model, args=arguments, train_dataset=data, loss=loss)
    last = get_last_checkpoint(str(checkpoints)) if checkpoints.is_dir() else None
    trainer.train(resume_from_checkpoint=last)
    part = folder / "model.part"
    trainer.model.save_pretrained(str(part), create_model_card=False)
    part.rename(folder / "model")
    return trainer.model


def _open(path: Path, recipe: Recipe, config: dict[str, int]) -> CrossEncoder:
    # The library warns of layers that are left out and of a head that is new: both are meant here.
    before = library_logging.get_verbosity()
    library_logging.set_verbosity_error()
    try:
        return CrossEncoder(
            str(path), num_labels=1, max_length=recipe.max_tokens, local_files_only=True, config_kwargs=config
        )
    finally:
        library_logging.set_verbosity(before)
