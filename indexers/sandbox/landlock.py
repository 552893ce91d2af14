"""Landlock: asks the Linux kernel to refuse this process every write to a file system, every exec and every TCP call.

It binds native code too, needs no privileges, and cannot be undone. Reading stays allowed, since files to parse lie
anywhere. Kernels before 5.13, and those built without it, have none; then this does nothing.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

# Numbers from linux/landlock.h and the system call table that all architectures share since 5.1.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION_FLAG = 1
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS
_EXECUTE, _WRITE_FILE = 1 << 0, 1 << 1
_REMOVING_AND_MAKING = sum(1 << bit for bit in range(4, 13))
_SINCE = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # refer, truncate, device ioctl
_BIND_AND_CONNECT_TCP = 0b11  # since version 4
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11  # since version 6


def forbid_changes() -> bool:
    """Restricts this process for good; False where the kernel has no Landlock."""
    if sys.platform != "linux":
        return False
    system = ctypes.CDLL(None, use_errno=True)
    version = system.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    if version < 1:
        return False
    attributes = _attributes(version)
    ruleset = system.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return bool(system.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _attributes(version: int) -> bytes:
    """Returns the struct of what is refused, as long as this version of it is."""
    files = _EXECUTE | _WRITE_FILE | _REMOVING_AND_MAKING
    files |= sum(bits for since, bits in _SINCE.items() if version >= since)
    fields = [files]
    fields += [_BIND_AND_CONNECT_TCP] if version >= 4 else []
    fields += [_ABSTRACT_SOCKETS_AND_SIGNALS] if version >= 6 else []
    return struct.pack(f"{len(fields)}Q", *fields)
