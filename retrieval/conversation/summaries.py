"""Keeps what earlier turns were about, for turns to come that have no room for them.

A summary is made beside requests, of the summary before and the turns dropped since, and kept in this process only:
after a restart, and on another replica, turns are dropped without one until it is made again. It belongs to one tenant,
data policy and collection, and to the very turns that it stands for: any other beginning of a conversation, by a single
character, does not find it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrieval.caching.digests import digest_of
from retrieval.caching.memory import MemoryFigures
from retrieval.caching.s3fifo import S3Fifo
from retrieval.conversation.checking import usable_summary
from retrieval.conversation.side_model import SideModel
from retrieval.conversation.transcript import transcript
from retrieval.errors import BackendError, DeadlineExceeded, Overloaded
from retrieval.settings.generation import ConversationSettings
from retrieval.speech import Turn

SUMMARISING = (
    "Sum up the conversation for somebody who goes on with it. Keep names, numbers, decisions and open questions; "
    "leave out greetings. If there is a summary so far, merge it with the new turns. Write plain sentences, without a "
    "list and without an introduction."
)
"""Never depends on a request, so that a model server keeps it cached."""

DEFAULT_CAPACITY_BYTES = 8 << 20

_MOST_TASKS = 2
_TIMEOUT_NS = 60 * 1_000_000_000
_LONGEST_TURN = 2000  # code points
_LONGEST_TEXT = 24_000  # code points of new turns; the newest are read
_DIGEST_BYTES = 32
_CHAR_BYTES = 4  # of a text in memory at most


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose conversation it is: summaries are never found by anybody else."""

    tenant: str  # from the credential
    data_policy: str  # from the credential
    collection: str


@dataclass(frozen=True, slots=True)
class _Key:
    owner: Owner
    digest: bytes  # of the owner and the turns


class Summaries:
    """The summaries of conversations' beginnings, bounded in bytes. Belongs to one event loop."""

    def __init__(self, capacity_bytes: int = DEFAULT_CAPACITY_BYTES) -> None:
        self.made = self.failed = 0  # since the start; failed: no backend, no time, or nothing that could be used
        self._kept: S3Fifo[_Key, str] = S3Fifo("summaries", capacity_bytes, lambda text: _CHAR_BYTES * len(text))
        self._under_way: dict[_Key, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def figures(self) -> MemoryFigures:
        """How the cache fares."""
        return self._kept.figures

    def find(self, owner: Owner, turns: Sequence[Turn]) -> tuple[int, str] | None:
        """Returns the longest beginning of these turns that was summed up: how many turns, and the summary."""
        for count, key in reversed(list(_keys(owner, turns))):
            if key in self._kept and (summary := self._kept.get(key)):
                return count, summary
        return None

    def start(
        self, owner: Owner, turns: Sequence[Turn], count: int, model: SideModel, settings: ConversationSettings
    ) -> bool:
        """Starts summing up the first `count` turns; False when that is done, under way, or too much at once.

        Never call it for a request that nothing may be kept of.
        """
        if self._closed or len(self._under_way) >= _MOST_TASKS or not 0 < count <= len(turns):
            return False
        *_, (_, key) = _keys(owner, turns[:count])
        if key in self._kept or key in self._under_way:
            return False
        known = self.find(owner, turns[:count])
        text = _to_sum_up(known, turns[:count])
        task = asyncio.get_running_loop().create_task(self._sum_up(key, text, model, settings.summary_tokens))
        self._under_way[key] = task
        task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return True

    def forget(self, tenant: str, collection: str = "") -> int:
        """Forgets a tenant's summaries, of one collection only if it is named, and returns how many there were.

        What is under way for them is given up.
        """
        for key, task in list(self._under_way.items()):
            if _is_of(key, tenant, collection):
                task.cancel()
        return self._kept.invalidate_where(lambda key, _: _is_of(key, tenant, collection))

    async def settle(self) -> None:
        """Waits until nothing is under way."""
        while tasks := list(self._under_way.values()):
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Gives up what is under way; nothing can be started afterwards."""
        self._closed = True
        for task in self._under_way.values():
            task.cancel()
        await self.settle()

    async def _sum_up(self, key: _Key, text: str, model: SideModel, summary_tokens: int) -> None:
        until_ns = time.monotonic_ns() + _TIMEOUT_NS
        try:
            async with asyncio.timeout(_TIMEOUT_NS / 1e9):
                written, _ = await model.write(SUMMARISING, text, summary_tokens, until_ns)
        except (BackendError, Overloaded, DeadlineExceeded, TimeoutError):
            self.failed += 1
            return
        summary = usable_summary(written, summary_tokens)
        if not summary:
            self.failed += 1
            return
        self.made += 1
        self._kept.put(key, summary)


def _keys(owner: Owner, turns: Sequence[Turn]) -> Iterator[tuple[int, _Key]]:
    """Gives the key of each beginning of the turns, shortest first; reads each turn once."""
    digest = digest_of((owner.tenant, owner.data_policy, owner.collection), _DIGEST_BYTES)
    for count, turn in enumerate(turns, 1):
        digest = digest_of((digest.hex(), turn.speaker.value, turn.text), _DIGEST_BYTES)
        yield count, _Key(owner, digest)


def _to_sum_up(known: tuple[int, str] | None, turns: Sequence[Turn]) -> str:
    count, summary = known or (0, "")
    said = transcript(turns[count:], _LONGEST_TURN)
    if len(said) > _LONGEST_TEXT:
        said = said[-_LONGEST_TEXT:].partition("\n")[2]
    return f"Summary so far: {summary}\n{said}" if summary else said


def _is_of(key: _Key, tenant: str, collection: str) -> bool:
    return key.owner.tenant == tenant and collection in ("", key.owner.collection)
