"""The outbox: a mapped file that tells a dead worker's finished rows and the case that it had in hand."""

from __future__ import annotations

import mmap
import os
import struct

OUTBOX_BYTES = 1 << 16
ROWS_OFFSET = 64
NO_CASE = 0xFFFFFFFF

# The one byte that the sidecar writes: the low byte of a chunk's number asks to finish that chunk after the case in
# hand.
RECALL_OFFSET = 20

# Position of the case in hand, bytes of finished rows, when the case began, chunk. Written as one slice: `pack_into`
# fills what it writes to with zeros first, and a process that is killed then would have lost its finished rows.
OUTBOX_HEAD = struct.Struct("<IIQI")
OUTBOX_HEAD_BYTES = OUTBOX_HEAD.size


def make_outbox(path: str) -> None:
    """Makes the file with its blocks on disk, so that a full disk is an `OSError` here and not a SIGBUS later."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        allocate = getattr(os, "posix_fallocate", None)
        if allocate is not None:
            allocate(descriptor, 0, OUTBOX_BYTES)
        else:
            os.write(descriptor, bytes(OUTBOX_BYTES))
        os.pwrite(descriptor, OUTBOX_HEAD.pack(NO_CASE, 0, 0, 0), 0)
    finally:
        os.close(descriptor)


def open_outbox(path: str) -> mmap.mmap:
    """Maps an outbox that `make_outbox` made. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, OUTBOX_BYTES)
    finally:
        os.close(descriptor)
