"""Whether a process that has loaded a metric may be forked: what loading left behind that a fork would share."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from typing import NamedTuple

# Every read of these stands on its own.
STATELESS_FILES = frozenset({"/dev/null", "/dev/urandom", "/dev/random", "/dev/zero", "/dev/full"})

# A thread that was joined may still be on its way out of the system.
THREAD_END_SECONDS = 0.05


class Snapshot(NamedTuple):
    """Descriptors, by number, and writable shared mappings."""

    descriptors: dict[int, tuple[int, int, str]]
    mappings: frozenset[str]


def take_snapshot() -> Snapshot:
    """What there is before loading."""
    return Snapshot(_descriptors(), _shared_mappings())


def find_hazards(before: Snapshot) -> list[str]:
    """What makes forking unsafe, as texts for the log; empty where it is safe."""
    if sys.platform != "linux":
        return [f"forking is used on Linux only, and this is {sys.platform}"]
    hazards = []
    threads = _thread_count()
    if threads > 1:
        names = ", ".join(sorted(thread.name for thread in threading.enumerate()[1:])) or "not Python's own"
        hazards.append(f"loading left {threads - 1} more thread{'s' if threads > 2 else ''} running ({names})")
    if _has_children():
        hazards.append("loading left a child process")
    for descriptor, identity in sorted(_descriptors().items()):
        if before.descriptors.get(descriptor) != identity and not _may_be_shared(descriptor, identity[2]):
            hazards.append(f"loading left descriptor {descriptor} open ({_shown(identity[2])})")
    for mapping in sorted(_shared_mappings() - before.mappings):
        hazards.append(f"loading left writable shared memory ({_shown(mapping)})")
    return hazards


def _shown(target: str) -> str:
    """A file's name without its folder: engines are told why workers do not fork, and never a path."""
    return os.path.basename(target) if target.startswith("/") else target


def _thread_count() -> int:
    deadline = time.monotonic() + THREAD_END_SECONDS
    while True:
        try:
            count = len(os.listdir("/proc/self/task"))
        except OSError:
            return threading.active_count()
        if count <= threading.active_count() or time.monotonic() > deadline:
            return count
        time.sleep(0.001)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _descriptors() -> dict[int, tuple[int, int, str]]:
    found: dict[int, tuple[int, int, str]] = {}
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return found
    for name in names:
        try:
            status = os.fstat(int(name))
            found[int(name)] = (status.st_dev, status.st_ino, os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            # The listing's own descriptor, closed by now.
            continue
    return found


def _may_be_shared(descriptor: int, target: str) -> bool:
    """Whether a descriptor has no position and no state that forks would fight over."""
    if target in STATELESS_FILES:
        return True
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        with open(f"/proc/self/fdinfo/{descriptor}") as file:
            flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
    except (OSError, StopIteration):
        return False
    # A log file: each write goes to its end, whoever else writes.
    return flags & os.O_ACCMODE == os.O_WRONLY and bool(flags & os.O_APPEND)


def _shared_mappings() -> frozenset[str]:
    try:
        with open("/proc/self/maps", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return frozenset()
    shared = set()
    for line in lines:
        fields = line.split(None, 5)
        if fields[1][1] == "w" and fields[1][3] == "s":
            shared.add(f"{fields[0]} {fields[5] if len(fields) > 5 else 'anonymous'}")
    return frozenset(shared)
