"""Results of cases, packed as a `rows` frame and the outbox hold them."""

from __future__ import annotations

import struct

SCORE = 0
INVALID_CASE = 1
METRIC_EXCEPTION = 2
METRIC_RETURN_VALUE = 3
# A run worker's output, as JSON in the first text. Its errors have the numbers of the metric's.
RAN = 4

# position, kind, value, metric_ms, and the lengths of three texts.
ROW_HEAD = struct.Struct("<IBxxxddIII")
# chunk, rows, finished, and nanoseconds in the metric, on the CPU, waiting for a core.
ROWS_HEAD = struct.Struct("<IIBQQQ")


def encode_row(position: int, kind: int, value: float, metric_ms: float, texts: tuple[bytes, bytes, bytes]) -> bytes:
    """One row: its head and its three texts."""
    first, second, third = texts
    head = ROW_HEAD.pack(position, kind, value, metric_ms, len(first), len(second), len(third))
    return b"".join((head, first, second, third))
