"""A double of the sidecar: listens in a private folder, starts a real template and talks to it and its workers."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from skynet._worker.chunk import CHUNK_HEAD, SEEDS_FOLLOW, WITH_OBSERVATIONS
from skynet._worker.frames import CHUNK, MESSAGE, ROWS, FrameBuffer, encode_frame, encode_message
from skynet._worker.outbox import NO_CASE, OUTBOX_BYTES, OUTBOX_HEAD, ROWS_OFFSET
from skynet._worker.rows import ROW_HEAD, ROWS_HEAD

PYTHON_DIR = Path(__file__).resolve().parent.parent
BOOT = (PYTHON_DIR / "skynet/_worker/boot.py").read_text(encoding="utf-8")
# No test waits longer than this for anything; far more than a loaded machine needs.
PATIENCE_SECONDS = 20.0

Message = dict[str, Any]


@dataclass(frozen=True)
class Row:
    position: int
    kind: int
    value: float
    metric_ms: float
    text: str
    detail: str
    side_info: str


@dataclass(frozen=True)
class Rows:
    chunk: int
    finished: bool
    metric_ns: int
    cpu_ns: int
    wait_ns: int
    rows: list[Row]


@dataclass
class Peer:
    """One process's connection, and what it has said."""

    sock: socket.socket
    buffer: FrameBuffer = field(default_factory=FrameBuffer)
    hello: Message = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    is_open: bool = True

    def send_message(self, message: Message) -> None:
        self.sock.sendall(encode_message(message))

    def send_chunk(self, number: int, cases: Sequence[tuple[bytes, ...]], seeds: Sequence[int] = ()) -> None:
        self.sock.sendall(encode_chunk(number, cases, seeds))

    def answer(self, call: int, text: str, **fields: object) -> None:
        """Answers a model call."""
        answer = {"text": text, "model": "m", "usage": None, "cost_usd": None, "cost_not_known_reason": ""}
        self.send_message({"type": "model_answer", "call": call, "answer": {**answer, **fields}})

    def refuse(self, call: int, message: str, **fields: object) -> None:
        """Answers a model call with an error."""
        empty = {"provider_message": "", "finish_reason": "", "request_id": "", "text": ""}
        error = {"message": message, "status": None, **empty, "usage": None, "cost_usd": None}
        self.send_message({"type": "model_answer", "call": call, "error": {**error, **fields}})

    def of_type(self, kind: str) -> list[Message]:
        return [message for message in self.messages if message["type"] == kind]

    def all_rows(self, chunk: int) -> list[Row]:
        return [row for rows in self.rows if rows.chunk == chunk for row in rows.rows]

    def has_finished(self, chunk: int) -> bool:
        return any(rows.finished for rows in self.rows if rows.chunk == chunk)

    def printed(self, stream: str = "stdout") -> str:
        return "".join(message["text"] for message in self.of_type("printed") if message["stream"] == stream)


class FakeSidecar:
    """Use as a context manager: leaving it closes every connection and waits for the template's end."""

    def __init__(self, python: str = sys.executable, environment: dict[str, str] | None = None) -> None:
        self.folder = tempfile.mkdtemp(prefix="skynet-")
        self._listener = _listen(os.path.join(self.folder, "s"))
        self._life = _listen(os.path.join(self.folder, "life"))
        self._lives: list[socket.socket] = []
        self.peers: list[Peer] = []
        self._logs: dict[str, int] = {}
        self.logged: dict[str, bytes] = {}
        self.process = subprocess.Popen(
            [python, "-c", BOOT, str(PYTHON_DIR), self.folder, "template", "0"],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
        )

    def __enter__(self) -> FakeSidecar:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.hang_up()
        try:
            self.process.wait(PATIENCE_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def hang_up(self) -> None:
        """What the system does when a sidecar dies."""
        for sock in [self._listener, self._life, *self._lives, *(peer.sock for peer in self.peers)]:
            sock.close()
        for descriptor in self._logs.values():
            os.close(descriptor)
        self._lives.clear()
        self.peers.clear()
        self._logs.clear()

    def until(self, is_so: Callable[[], object], what: str = "") -> None:
        """Reads whatever comes until `is_so`. Fails after a bounded time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(
                    f"waited {PATIENCE_SECONDS} s in vain {what}; the template's exit code: {self.process.poll()}; "
                    f"logged: {self.logged}; said: {[(peer.is_open, peer.messages) for peer in self.peers]}"
                )
            self._read_once(min(left, 0.05))

    def configure(self, file: Path | str, start_method: str = "fork", **settings: object) -> Message:
        """Configures the template (waiting for its hello), and returns the `loaded` or `ready` that it answers."""
        self.until(lambda: self.template is not None, "for the template's hello")
        self.settings = {
            "type": "configure",
            "kind": "metric",
            "file": str(file),
            "start_method": start_method,
            "max_row_bytes": 1 << 20,
            "environment": {},
            **settings,
        }
        template = self.template
        assert template is not None
        template.send_message(self.settings)
        answer = "loaded" if start_method == "fork" else "ready"
        self.until(lambda: template.of_type(answer), f"for {answer}")
        return template.of_type(answer)[0]

    @property
    def template(self) -> Peer | None:
        return next((peer for peer in self.peers if peer.hello.get("role") == "template"), None)

    def worker(self, number: int) -> Peer | None:
        return next((peer for peer in self.peers if peer.hello.get("worker") == number), None)

    def start(self, number: int = 1) -> Peer:
        """Starts a worker and waits until it is ready."""
        template = self.template
        assert template is not None
        template.send_message({"type": "start", "worker": number, "secret": f"s-{number}"})
        self.until(lambda: self.worker(number), f"for worker {number}")
        worker = self.worker(number)
        assert worker is not None
        if self.settings["start_method"] == "spawn":
            worker.send_message(self.settings)
        self.until(lambda: worker.of_type("ready"), f"for worker {number} to be ready")
        return worker

    def score(
        self, worker: Peer, cases: Sequence[tuple[bytes, ...]], seeds: Sequence[int] = (), number: int = 1
    ) -> list[Row]:
        """Scores one chunk and returns its rows in the order of the cases."""
        worker.send_chunk(number, cases, seeds)
        self.until(lambda: worker.has_finished(number), f"for chunk {number}")
        return sorted(worker.all_rows(number), key=lambda row: row.position)

    def run(self, number: int, artifact: object, case_input: object = None, **variables: str) -> Row:
        """Starts a run worker, has it make its run, and returns the one row with which it answers."""
        worker = self.start(number)
        worker.send_message({"type": "environment", "variables": variables})
        (row,) = self.score(worker, [(json.dumps(case_input or {}).encode(), json.dumps(artifact).encode())])
        return row

    def signal(self, number: int, signal_number: int = signal.SIGINT, group: bool = False) -> None:
        template = self.template
        assert template is not None
        template.send_message({"type": "signal", "worker": number, "signal": int(signal_number), "group": group})

    def ended(self, number: int) -> Message:
        """Waits for the worker's end."""
        template = self.template
        assert template is not None

        def ends() -> list[Message]:
            return [message for message in template.of_type("ended") if message["worker"] == number]

        self.until(ends, f"for worker {number} to end")
        return ends()[0]

    def outbox(self, number: int) -> tuple[int | None, int, list[Row]]:
        """Position of the case in hand, chunk, finished rows."""
        with open(os.path.join(self.folder, f"w{number}.box"), "rb") as file:
            content = file.read(OUTBOX_BYTES)
        position, size, _, chunk = OUTBOX_HEAD.unpack_from(content)
        rows = list(decode_rows(content[ROWS_OFFSET : ROWS_OFFSET + size]))
        return (None if position == NO_CASE else position), chunk, rows

    def _read_once(self, timeout: float) -> None:
        for name in os.listdir(self.folder) if os.path.isdir(self.folder) else []:
            if name.endswith(".out") and name not in self._logs:
                self._logs[name] = os.open(os.path.join(self.folder, name), os.O_RDWR | os.O_NONBLOCK)
        peers = {peer.sock.fileno(): peer for peer in self.peers if peer.is_open}
        logs = {descriptor: name for name, descriptor in self._logs.items()}
        descriptors = [self._listener.fileno(), self._life.fileno(), *peers, *logs]
        readable, _, _ = select.select(descriptors, [], [], timeout)
        for descriptor in readable:
            if descriptor == self._listener.fileno():
                self.peers.append(Peer(self._listener.accept()[0]))
            elif descriptor == self._life.fileno():
                self._lives.append(self._life.accept()[0])
            elif descriptor in logs:
                name = logs[descriptor]
                self.logged[name] = self.logged.get(name, b"") + os.read(descriptor, 65536)
            else:
                _read(peers[descriptor])


def encode_chunk(number: int, cases: Sequence[tuple[bytes, ...]], seeds: Sequence[int] = ()) -> bytes:
    """Cases are (input, output), with expected, or with expected and observation, JSON text each."""
    observed = any(len(case) == 4 for case in cases)
    flags = (SEEDS_FOLLOW if seeds else 0) | (WITH_OBSERVATIONS if observed else 0)
    head = CHUNK_HEAD.pack(number, len(cases), flags) + struct.pack(f"<{len(seeds)}Q", *seeds)
    values = [value for case in cases for value in (*case, b"", b"")[: 4 if observed else 3]]
    return encode_frame(CHUNK, head, *(value + b"\x1e" for value in values))


def decode_rows(encoded: bytes) -> Iterator[Row]:
    begin = 0
    while begin < len(encoded):
        position, kind, value, metric_ms, *lengths = ROW_HEAD.unpack_from(encoded, begin)
        begin += ROW_HEAD.size
        texts = []
        for length in lengths:
            texts.append(encoded[begin : begin + length].decode())
            begin += length
        yield Row(position, kind, value, metric_ms, *texts)


def _listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(64)
    return listener


def _read(peer: Peer) -> None:
    try:
        count = peer.sock.recv_into(peer.buffer.space())
    except ConnectionResetError:
        count = 0
    peer.buffer.filled(count)
    peer.is_open = count > 0
    while (frame := peer.buffer.next_frame()) is not None:
        kind, payload = frame
        if kind == MESSAGE:
            message = json.loads(bytes(payload))
            if message["type"] == "hello":
                peer.hello = message
            peer.messages.append(message)
        elif kind == ROWS:
            chunk, count, finished, metric_ns, cpu_ns, wait_ns = ROWS_HEAD.unpack_from(payload)
            rows = list(decode_rows(bytes(payload[ROWS_HEAD.size :])))
            assert len(rows) == count
            peer.rows.append(Rows(chunk, bool(finished), metric_ns, cpu_ns, wait_ns, rows))
