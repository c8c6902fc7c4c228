"""`sys.stdout` and `sys.stderr` of a metric: what it prints goes to the sidecar's log, with the case in hand.

Nothing here touches descriptors 1 and 2, so a metric may close them.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from skynet._worker import messages

if TYPE_CHECKING:
    from typing import BinaryIO

    from _typeshed import ReadableBuffer

# At most 64 KiB of UTF-8 a message, whatever the characters are.
PIECE_CHARACTERS = 16384

# Tells the chunk and the position in hand.
WhereInHand = Callable[[], "tuple[int, int | None]"]


class Printer:
    """Where printed text goes. A fork turns it to its own connection with `attach`."""

    def __init__(self, send: Callable[[dict[str, object]], None]) -> None:
        self._send = send
        self._where: WhereInHand = lambda: (0, None)
        self._descriptors_only = False
        # Reentrant: a finalizer may print while something is printed.
        self._lock = threading.RLock()
        # Texts that wait for the end of their line; the hot loop looks at whether there is any.
        self.unfinished: list[str] = []
        self._stream = ""

    def attach(self, send: Callable[[dict[str, object]], None], where: WhereInHand) -> None:
        self._send = send
        self._where = where
        self._descriptors_only = False

    def use_descriptors(self) -> None:
        """For a process that the metric forked: it has no connection, so its text goes to descriptors 1 and 2."""
        self._lock = threading.RLock()
        self._descriptors_only = True

    def install(self) -> None:
        """Takes the place of the interpreter's own streams."""
        stdout, stderr = PrintedText(self, "stdout", 1), PrintedText(self, "stderr", 2)
        vars(sys).update(stdout=stdout, __stdout__=stdout, stderr=stderr, __stderr__=stderr)

    def write(self, stream: str, text: str) -> None:
        """Takes text; sends the lines that it completes, and what is too long to be kept."""
        if not text:
            return
        with self._lock:
            if self._stream != stream:
                self.flush()
                self._stream = stream
            if "\n" not in text and len(text) < PIECE_CHARACTERS and sum(map(len, self.unfinished)) < PIECE_CHARACTERS:
                self.unfinished.append(text)
                return
            whole = "".join(self.unfinished) + text
            self.unfinished.clear()
            end = whole.rfind("\n") + 1 or len(whole)
            if len(whole) - end >= PIECE_CHARACTERS:
                end = len(whole)
            if end < len(whole):
                self.unfinished.append(whole[end:])
            self._emit(stream, whole[:end])

    def flush(self) -> None:
        """Sends what stands in an unfinished line."""
        with self._lock:
            text = "".join(self.unfinished)
            self.unfinished.clear()
            if text:
                self._emit(self._stream, text)

    def _emit(self, stream: str, text: str) -> None:
        if self._descriptors_only:
            os.write(1 if stream == "stdout" else 2, text.encode(errors="backslashreplace"))
            return
        chunk, case = self._where()
        begin = 0
        while begin < len(text):
            end = min(begin + PIECE_CHARACTERS, len(text))
            if end < len(text):
                end = text.rfind("\n", begin, end) + 1 or end
            self._send(messages.printed(stream, chunk, case, text[begin:end]))
            begin = end


class PrintedText(io.TextIOBase):
    """A text stream over a `Printer`."""

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None
    line_buffering = True
    write_through = False
    mode = "w"

    def __init__(self, printer: Printer, stream: str, descriptor: int) -> None:
        self._printer = printer
        self._stream = stream
        self._descriptor = descriptor
        self.name = f"<{stream}>"
        self.buffer = PrintedBytes(self)

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._printer.write(self._stream, text)
        return len(text)

    def flush(self) -> None:
        self._printer.flush()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        # What is written to the descriptor itself is logged too, without its case.
        return self._descriptor

    def isatty(self) -> bool:
        return False

    def close(self) -> None:
        """Only flushes: other cases go on printing."""
        self.flush()

    def detach(self) -> BinaryIO:
        return cast("BinaryIO", self.buffer)

    def reconfigure(self, **_settings: object) -> None:
        """Accepted as `io.TextIOWrapper` would; the text is sent as it is, so there is nothing to set."""


class PrintedBytes(io.BufferedIOBase):
    """The `buffer` of a printed stream: bytes in, UTF-8 text to the stream."""

    def __init__(self, text: PrintedText) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.raw = self

    def write(self, data: ReadableBuffer) -> int:
        encoded = bytes(data)
        self._text.write(self._decoder.decode(encoded))
        return len(encoded)

    def flush(self) -> None:
        self._text.flush()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._text.fileno()

    def close(self) -> None:
        self.flush()
