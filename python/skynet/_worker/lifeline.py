"""Dies with its parents: no process of ours outlives the sidecar or the template, nor does what a metric started."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import threading
from io import FileIO

from skynet._worker.connection import connect

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


# A FIFO that the template alone holds open for writing: its end is the template's.
TEMPLATE_FIFO = "template"


class Lifeline:
    """Two descriptors whose hang-up kills this process's group, whatever the process is doing: the sidecar's, and for a
    worker the template's.

    The process must lead its group. What it started and is still in the group dies with it. Raises `OSError`.
    """

    def __init__(self, folder: str, *, of_worker: bool) -> None:
        self._life = connect(os.path.join(folder, "life"))
        self._template = -1
        if sys.platform == "linux":
            _arm(self._life.fileno())
            if of_worker:
                path = os.path.join(folder, TEMPLATE_FIFO)
                self._template = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                _arm(self._template)
        else:
            watch = threading.Thread(target=_watch, args=(self._life, os.getpid()), name="skynet-lifeline", daemon=True)
            watch.start()

    def close(self) -> None:
        """Disarms it."""
        self._life.close()
        if self._template >= 0:
            os.close(self._template)
            self._template = -1


def hold_template_fifo(folder: str) -> FileIO:
    """Makes the FIFO and holds it open for the template's whole life; a fork of the template has to close it."""
    path = os.path.join(folder, TEMPLATE_FIFO)
    if not os.path.exists(path):
        os.mkfifo(path, 0o600)
    return FileIO(os.open(path, os.O_RDWR | os.O_CLOEXEC), "r+")


def die_with_parent(parent: int) -> None:
    """Another line, Linux only: SIGKILL for this process when `parent` dies. Exits where it is dead already."""
    if _prctl(PR_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> bool:
    """Makes what loses its parent below this process a child of it, so that it can be killed. False: not Linux."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


def lead_group() -> None:
    """Makes this process lead a process group of its own."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


def _prctl(option: int, argument: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        import ctypes
    except ImportError:
        # An interpreter without libffi: the first line has to do.
        return False
    return bool(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0) == 0)


def _arm(descriptor: int) -> None:
    """From here on the kernel sends SIGKILL to this process's group when anything happens to the descriptor."""
    group = os.getpid()
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, -group)
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)
    try:
        # It may have hung up before it was armed.
        hung_up = os.read(descriptor, 1) == b""
    except BlockingIOError:
        return
    if hung_up:
        os.killpg(group, signal.SIGKILL)


def _watch(life: socket.socket, group: int) -> None:
    """Where the kernel cannot do it. Works as long as the metric lets other threads run."""
    life.recv(1)
    os.killpg(group, signal.SIGKILL)
