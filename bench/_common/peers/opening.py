"""Opens all arms of a kind; one that cannot take part is named with its reason, and the others run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bench._common.peers import fast, padded, sentence, sentence_onnx
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
        lambda: sentence.open_pairs(folder),
        lambda: fast.open_pairs(folder),
        lambda: padded.open_pairs(folder),
    )
    async with _opened(openers, (python, "pairs", folder), ours) as opened:
        yield opened


@asynccontextmanager
async def open_text_arms(folder: PeerFolder, dim: int, python: str, ours: Arm) -> AsyncIterator[Opened]:
    """Opens everything that embeds texts."""
    openers = (
        lambda: sentence.open_texts(folder),
        lambda: fast.open_texts(folder, dim),
        lambda: padded.open_texts(folder),
    )
    async with _opened(openers, (python, "texts", folder), ours) as opened:
        yield opened


@asynccontextmanager
async def _opened(
    openers: Sequence[Callable[[], Arm]], child: tuple[str, str, PeerFolder], ours: Arm
) -> AsyncIterator[Opened]:
    arms: list[Arm] = []
    missing: dict[str, str] = {}
    for opener in openers:
        try:
            arms.append(opener())
        except ArmMissing as absent:
            missing[absent.name] = absent.reason
    async with AsyncExitStack() as stack:
        try:
            arms.append(await stack.enter_async_context(sentence_onnx.open_arm(*child)))
        except ArmMissing as absent:
            missing[absent.name] = absent.reason
        yield Opened([*arms, ours], missing)
