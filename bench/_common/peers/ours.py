"""Headrace as its server runs it: tokenized, then single items on the scheduler's threads, waited for on the loop."""

from __future__ import annotations

from typing import Any

from bench._common.peers.arms import OURS, Arm, Task, versions, waiting
from encoders.types import AsyncDenseEncoder, TextKind, WorkClass
from rerank.types import AsyncReranker


def pairs_arm(reranker: AsyncReranker) -> Arm:
    """Scores with the scheduled cross-encoder."""

    async def score(task: Task) -> Any:
        return (await reranker.score(task.query, task.passages, None)).logits

    return Arm(OURS, "int8", versions("onnxruntime", "tokenizers"), waiting(score))


def texts_arm(encoder: AsyncDenseEncoder) -> Arm:
    """Embeds with the scheduled dense encoder."""

    async def encode(task: Task) -> Any:
        outcomes = await encoder.encode(task.passages, TextKind.PASSAGE, WorkClass.ONLINE, None)
        return [outcome.value for outcome in outcomes]

    return Arm(OURS, "int8", versions("onnxruntime", "tokenizers"), waiting(encode))
