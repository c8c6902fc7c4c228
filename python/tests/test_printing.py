from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from skynet._worker.printing import PIECE_CHARACTERS, PrintedText, Printer


class Log:
    """Collects what is sent."""

    def __init__(self) -> None:
        self.messages: list[dict[str, object]] = []
        self.printer = Printer(self.messages.append)
        self.stdout = PrintedText(self.printer, "stdout", 1)
        self.stderr = PrintedText(self.printer, "stderr", 2)

    @property
    def texts(self) -> list[tuple[object, object]]:
        return [(message["stream"], message["text"]) for message in self.messages]


@pytest.fixture
def log() -> Log:
    return Log()


def test_whole_lines_go_out_at_once_with_their_case(log: Log) -> None:
    log.printer.attach(log.messages.append, lambda: (3, 7))
    print("one", 2, file=log.stdout)
    assert log.messages == [{"type": "printed", "stream": "stdout", "chunk": 3, "case": 7, "text": "one 2\n"}]


def test_unfinished_lines_wait_for_their_end_or_a_flush(log: Log) -> None:
    print("a", end="", file=log.stdout)
    print("b", end="", file=log.stdout)
    assert (log.texts, log.printer.unfinished) == ([], ["a", "b"])
    print("c\nd", end="", file=log.stdout)
    assert log.texts == [("stdout", "abc\n")]
    log.stdout.flush()
    assert log.texts[1:] == [("stdout", "d")]


def test_the_two_streams_keep_their_order(log: Log) -> None:
    print("out", end="", file=log.stdout)
    print("err", file=log.stderr)
    print("out again", file=log.stdout)
    assert log.texts == [("stdout", "out"), ("stderr", "err\n"), ("stdout", "out again\n")]


def test_megabytes_go_out_in_bounded_pieces_of_whole_lines(log: Log) -> None:
    text = "".join(f"{index} 😀\n" for index in range(100_000))
    log.stdout.write(text)
    pieces = [str(message["text"]) for message in log.messages]
    assert "".join(pieces) == text
    assert all(len(piece.encode()) <= 65536 and piece.endswith("\n") for piece in pieces)


def test_a_line_without_end_goes_out_in_pieces(log: Log) -> None:
    for _ in range(100):
        log.stdout.write("x" * 1000)
    log.stdout.flush()
    assert sum(len(str(message["text"])) for message in log.messages) == 100_000
    assert max(len(str(message["text"])) for message in log.messages) <= PIECE_CHARACTERS
    assert len(log.messages) > 3


def test_bytes_become_text_also_where_a_character_is_split(log: Log) -> None:
    log.stdout.buffer.write(b"caf\xc3")
    log.stdout.buffer.write(b"\xa9 \xff\n")
    assert log.texts == [("stdout", "café \ufffd\n")]


def test_it_behaves_as_a_text_stream(log: Log) -> None:
    assert log.stdout.write("x") == 1
    assert (log.stdout.encoding, log.stdout.isatty(), log.stdout.fileno(), log.stderr.fileno()) == (
        "utf-8",
        False,
        1,
        2,
    )
    log.stdout.reconfigure(line_buffering=False)
    log.stdout.close()
    print("still open", file=log.stdout)
    assert log.texts == [("stdout", "x"), ("stdout", "still open\n")]
    not_text: Any = b"x"
    with pytest.raises(TypeError, match="must be str, not bytes"):
        log.stdout.write(not_text)


def test_threads_do_not_tear_each_others_lines(log: Log) -> None:
    def many(name: str) -> None:
        for index in range(500):
            log.stdout.write(f"{name} {index}\n")

    threads = [threading.Thread(target=many, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = "".join(str(message["text"]) for message in log.messages).splitlines()
    assert sorted(lines) == sorted(f"{name} {index}" for name in "abcd" for index in range(500))


def test_a_fork_writes_to_the_descriptors(log: Log) -> None:
    reader, writer = os.pipe()
    saved = os.dup(1)
    try:
        os.dup2(writer, 1)
        log.printer.use_descriptors()
        print("from a fork \ud83d", file=log.stdout)
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"from a fork \\ud83d\n"
    assert log.messages == []
