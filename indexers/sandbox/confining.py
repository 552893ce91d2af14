"""Takes from this process what parsing does not need. Each step is for good.

What it is: the kernel refuses memory beyond the limit, core dumps and writes to files (resource limits, Linux and, but
for memory, macOS); on Linux there is no network but an own, empty one where the kernel lets us have it (a network
namespace), and no writes, execs and TCP where it has Landlock. An audit hook refuses the same to Python code
everywhere.

What it is not: a wall against someone who runs code of his own in the process. Such code can read whatever the user
can, the audit hook means nothing to it, and without namespaces and Landlock it has the network. It is a bound on what
broken and hostile *files* cost. Run workers as a user that has nothing to read but the sources, or in a container,
where that is not enough.

The number of processes is not limited: that limit counts all of the user's, and libraries that start threads would
break. Starting programs is refused instead.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys

from indexers.sandbox.landlock import forbid_changes
from indexers.sandbox.memory import AddressSpace

_OPEN_FILES = 64
_CAPABILITIES_VERSION, _READ_ANYTHING = 0x20080522, 1 << 2  # _LINUX_CAPABILITY_VERSION_3, CAP_DAC_READ_SEARCH
_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000  # CLONE_NEWNET, CLONE_NEWUSER
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_REFUSED = frozenset(
    {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen", "pty.spawn"}
    | {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"}
    | {"os.kill", "os.killpg", "os.utime", "os.setxattr", "os.removexattr", "shutil.rmtree", "webbrowser.open"}
)


def confine(max_memory_bytes: int) -> AddressSpace:
    """Confines this process; call it once, while it has one thread. Returns the bound that its memory got."""
    leave_network()
    forbid_changes()
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
    space = AddressSpace(max_memory_bytes)
    drop_privileges()
    sys.addaudithook(_refuse)
    return space


def leave_network() -> bool:
    """Moves this process into a network of its own that leads nowhere; False where that is not allowed."""
    if sys.platform != "linux":
        return False
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    # A user namespace as well only without the right to do without: in one, root could no longer read others' files.
    return any(unshare(namespaces) == 0 for namespaces in (_NEW_NETWORK, _NEW_USER | _NEW_NETWORK))


def drop_privileges() -> None:
    """Gives up what the superuser may do, but for reading files of others; changes nothing for other users."""
    if sys.platform != "linux":
        return
    system = ctypes.CDLL(None, use_errno=True)
    words = (ctypes.c_uint32 * 6)()
    header = struct.pack("=Ii", _CAPABILITIES_VERSION, 0)
    if system.capget(header, words) == 0:
        # Effective, permitted and inheritable; first the lower 32 capabilities, then the others.
        kept = [words[0] & _READ_ANYTHING, words[1] & _READ_ANYTHING, 0, 0, 0, 0]
        system.capset(header, (ctypes.c_uint32 * 6)(*kept))


def _limit(what: int, most: int) -> None:
    """Lowers a limit, never raising one that is lower already."""
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    """Refuses Python code what a parser has no business with; PermissionError is an OSError, which parsers expect."""
    if event in _REFUSED or event.startswith("socket."):
        raise PermissionError(1, f"a parser may not do this: {event}")
    if event == "open" and _writes(arguments):
        raise PermissionError(1, "a parser may not write files")


def _writes(arguments: tuple[object, ...]) -> bool:
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)
