"""What a process has used, in nanoseconds."""

from __future__ import annotations

import os
import resource
import threading
import time


class UsageMeter:
    """CPU time of this process and of the children that it waited for, and its threads' wait for a core."""

    def __init__(self) -> None:
        try:
            # Names the process that opens it: a fork needs its own.
            self._schedstat = os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._schedstat = -1
        self._cpu_ns = 0
        self._wait_ns = 0

    def start(self) -> None:
        """What is used from here on counts."""
        self._cpu_ns = _cpu_ns()
        self._wait_ns = self._read_wait_ns()

    def read(self) -> tuple[int, int]:
        """CPU and waiting since `start`."""
        return max(0, _cpu_ns() - self._cpu_ns), max(0, self._read_wait_ns() - self._wait_ns)

    def _read_wait_ns(self) -> int:
        """Of the main thread; where there are others, whose answers it may wait for, of all."""
        if threading.active_count() > 1:
            return sum(map(_thread_wait_ns, _threads()))
        if self._schedstat < 0:
            return 0
        try:
            return int(os.pread(self._schedstat, 128, 0).split()[1])
        except (OSError, IndexError, ValueError):
            # A metric that closes descriptors may close this one.
            self._schedstat = -1
            return 0


def _threads() -> list[str]:
    try:
        return os.listdir("/proc/self/task")
    except OSError:
        return []


def _thread_wait_ns(thread: str) -> int:
    try:
        with open(f"/proc/self/task/{thread}/schedstat", "rb") as schedstat:
            return int(schedstat.read().split()[1])
    except (OSError, IndexError, ValueError):
        # It ended, or the system does not tell.
        return 0


def _cpu_ns() -> int:
    children = getrusage(resource.RUSAGE_CHILDREN)
    return process_time_ns() + int((children.ru_utime + children.ru_stime) * 1e9)


# A metric that replaces the clock in `time` changes nothing here.
process_time_ns = time.process_time_ns
getrusage = resource.getrusage
