"""A run worker: makes one run of an artifact, tells what came of it, and ends. Each run has a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from mmap import mmap

from skynet._worker import lifeline, messages
from skynet._worker.awaiting import Awaiter
from skynet._worker.chunk import Chunk, check_types
from skynet._worker.connection import Connection, decode_message
from skynet._worker.faults import describe_fault
from skynet._worker.frames import CHUNK, ROWS, ProtocolError, encode_frame
from skynet._worker.leaving import Leaving
from skynet._worker.outbox import NO_CASE, OUTBOX_BYTES, OUTBOX_HEAD, OUTBOX_HEAD_BYTES, ROWS_OFFSET
from skynet._worker.printing import Printer
from skynet._worker.return_value import ReturnValueError
from skynet._worker.rows import RAN, ROWS_HEAD, encode_row
from skynet._worker.run_output import encode_output
from skynet._worker.scratch import enter_scratch
from skynet._worker.usage import UsageMeter

# Of what came of the run: the row's kind and its texts.
Outcome = tuple[int, tuple[bytes, bytes, bytes]]


class RunWorker:
    """Calls `run(artifact, input)` once, on the main thread.

    Run code owns this process, so nothing here protects the result from it: it has only its own to spoil.
    """

    def __init__(
        self,
        connection: Connection,
        outbox: mmap,
        call: Callable[..., object],
        folder: str,
        scratch: str,
        max_row_bytes: int,
        printer: Printer,
    ) -> None:
        self._connection = connection
        self._outbox = outbox
        self._call = call
        self._folder = folder
        self._scratch = scratch
        self._max_row_bytes = max_row_bytes
        self._printer = printer
        self._leaving = Leaving(connection, printer)
        self._awaiter = Awaiter(folder)
        self._usage = UsageMeter()
        self._clock = time.monotonic_ns
        printer.attach(connection.send_message, self._where_in_hand)

    def run(self, before_run: Callable[[], None]) -> None:
        """Says that it is ready, makes its run and exits; returns where the sidecar ends it before that.

        Raises `OSError`, `ProtocolError`.
        """
        # What the run leaves outside its group stays below this process, so that the template knows it for its own.
        lifeline.adopt_orphans()
        self._leaving.watch()
        enter_scratch(self._scratch)
        try:
            self._connection.send_message(messages.ready())
            chunk = self._receive()
            if chunk is not None:
                before_run()
                self._make_run(chunk)
        except KeyboardInterrupt:
            if not self._leaving.reasons:
                raise
        self._printer.flush()

    def _receive(self) -> Chunk | None:
        """The one chunk, with the environment that came before it set; `None` where the sidecar wants no run."""
        while (frame := self._connection.receive()) is not None:
            kind, payload = frame
            if kind == CHUNK:
                return Chunk(payload)
            message = messages.parse(decode_message(frame))
            if not isinstance(message, messages.Environment):
                raise ProtocolError("a run worker takes its environment and a chunk only")
            os.environ.update(message.variables)
        return None

    def _make_run(self, chunk: Chunk) -> None:
        self._usage.start()
        began = self._clock()
        self._outbox[:OUTBOX_HEAD_BYTES] = OUTBOX_HEAD.pack(0, 0, began, chunk.number)
        outcome = self._outcome(chunk)
        if outcome is None:
            return
        run_ns = self._clock() - began
        kind, texts = outcome
        row = encode_row(0, kind, 0.0, run_ns * 1e-6, texts)
        cpu_ns, wait_ns = self._usage.read()
        head = ROWS_HEAD.pack(chunk.number, 1, True, run_ns, cpu_ns, wait_ns)
        try:
            self._printer.flush()
            self._put_into_outbox(row, chunk.number)
            self._connection.send(encode_frame(ROWS, head, row))
        finally:
            os._exit(0)

    def _put_into_outbox(self, row: bytes, chunk: int) -> None:
        """The sidecar may hear of this process's end before it has read what it was sent; here it finds the row."""
        end = ROWS_OFFSET + len(row)
        if end <= OUTBOX_BYTES:
            self._outbox[ROWS_OFFSET:end] = row
            self._outbox[:OUTBOX_HEAD_BYTES] = OUTBOX_HEAD.pack(NO_CASE, len(row), 0, chunk)

    def _outcome(self, chunk: Chunk) -> Outcome | None:
        """What came of the run; `None` where nobody waits for it any more."""
        try:
            artifact, case_input = chunk.read_run()
            check_types(case_input, None)
            output = self._awaiter.settle(self._call(artifact, case_input))
            if self._leaving.reasons:
                self._leaving.leave(None)
                return None
            return self._fitting(RAN, (encode_output(output), b"", b""))
        except BaseException as error:
            if self._leaving.reasons:
                self._leaving.leave(error)
                return None
            if issubclass(type(error), ProtocolError):
                raise
            return self._fitting(*describe_fault(error, self._folder))

    def _fitting(self, kind: int, texts: tuple[bytes, bytes, bytes]) -> Outcome:
        size = sum(map(len, texts))
        if size <= self._max_row_bytes:
            return kind, texts
        if kind != RAN:
            # Without its traceback an error is short.
            return kind, (texts[0], b"", b"")
        raise ReturnValueError(
            f"the output takes {size} bytes, and at most {self._max_row_bytes} are allowed; return a smaller value"
        )

    def _where_in_hand(self) -> tuple[int, int | None]:
        position, _, _, chunk = OUTBOX_HEAD.unpack_from(self._outbox)
        return chunk, None if position == NO_CASE else position
