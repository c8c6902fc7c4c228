"""The ends of child processes. An id means nothing any more once its process was reaped."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress

# macOS has it only from Python 3.13 on.
HAS_WAITID = hasattr(os, "waitid")

# The variable that everything below a template has, unless it was started with an environment of its own.
MARK = b"SKYNET_PROCESSES_OF="

# How long processes that were killed may take to be gone.
END_SECONDS = 2.0


def reap_ended(leaders: Collection[int]) -> Iterator[tuple[int, int | None, int | None]]:
    """Reaps every child that has ended, after killing what is left of its group where it is one of `leaders`.

    Yields its id, and its exit code or the signal that ended it.
    """
    if HAS_WAITID:
        # A look first: while the dead leader is not reaped, no other group can have its number.
        while (ended := _peek()) is not None:
            if ended in leaders:
                kill_group(ended)
            yield (ended, *reap(ended))
        return
    for pid in list(leaders):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            kill_group(pid)
            yield (pid, *_how(status))


def kill_group(group: int) -> None:
    """SIGKILL to a process group, its leader and what is left of it."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # Nobody is left; macOS says it the second way where only a dead leader is.
        pass


def reap(pid: int) -> tuple[int | None, int | None]:
    """Waits for a child and tells its exit code, or the signal that ended it."""
    return _how(os.waitpid(pid, 0)[1])


def kill_children(spared: Collection[int] = ()) -> None:
    """Kills and reaps every child of this process but those `spared`, the adopted ones included, until none is left.

    Linux only.
    """
    immune = set(spared)
    while left := children() - immune:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                # It has taken another user's id, or a thread of the metric's has waited for it.
                immune.add(pid)


def kill_marked(mark: str) -> None:
    """Kills every process but this one whose `MARK` is `mark`, whoever its parent is by now. Linux only."""
    variable = MARK + os.fsencode(mark)
    deadline = time.monotonic() + END_SECONDS
    while (left := _marked(variable)) and time.monotonic() < deadline:
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _marked(variable: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            # Of a process that is dead and was not reaped it is empty.
            with open(f"/proc/{name}/environ", "rb") as file:
                if variable in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            # It is gone, or somebody else's.
            continue
    return found


def _peek() -> int | None:
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if ended is None else ended.si_pid


def _how(status: int) -> tuple[int | None, int | None]:
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def children() -> set[int]:
    """The children of this process. Linux only; elsewhere it knows of none."""
    found: set[int] = set()
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as file:
                found.update(int(pid) for pid in file.read().split())
    except OSError:
        # Not Linux, or a kernel built without this list.
        pass
    return found
