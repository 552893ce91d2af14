"""The threads of the scheduler: each holds a post, and whoever ends without a stop is replaced.

When the system gives no thread for a post, the whole is not healthy until it does: watchers are told, and `heal` tries
again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from encoders.types import WorkClass


@dataclass(frozen=True, slots=True)
class Post:
    """A place for a thread."""

    work_class: WorkClass
    number: int
    gives_way: bool  # rests while online work is seen


class Workers:
    """Keeps every post filled. `work` is what a thread does; it returns when the thread is to end."""

    def __init__(self, work: Callable[[Post], None]) -> None:
        self._work = work
        self._changing = threading.Lock()
        self._threads: dict[Post, threading.Thread] = {}
        self._empty: set[Post] = set()
        self._watchers: list[Callable[[bool], None]] = []
        self._stopped = False

    @property
    def healthy(self) -> bool:
        """Whether every post has its thread."""
        return not self._empty

    @property
    def alive_count(self) -> int:
        """Threads that live."""
        return sum(thread.is_alive() for thread in tuple(self._threads.values()))

    def watch(self, changed: Callable[[bool], None]) -> None:
        """Calls `changed` with `healthy` each time it has changed, from whatever thread finds out."""
        self._watchers.append(changed)

    def fill(self, post: Post) -> None:
        """Starts a thread for a post, unless a stop was asked for."""
        name = f"encoder-{post.work_class.name.lower()}"
        thread = threading.Thread(target=self._hold, args=(post,), name=name, daemon=True)
        with self._changing:
            if self._stopped:
                return
            was_healthy = self.healthy
            try:
                thread.start()
            except RuntimeError:
                # Whoever held the post is about to end, if it has not.
                self._threads.pop(post, None)
                self._empty.add(post)
            else:
                self._empty.discard(post)
                self._threads[post] = thread
            changed = self.healthy != was_healthy
        if changed:
            for tell in self._watchers:
                tell(self.healthy)

    def heal(self) -> None:
        """Tries again to fill the posts that the system gave no thread for."""
        for post in tuple(self._empty):
            self.fill(post)

    def stop(self) -> None:
        """Fills no post from now on."""
        with self._changing:
            self._stopped = True

    def join(self, until: float) -> None:
        """Waits for all threads to end, at most until that moment of `time.monotonic`."""
        for thread in tuple(self._threads.values()):
            thread.join(max(0.0, until - time.monotonic()))

    def _hold(self, post: Post) -> None:
        try:
            self._work(post)
        finally:
            # Without a stop only when the work raised what is no `Exception`: another thread takes over.
            self.fill(post)
