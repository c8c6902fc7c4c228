from __future__ import annotations

import struct

import pytest
import vectors

from skynet._worker.chunk import Chunk
from skynet._worker.frames import CHUNK, MESSAGE, FrameBuffer, ProtocolError, encode_frame, encode_message, to_utf8


def feed(buffer: FrameBuffer, data: bytes, piece: int) -> list[tuple[int, bytes]]:
    """Gives data to the buffer in pieces, and takes every frame that is whole."""
    frames = []
    begin = 0
    while begin < len(data):
        space = buffer.space()
        part = data[begin : begin + min(piece, len(space))]
        space[: len(part)] = part
        buffer.filled(len(part))
        begin += len(part)
        while (frame := buffer.next_frame()) is not None:
            frames.append((frame[0], bytes(frame[1])))
    return frames


def test_the_file_of_vectors_is_what_this_release_writes() -> None:
    assert [{**vector, "hex": vectors.encode(vector).hex()} for vector in vectors.VECTORS] == vectors.read()


@pytest.mark.parametrize("vector", [v for v in vectors.read() if v["kind"] == "chunk"], ids=lambda v: v["name"])
def test_reads_the_chunks_of_the_vectors(vector: vectors.Vector) -> None:
    ((kind, payload),) = feed(FrameBuffer(), bytes.fromhex(vector["hex"]), 1 << 20)
    assert kind == CHUNK
    chunk = Chunk(memoryview(payload))
    assert (chunk.number, chunk.count) == (vector["chunk"], len(vector["cases"]))
    assert [str(seed) for seed in chunk.seeds] == [c["seed"] for c in vector["cases"] if c["seed"] is not None]
    assert chunk.text == vectors.chunk_text(vector)
    assert [chunk.read_case(position)[3] for position in range(chunk.count)] == [
        case.get("observation") or "" for case in vector["cases"]
    ]


@pytest.mark.parametrize("piece", [1, 4, 5, 7, 1 << 18])
def test_frames_arrive_whole_in_whatever_pieces(piece: int) -> None:
    size = 300 if piece < 100 else 3_000_000
    frames = [(MESSAGE, b"{}"), (CHUNK, b"x" * 100), (MESSAGE, b""), (CHUNK, b"y" * size), (MESSAGE, b"[]")]
    data = b"".join(encode_frame(kind, payload) for kind, payload in frames)
    buffer = FrameBuffer()
    assert feed(buffer, data, piece) == frames
    assert buffer.is_empty()


def test_a_large_frame_does_not_keep_its_memory() -> None:
    buffer = FrameBuffer()
    assert len(feed(buffer, encode_frame(CHUNK, bytes(3_000_000)), 1 << 18)) == 1
    before = len(buffer.space())
    feed(buffer, encode_frame(CHUNK, bytes(3_000_000)), 1 << 18)
    buffer.shrink()
    assert len(buffer.space()) == before < 1 << 20


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (struct.pack("<IB", 0, 1), "a frame says that it has 0 bytes; 1 to 1073741824 are allowed"),
        (struct.pack("<IB", (1 << 30) + 1, 1), "a frame says that it has 1073741825 bytes"),
        (struct.pack("<IB", 1, 4), "a frame is of kind 4; 1 to 3 are known"),
    ],
)
def test_refuses_heads_that_no_frame_has(head: bytes, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        feed(FrameBuffer(), head, 5)


def test_messages_are_strict_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_message({"type": "x", "value": float("nan")})


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("café", b"caf\xc3\xa9"),
        ("\ud83d\ude00", "😀".encode()),
        ("half \ud83d", "half \ufffd".encode()),
        ("\ude00 half", "\ufffd half".encode()),
        ("\ud83dx\ud83d\ud83d\ude00", "\ufffdx\ufffd😀".encode()),
        ("a\x00b\n", b"a\x00b\n"),
    ],
)
def test_surrogates_become_valid_utf8(text: str, encoded: bytes) -> None:
    assert to_utf8(text) == encoded
