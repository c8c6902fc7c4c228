"""A worker: takes chunks of cases, calls the metric on each, and sends the results."""

from __future__ import annotations

import time
from collections.abc import Callable
from mmap import mmap

from skynet._worker import messages
from skynet._worker.awaiting import Awaiter
from skynet._worker.chunk import SEPARATOR, Chunk, check_types, scan_once
from skynet._worker.connection import Connection
from skynet._worker.exceptions import traceback_text
from skynet._worker.faults import describe_fault
from skynet._worker.frames import ROWS, ProtocolError, encode_frame, to_utf8
from skynet._worker.inbox import Inbox
from skynet._worker.leaving import Leaving
from skynet._worker.model_calls import ModelCalls
from skynet._worker.outbox import NO_CASE, OUTBOX_BYTES, OUTBOX_HEAD, OUTBOX_HEAD_BYTES, RECALL_OFFSET, ROWS_OFFSET
from skynet._worker.printing import Printer
from skynet._worker.return_value import read_return_value
from skynet._worker.rows import METRIC_RETURN_VALUE, ROW_HEAD, ROWS_HEAD, SCORE
from skynet._worker.seeding import seed_with
from skynet._worker.usage import UsageMeter
from skynet.metric_call import current as metric_call

# How long finished rows may stand in the outbox while the next case is scored.
SEND_INTERVAL_NS = 1_000_000

# From this size of a chunk on, reading the next case may take long enough to be mistaken for the last case's run.
LARGE_CHUNK_BYTES = 1 << 20


class Worker:
    """Scores chunks, one case at a time, on the main thread."""

    def __init__(
        self,
        connection: Connection,
        outbox: mmap,
        call: Callable[..., object],
        folder: str,
        max_row_bytes: int,
        printer: Printer,
    ) -> None:
        self._connection = connection
        self._outbox = outbox
        self._call = call
        self._folder = folder
        self._max_row_bytes = max_row_bytes
        self._printer = printer
        self._awaiter = Awaiter(folder)
        self._usage = UsageMeter()
        # Bound here, so that a metric which replaces the clock in `time` changes nothing.
        self._clock = time.monotonic_ns
        self._leaving = Leaving(connection, printer)
        self._inbox = Inbox(connection)
        self._models = ModelCalls(connection, self._inbox, self.where_in_hand)
        self._chunk = 0
        self._rows = 0
        self._metric_ns = 0
        self._sent_at = 0
        printer.attach(connection.send_message, self.where_in_hand)

    def run(self, before_first_chunk: Callable[[], None]) -> None:
        """Says that it is ready, and scores until the sidecar closes the connection or asks to leave.

        Raises `OSError`, `ProtocolError`.
        """
        self._leaving.watch()
        self._models.serve(metric_call)
        try:
            self._connection.send_message(messages.ready())
            has_more = self._score_next(before_first_chunk)
            while has_more and not self._leaving.reasons:
                has_more = self._score_next(None)
        except KeyboardInterrupt:
            if not self._leaving.reasons:
                raise
        self._printer.flush()

    def _score_next(self, before: Callable[[], None] | None) -> bool:
        """Scores one chunk, of which nothing is kept. False where there will be no more."""
        chunk = self._next_chunk()
        if chunk is None:
            return False
        self._inbox.take_chunk()
        if before is not None:
            before()
        self.score_chunk(chunk)
        return True

    def _next_chunk(self) -> Chunk | None:
        while True:
            try:
                return self._inbox.next_chunk()
            except Exception as error:
                if isinstance(error, (ProtocolError, OSError)) and not isinstance(error, TimeoutError):
                    raise
                # The handler of an alarm that the metric left behind; no case is to blame any more.
                self._printer.write("stderr", traceback_text(error).decode())

    def where_in_hand(self) -> tuple[int, int | None]:
        """The chunk, and the position of the case in hand."""
        position, _, _, chunk = OUTBOX_HEAD.unpack_from(self._outbox)
        return chunk, None if position == NO_CASE else position

    def score_chunk(self, chunk: Chunk) -> None:
        """Scores each case of a chunk and sends its rows, the last ones marked as the end.

        The loop is written out flat: whatever it costs is paid for every case.
        """
        number, count, seeds = chunk.number, chunk.count, chunk.seeds
        text, observed = chunk.text, chunk.has_observations
        by_value = not text
        is_large = chunk.bytes > LARGE_CHUNK_BYTES
        scan, call, clock, settle = scan_once, self._call, self._clock, self._awaiter.settle
        outbox, leaving, unfinished = self._outbox, self._leaving.reasons, self._printer.unfinished
        pack_head, pack_row, row_bytes = OUTBOX_HEAD.pack, ROW_HEAD.pack_into, ROW_HEAD.size
        max_row_bytes = min(self._max_row_bytes, OUTBOX_BYTES)
        self._chunk, self._rows, self._metric_ns = number, 0, 0
        self._usage.start()
        self._sent_at = clock()
        metric_call.begin()
        cursor = 0
        edge = ROWS_OFFSET
        recall_mark = number & 0xFF
        for position in range(count):
            if outbox[RECALL_OFFSET] == recall_mark:
                break
            began = ended = 0
            try:
                if not by_value:
                    try:
                        case_input, cursor = scan(text, cursor)
                        is_whole = text[cursor] == SEPARATOR
                        output, cursor = scan(text, cursor + 1)
                        is_whole = is_whole and text[cursor] == SEPARATOR
                        cursor += 1
                        if text[cursor] == SEPARATOR:
                            expected = None
                        else:
                            expected, cursor = scan(text, cursor)
                            is_whole = is_whole and text[cursor] == SEPARATOR
                        cursor += 1
                        if observed:
                            end = text.index(SEPARATOR, cursor)
                            observation = text[cursor:end]
                            cursor = end + 1
                        by_value = not is_whole
                    except (ValueError, StopIteration, RecursionError, IndexError):
                        by_value = True
                if by_value:
                    case_input, output, expected, observation = chunk.read_case(position)
                if type(case_input) is not dict or (expected is not None and type(expected) is not dict):
                    check_types(case_input, expected)
                if seeds:
                    seed_with(seeds[position])
                if observed:
                    metric_call.begin(observation)
                began = clock()
                outbox[:OUTBOX_HEAD_BYTES] = pack_head(position, edge - ROWS_OFFSET, began, number)
                returned = call(case_input, output, expected)
                if type(returned) is not tuple:
                    returned = settle(returned)
                ended = clock()
                if leaving:
                    self._leaving.leave(None)
                    return
                if (
                    type(returned) is tuple
                    and len(returned) == 2
                    and type(value := returned[0]) is float
                    and value - value == 0.0
                    and type(side_info := returned[1]) is dict
                    and len(side_info) == 1
                    and type(feedback := side_info.get("feedback")) is str
                ):
                    try:
                        first = feedback.encode()
                    except UnicodeEncodeError:
                        first = to_utf8(feedback)
                    size = row_bytes + len(first)
                    end = edge + size
                    if size <= max_row_bytes and end <= OUTBOX_BYTES:
                        metric_ns = ended - began
                        pack_row(outbox, edge, position, SCORE, value, metric_ns * 1e-6, len(first), 0, 0)
                        outbox[edge + row_bytes : end] = first
                        edge = end
                        self._rows += 1
                        self._metric_ns += metric_ns
                    else:
                        edge = self._add_row(edge, position, SCORE, value, ended - began, (first, b"", b""))
                else:
                    value, texts = read_return_value(returned)
                    edge = self._add_row(edge, position, SCORE, value, ended - began, texts)
            except BaseException as error:
                if leaving:
                    self._leaving.leave(error)
                    return
                if issubclass(type(error), ProtocolError):
                    raise
                ended = ended or clock()
                metric_ns = ended - began if began else 0
                kind, texts = describe_fault(error, self._folder)
                edge = self._add_row(edge, position, kind, 0.0, metric_ns, texts)
            if unfinished:
                self._printer.flush()
            if is_large:
                outbox[:OUTBOX_HEAD_BYTES] = pack_head(NO_CASE, edge - ROWS_OFFSET, 0, number)
            if ended - self._sent_at > SEND_INTERVAL_NS and position + 1 < count:
                edge = self._send(edge, False)
        metric_call.end()
        # A chunk whose number ends in the same byte comes again.
        outbox[RECALL_OFFSET] = 0
        self._send(edge, True)

    def _add_row(
        self, edge: int, position: int, kind: int, value: float, metric_ns: int, texts: tuple[bytes, bytes, bytes]
    ) -> int:
        """Puts a row into the outbox, whose rows end at `edge`, or sends it at once where it is too large for that."""
        first, second, third = texts
        size = ROW_HEAD.size + len(first) + len(second) + len(third)
        if size > self._max_row_bytes and kind != SCORE:
            # Without its traceback an error is short.
            second = b""
            size = ROW_HEAD.size + len(first)
        elif size > self._max_row_bytes:
            kind, value, second, third = METRIC_RETURN_VALUE, 0.0, b"", b""
            first = (
                f"the result takes {size} bytes, and at most {self._max_row_bytes} are allowed; "
                "shorten the feedback and the side info"
            ).encode()
            size = ROW_HEAD.size + len(first)
        if edge + size > OUTBOX_BYTES:
            edge = self._send(edge, False)
        head = ROW_HEAD.pack(position, kind, value, metric_ns * 1e-6, len(first), len(second), len(third))
        row = b"".join((head, first, second, third))
        self._rows += 1
        self._metric_ns += metric_ns
        if ROWS_OFFSET + size > OUTBOX_BYTES:
            self._send_rows(row, False)
            return edge
        self._outbox[edge : edge + size] = row
        return edge + size

    def _send(self, edge: int, is_finished: bool) -> int:
        """Sends the outbox's rows and empties it. Returns where its rows end now."""
        # While the sidecar is slow to take them no case is in hand.
        self._outbox[:OUTBOX_HEAD_BYTES] = OUTBOX_HEAD.pack(NO_CASE, edge - ROWS_OFFSET, 0, self._chunk)
        self._send_rows(self._outbox[ROWS_OFFSET:edge], is_finished)
        self._outbox[:OUTBOX_HEAD_BYTES] = OUTBOX_HEAD.pack(NO_CASE, 0, 0, self._chunk)
        return ROWS_OFFSET

    def _send_rows(self, rows: bytes, is_finished: bool) -> None:
        cpu_ns, wait_ns = self._usage.read()
        head = ROWS_HEAD.pack(self._chunk, self._rows, is_finished, self._metric_ns, cpu_ns, wait_ns)
        self._connection.send(encode_frame(ROWS, head, rows))
        self._rows = 0
        self._sent_at = self._clock()
