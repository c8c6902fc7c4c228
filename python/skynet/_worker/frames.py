"""Frames: `u32` length of what follows, `u8` kind, payload. The twin of `src/worker/frames.ts`."""

from __future__ import annotations

import json
import struct

MESSAGE = 1
CHUNK = 2
ROWS = 3

FRAME_HEAD = struct.Struct("<IB")
MAX_FRAME_BYTES = 1 << 30

# What one read asks for: a usual chunk with its head comes in a single call.
READ_BYTES = 1 << 18


class ProtocolError(Exception):
    """The other side broke the protocol; the connection is of no more use."""


def encode_frame(kind: int, *parts: bytes) -> bytes:
    """One whole frame whose payload is `parts`, one after the other."""
    length = 1 + sum(map(len, parts))
    if length > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame of {length} bytes is over the limit of {MAX_FRAME_BYTES}")
    return b"".join((FRAME_HEAD.pack(length, kind), *parts))


def encode_message(message: object) -> bytes:
    """A `message` frame: compact JSON, the keys in their order."""
    return encode_frame(MESSAGE, to_utf8(json_encode(message)))


def to_utf8(text: str) -> bytes:
    """UTF-8 in which surrogate pairs are joined and a lone surrogate is U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


class FrameBuffer:
    """Cuts what arrives into frames. `space`, then `filled`, then `next_frame` until it has none."""

    def __init__(self) -> None:
        self._bytes = bytearray(READ_BYTES)
        self._begin = 0
        self._end = 0

    def space(self) -> memoryview:
        """Where the next bytes belong; never empty. Frames given out before are void from here on."""
        pending = self._end - self._begin
        wanted = max(READ_BYTES, self._frame_bytes() or 0)
        if len(self._bytes) != wanted and pending <= wanted:
            fresh = bytearray(wanted)
            fresh[:pending] = memoryview(self._bytes)[self._begin : self._end]
            self._bytes, self._begin, self._end = fresh, 0, pending
        elif self._begin:
            self._bytes[:pending] = self._bytes[self._begin : self._end]
            self._begin, self._end = 0, pending
        return memoryview(self._bytes)[self._end :]

    def filled(self, count: int) -> None:
        """`count` bytes were put into `space`."""
        self._end += count

    def next_frame(self) -> tuple[int, memoryview] | None:
        """The next whole frame as (kind, payload), or `None` until more arrives. Raises `ProtocolError`."""
        size = self._frame_bytes()
        if size is None or self._end - self._begin < size:
            return None
        view = memoryview(self._bytes)[self._begin : self._begin + size]
        self._begin += size
        return view[4], view[FRAME_HEAD.size :]

    def shrink(self) -> None:
        """Gives back the memory of a large frame, so that nobody holds it while waiting for the next."""
        if self._begin == self._end and len(self._bytes) > READ_BYTES:
            self._bytes, self._begin, self._end = bytearray(READ_BYTES), 0, 0

    def wipe(self) -> None:
        """Overwrites all that has arrived."""
        self._bytes[:] = bytes(len(self._bytes))
        self._begin = self._end = 0

    def is_empty(self) -> bool:
        """True between two frames."""
        return self._begin == self._end

    def _frame_bytes(self) -> int | None:
        if self._end - self._begin < FRAME_HEAD.size:
            return None
        length, kind = FRAME_HEAD.unpack_from(self._bytes, self._begin)
        if not 1 <= length <= MAX_FRAME_BYTES:
            raise ProtocolError(f"a frame says that it has {length} bytes; 1 to {MAX_FRAME_BYTES} are allowed")
        if kind not in (MESSAGE, CHUNK, ROWS):
            raise ProtocolError(f"a frame is of kind {kind}; 1 to 3 are known")
        return int(length) + 4


# A metric that replaces parts of `json` changes nothing here.
json_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
