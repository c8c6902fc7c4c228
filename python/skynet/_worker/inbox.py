"""What the sidecar sends to a worker: chunks for the main thread, answers for whoever asked a model.

No thread stands by for this: whoever waits reads the connection, one at a time, and hands out what comes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from skynet._worker import messages
from skynet._worker.chunk import Chunk
from skynet._worker.connection import Connection, decode_message
from skynet._worker.frames import CHUNK, ProtocolError
from skynet._worker.messages import Reply

# Takes the reply to a call; `None`: there will be none.
Receive = Callable[["Reply | None"], None]


class Waiting:
    """One thread's wait. `wake` may come from any thread, before `sleep` too, and more than once."""

    __slots__ = ("_asleep",)

    def __init__(self) -> None:
        # A bare lock: waiting for it can be interrupted by a signal, and leaves nothing half done.
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def sleep(self) -> None:
        self._asleep.acquire()

    def wake(self) -> None:
        try:
            self._asleep.release()
        except RuntimeError:
            # It is awake already.
            pass


class Inbox:
    """Shares one connection among the threads that wait for something.

    A signal's handler may raise in any of this on the main thread: who waits is then no longer counted on, and
    everybody else gets what is theirs.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Reentrant: a signal's handler may ask a model too.
        self._lock = threading.RLock()
        # In the order of their coming.
        self._waiting: dict[Waiting, None] = {}
        # Who reads. While it is `None` and anybody waits, one of them has been woken to take its place.
        self._reader: Waiting | None = None
        self._receivers: dict[int, Receive] = {}
        self._chunks: list[Chunk] = []
        self._chunk_wanted: Waiting | None = None
        self._failure: Exception | None = None
        self.has_ended = False

    def next_chunk(self) -> Chunk | None:
        """Waits for a chunk, on the main thread; `None` where the other side has closed.

        Raises `OSError`, `ProtocolError`.
        """
        self._chunk_wanted = waiting = Waiting()
        self.wait(waiting, lambda: self._chunks)
        if self._chunks:
            return self._chunks.pop()
        if self._failure is not None:
            raise self._failure
        return None

    def expect(self, call: int, receive: Receive) -> None:
        """From here on the reply to that call goes to `receive`, on whichever thread reads it."""
        self._receivers[call] = receive
        if self.has_ended and self._receivers.pop(call, None) is not None:
            receive(None)

    def forget(self, call: int) -> None:
        """Nobody wants that reply any more."""
        self._receivers.pop(call, None)

    def wait(self, waiting: Waiting, is_done: Callable[[], object]) -> None:
        """Reads, or sleeps while another thread does, until `is_done` or there is nothing to come any more.

        Whoever makes `is_done` true wakes `waiting`.
        """
        try:
            with self._lock:
                self._waiting[waiting] = None
            while True:
                with self._lock:
                    if self.has_ended or is_done():
                        return
                    is_reader = self._reader is None or self._reader is waiting
                    if is_reader:
                        self._reader = waiting
                if is_reader:
                    self._read()
                else:
                    waiting.sleep()
        finally:
            self._leave(waiting)

    def end_in_fork(self) -> None:
        """In a process that the metric forked: nothing comes here, and whoever held the lock is gone."""
        self._lock = threading.RLock()
        self.has_ended = True

    def _leave(self, waiting: Waiting) -> None:
        with self._lock:
            self._waiting.pop(waiting, None)
            if self._reader is None or self._reader is waiting:
                self._reader = None
                heir = next(iter(self._waiting), None)
                if heir is not None:
                    heir.wake()

    def _read(self) -> None:
        try:
            if not self._connection.read(self._hand_out):
                self._end(None)
        except TimeoutError:
            # Not the connection's: the handler of an alarm has raised it.
            raise
        except (OSError, ProtocolError) as error:
            self._end(error)

    def _hand_out(self, frame: tuple[int, memoryview]) -> None:
        kind, payload = frame
        if kind == CHUNK:
            self._chunks.append(Chunk(payload))
            if self._chunk_wanted is not None:
                self._chunk_wanted.wake()
            return
        message = messages.parse(decode_message(frame))
        if not isinstance(message, messages.ModelAnswer):
            raise ProtocolError("a worker takes chunks and answers of models only")
        receive = self._receivers.pop(message.call, None)
        if receive is not None:
            receive(message.reply)

    def _end(self, failure: Exception | None) -> None:
        with self._lock:
            self._failure = failure
            self.has_ended = True
            for waiting in list(self._waiting):
                waiting.wake()
        while self._receivers:
            self._receivers.popitem()[1](None)
