"""Descriptors 0 to 2 of a process: nothing to read, and a FIFO that the sidecar logs."""

from __future__ import annotations

import os


class LoggedDescriptors:
    """Turns descriptors 1 and 2 into the FIFO at `path`, which is made where there is none.

    A FIFO, as Node's own pipes are sockets, on which `open("/dev/stderr")` fails. Until `let_go` this process also
    holds the reading end, so that opening does not wait for the sidecar and writing does not fail before it has opened
    its own.
    """

    def __init__(self, path: str) -> None:
        if not os.path.exists(path):
            os.mkfifo(path, 0o600)
        self._holder = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        writer = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(null, 0)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        os.close(writer)
        os.close(null)

    def let_go(self) -> None:
        """The sidecar has the FIFO open by now: from here on a write after its death fails, and never waits."""
        if self._holder >= 0:
            os.close(self._holder)
            self._holder = -1
