"""The ends of child processes. Nothing here may be called for a process that was reaped already."""

from __future__ import annotations

import os
import signal

# macOS has it only from Python 3.13 on.
HAS_WAITID = hasattr(os, "waitid")


def peek_ended(pid: int) -> bool:
    """Whether a child has ended. It is not reaped, so its id stays its own. Without `waitid` always True."""
    if not HAS_WAITID:
        return True
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_group(group: int) -> None:
    """SIGKILL to a process group, its leader and what is left of it."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # Nobody is left; macOS says it the second way where only a dead leader is.
        pass


def reap(pid: int) -> tuple[int | None, int | None]:
    """Waits for a child and tells its exit code, or the signal that ended it."""
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def kill_children() -> None:
    """Kills and reaps every child of this process, those that it adopted included, until none is left. Linux only."""
    while children := _children():
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                # Another thread of a metric's may have waited for it.
                continue


def _children() -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as file:
                children.extend(int(pid) for pid in file.read().split())
    except OSError:
        # Not Linux, or a kernel built without this list.
        pass
    return children
