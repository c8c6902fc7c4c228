"""SIGTERM to a worker: nothing to the worker itself, the end to a process that its metric forks."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType


class IgnoredTermination:
    """A service manager sends SIGTERM to every process, while the sidecar still lets running cases finish.

    A handler and not SIG_IGN, which the programs that a metric starts would inherit. A forked process has it from its
    first moment too, so SIGTERM is held back around a fork: `multiprocessing` may send it at once.
    """

    def __init__(self) -> None:
        self._masks = threading.local()

    def install(self) -> None:
        """Does nothing where the metric has a handler of its own."""
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, ignore)
            os.register_at_fork(
                before=self._hold_back, after_in_parent=self._let_through, after_in_child=self._take_back
            )

    def _hold_back(self) -> None:
        self._masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))

    def _let_through(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._masks.before)

    def _take_back(self) -> None:
        if signal.getsignal(signal.SIGTERM) is ignore:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._let_through()


def ignore(_signal: int, _frame: FrameType | None) -> None:
    """The sidecar decides when a worker ends."""
