"""When a worker leaves instead of going on: the sidecar interrupts it, or it is a process that user code forked."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

from skynet._worker.connection import Connection
from skynet._worker.exceptions import traceback_text
from skynet._worker.printing import Printer

c_signal = sys.modules["_signal"]

INTERRUPTED = "interrupted"
FORKED = "forked"


class Leaving:
    """Why a worker has to leave. `reasons` is empty while it may go on; a list, as loops look at it after each call."""

    def __init__(self, connection: Connection, printer: Printer) -> None:
        self.reasons: list[str] = []
        self._connection = connection
        self._printer = printer
        # The mask of a thread that is forking.
        self._forking = threading.local()

    def watch(self) -> None:
        """From here on interrupts and forks are noticed. On the main thread, after the user's file was loaded."""
        signal.signal(signal.SIGINT, self._on_interrupt)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            # A service manager sends it to every process, while the sidecar still lets running cases finish. A
            # handler and not SIG_IGN, which the programs that a metric starts would inherit.
            signal.signal(signal.SIGTERM, on_terminate)
        os.register_at_fork(
            before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._on_fork_in_child
        )

    def leave(self, error: BaseException | None) -> None:
        """Called in place of whatever comes after a call. Does not return in a process that the user's code forked."""
        if self.reasons[0] != FORKED:
            return
        status = 0
        if type(error) is SystemExit:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            status = 1
            self._printer.write("stderr", traceback_text(error).decode())
        try:
            self._printer.flush()
        finally:
            os._exit(status & 0xFF)

    def _on_interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        """The sidecar's SIGINT: the user's code is interrupted once, and no further case is taken."""
        if not self.reasons:
            self.reasons.append(INTERRUPTED)
            raise KeyboardInterrupt

    def _before_fork(self) -> None:
        # A SIGTERM to the child waits until SIGTERM means there what it means to any program.
        self._forking.mask = c_signal.pthread_sigmask(c_signal.SIG_BLOCK, (c_signal.SIGTERM,))

    def _after_fork(self) -> None:
        c_signal.pthread_sigmask(c_signal.SIG_SETMASK, self._forking.mask)

    def _on_fork_in_child(self) -> None:
        """It neither talks to the sidecar nor goes on with the cases."""
        self.reasons.insert(0, FORKED)
        self._connection.close()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if signal.getsignal(signal.SIGTERM) is on_terminate:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._after_fork()


def on_terminate(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM is nothing to a worker: the sidecar decides when it ends."""
