"""One connection to the sidecar: frames both ways, safe against threads and against signal handlers that raise."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping

from skynet._worker.frames import MESSAGE, FrameBuffer, ProtocolError, encode_message

# `signal` itself turns each number of a mask into an enum member, on every call.
c_signal = sys.modules["_signal"]

# Handlers of these may raise anywhere; while they are held back a frame is never cut short.
HELD_BACK = frozenset(
    int(number)
    for number in (
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGTERM,
        signal.SIGCHLD,
        signal.SIGVTALRM,
        signal.SIGPROF,
        signal.SIGIO,
    )
)


class Connection:
    """A connected stream socket that carries frames."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = FrameBuffer()
        # Reentrant: a finalizer or a handler may print while a frame goes out.
        self._lock = threading.RLock()
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLIN)
        self.is_open = True

    @classmethod
    def connect(cls, folder: str) -> Connection:
        """Connects to the sidecar's `s`. Raises `OSError`."""
        return cls(connect(os.path.join(folder, "s")))

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, frame: bytes) -> None:
        """Sends a whole frame, and blocks until the system took it. Does nothing once closed. Raises `OSError`."""
        if not self.is_open:
            return
        mask = c_signal.pthread_sigmask(c_signal.SIG_BLOCK, ())
        try:
            c_signal.pthread_sigmask(c_signal.SIG_BLOCK, HELD_BACK)
            with self._lock:
                self._socket.sendall(frame)
        finally:
            c_signal.pthread_sigmask(c_signal.SIG_SETMASK, mask)

    def send_message(self, message: Mapping[str, object]) -> None:
        self.send(encode_message(message))

    def receive(self) -> tuple[int, memoryview] | None:
        """The next frame, which stays valid until the next call, or `None` where the other side closed. Blocks."""
        while True:
            frame = self._buffer.next_frame()
            if frame is not None:
                return frame
            self._buffer.shrink()
            self._poll.poll()
            if not self.fill():
                return None

    def read(self, hand_out: Callable[[tuple[int, memoryview]], None]) -> bool:
        """Waits for bytes, reads once and hands out each frame that is whole by then, valid until that returns.

        Signals interrupt the wait, and nothing after it. False where the other side closed. Raises `OSError`,
        `ProtocolError`.
        """
        self._buffer.shrink()
        self._poll.poll()
        mask = c_signal.pthread_sigmask(c_signal.SIG_BLOCK, ())
        try:
            c_signal.pthread_sigmask(c_signal.SIG_BLOCK, HELD_BACK)
            is_connected = self.fill()
            while (frame := self._buffer.next_frame()) is not None:
                hand_out(frame)
        finally:
            c_signal.pthread_sigmask(c_signal.SIG_SETMASK, mask)
        return is_connected

    def next_frame(self) -> tuple[int, memoryview] | None:
        """A frame that has arrived whole, or `None`. Does not read."""
        return self._buffer.next_frame()

    def fill(self) -> bool:
        """Reads once. False where the other side closed; `ProtocolError` where it did so within a frame."""
        mask = c_signal.pthread_sigmask(c_signal.SIG_BLOCK, ())
        try:
            c_signal.pthread_sigmask(c_signal.SIG_BLOCK, HELD_BACK)
            try:
                count = self._socket.recv_into(self._buffer.space())
            except ConnectionResetError:
                return False
            self._buffer.filled(count)
        finally:
            c_signal.pthread_sigmask(c_signal.SIG_SETMASK, mask)
        if count == 0 and not self._buffer.is_empty():
            raise ProtocolError("the connection ended in the middle of a frame")
        return count > 0

    def forget(self) -> None:
        """In a fork: drops what has arrived here and is for the process that it came to."""
        self._buffer.wipe()

    def close(self) -> None:
        """Closes this process's end; another process that shares it keeps its own."""
        self.is_open = False
        self._socket.close()


def hold_signals_back() -> None:
    """For a thread that is not the metric's: signals are for the main thread."""
    c_signal.pthread_sigmask(c_signal.SIG_BLOCK, HELD_BACK)


def connect(path: str) -> socket.socket:
    """A blocking, not inheritable connection to the unix socket at `path`. Raises `OSError`."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock


def decode_message(frame: tuple[int, memoryview]) -> dict[str, object]:
    """The object in a `message` frame. Raises `ProtocolError` for another kind or another value."""
    kind, payload = frame
    if kind != MESSAGE:
        raise ProtocolError(f"expected a message, got a frame of kind {kind}")
    message = json_decode(str(payload, "utf-8"))
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError('a message is not an object with a "type"')
    return message


# A metric that replaces parts of `json` changes nothing here.
json_decode = json.JSONDecoder().decode
