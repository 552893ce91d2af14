"""What a serving process asks of the interpreter: rare, short pauses.

Each request makes a few thousand objects and lets go of them by reference counting, yet the collector looks at them
again and again, and now and then at everything that was ever loaded. What is there once the server is warm stays, so it
is moved out of the collector's sight, and the rest is looked at less often. Threads hand the interpreter lock over
after half a millisecond, so that an indexing thread in Python code does not hold up a search ten times as long.
"""

from __future__ import annotations

import gc
import sys

_YOUNG_OBJECTS = 20_000
_SWITCH_S = 0.0005


def settle() -> None:
    """Tunes the interpreter of a process that is warm and serves from now on."""
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 100)
