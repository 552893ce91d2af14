"""Opens all arms of a kind; one that cannot take part is named with its reason, and the others run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bench._common.peers import fast, padded, sentence, sentence_onnx
from bench._common.peers.apart import open_apart
from bench._common.peers.arms import Arm, ArmMissing
from bench._common.peers.folders import PeerFolder


@dataclass(frozen=True, slots=True)
class Opened:
    """The arms that run, ours last, and why others do not, by name."""

    arms: Sequence[Arm]
    missing: dict[str, str]


@asynccontextmanager
async def open_pair_arms(folder: PeerFolder, python: str, ours: Arm) -> AsyncIterator[Opened]:
    """Opens everything that scores pairs; `python` runs the ONNX back end of sentence-transformers."""
    openers = (
        open_apart(sentence.open_pairs, folder),
        open_apart(fast.open_pairs, folder),
        open_apart(padded.open_pairs, folder),
        sentence_onnx.open_arm(python, "pairs", folder),
    )
    async with _opened(openers, ours) as opened:
        yield opened


@asynccontextmanager
async def open_text_arms(folder: PeerFolder, dim: int, python: str, ours: Arm) -> AsyncIterator[Opened]:
    """Opens everything that embeds texts."""
    openers = (
        open_apart(sentence.open_texts, folder),
        open_apart(fast.open_texts, folder, dim),
        open_apart(padded.open_texts, folder),
        sentence_onnx.open_arm(python, "texts", folder),
    )
    async with _opened(openers, ours) as opened:
        yield opened


@asynccontextmanager
async def _opened(openers: Sequence[AbstractAsyncContextManager[Arm]], ours: Arm) -> AsyncIterator[Opened]:
    arms: list[Arm] = []
    missing: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        for opener in openers:
            try:
                arms.append(await stack.enter_async_context(opener))
            except ArmMissing as absent:
                missing[absent.name] = absent.reason
        yield Opened([*arms, ours], missing)
