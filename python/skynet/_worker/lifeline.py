"""Dies with its parents: no process of ours outlives the sidecar or the template, nor does what a metric started."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import threading

from skynet._worker.connection import connect

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def arm(folder: str) -> socket.socket:
    """Connects to `life`: when the sidecar is gone, the kernel kills this process's group, whatever it is doing.

    The process must lead its group. Keep the socket: closing it disarms. Raises `OSError`.
    """
    life = connect(os.path.join(folder, "life"))
    group = os.getpid()
    if sys.platform == "linux":
        fcntl.fcntl(life, fcntl.F_SETOWN, -group)
        fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
        # It may have hung up before it was armed.
        life.setblocking(False)
        try:
            hung_up = life.recv(1) == b""
        except BlockingIOError:
            hung_up = False
        if hung_up:
            os.killpg(group, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(life, group), name="skynet-lifeline", daemon=True).start()
    return life


def die_with_parent(parent: int) -> None:
    """The second line, Linux only: SIGKILL for this process when `parent` dies. Exits where it is dead already."""
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


def _watch(life: socket.socket, group: int) -> None:
    """Where the kernel cannot do it. Works as long as the metric lets other threads run."""
    life.recv(1)
    os.killpg(group, signal.SIGKILL)
