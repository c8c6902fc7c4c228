"""What the sidecar sends to a worker: chunks for the main thread, answers for whoever asked a model."""

from __future__ import annotations

import threading
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress

from skynet._worker import messages
from skynet._worker.chunk import Chunk
from skynet._worker.connection import Connection, decode_message, hold_signals_back
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
        # It may be awake already.
        with suppress(RuntimeError):
            self._asleep.release()


class Inbox:
    """Reads a worker's connection and hands out what comes.

    The main thread reads for itself while nobody has asked a model. From then on a thread does, as the metric's signal
    handlers run on the main thread and may raise anywhere: here they interrupt a wait, and nothing else.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Held by whoever reads.
        self._reading = threading.Lock()
        self._has_thread = False
        self._receivers: dict[int, Receive] = {}
        self._chunks: list[Chunk] = []
        self._main_waits = Waiting()
        self._failure: Exception | None = None
        self.has_ended = False

    def next_chunk(self) -> Chunk | None:
        """Waits for a chunk, on the main thread; `None` where the other side has closed.

        It stays the next one until `take_chunk`, so that none is lost to a handler that raises. Raises `OSError`,
        `ProtocolError`.
        """
        while not self._chunks and not self.has_ended:
            if self._has_thread:
                self._main_waits.sleep()
            else:
                with self._reading:
                    self._read()
        if self._chunks:
            return self._chunks[0]
        if self._failure is not None:
            raise self._failure
        return None

    def take_chunk(self) -> None:
        del self._chunks[:1]

    def expect(self, call: int, receive: Receive) -> None:
        """From here on the reply to that call goes to `receive`, on whichever thread reads it."""
        self._receivers[call] = receive
        if self.has_ended:
            self.give_up(call)
        elif not self._has_thread:
            # In one step, which a signal's handler cannot leave half done; two such threads would take turns.
            start_new_thread(self._read_on, ())
            self._has_thread = True

    def forget(self, call: int) -> None:
        """Nobody wants that reply any more."""
        self._receivers.pop(call, None)

    def give_up(self, call: int) -> None:
        """That call gets no reply; whoever waits for it is told."""
        receive = self._receivers.pop(call, None)
        if receive is not None:
            receive(None)

    def end_in_fork(self) -> None:
        """In a process that the metric forked: nothing comes here."""
        self.has_ended = True

    def _read_on(self) -> None:
        hold_signals_back()
        while not self.has_ended:
            with self._reading:
                try:
                    self._read()
                except Exception as error:
                    self._end(ProtocolError(f"what came cannot be read: {error}"))

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
            self._main_waits.wake()
            return
        message = messages.parse(decode_message(frame))
        if not isinstance(message, messages.ModelAnswer):
            raise ProtocolError("a worker takes chunks and answers of models only")
        receive = self._receivers.pop(message.call, None)
        if receive is not None:
            receive(message.reply)

    def _end(self, failure: Exception | None) -> None:
        self._failure = failure
        self.has_ended = True
        self._main_waits.wake()
        for call in list(self._receivers):
            self.give_up(call)
