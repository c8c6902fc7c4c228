"""What the sidecar and the interpreters say to each other besides cases. The twin of `src/worker/messages.ts`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from skynet._worker.frames import ProtocolError

# What came of a model call: `answer` or `error`, with their fields as docs/worker-protocol.md lists them.
Reply = Mapping[str, Mapping[str, object]]


class Configure(NamedTuple):
    """What a process is to do. `kind` is `"metric"` or `"run"`, `file` the absolute path of what it loads.

    `environment` is set where not already set.
    """

    kind: str
    file: str
    start_method: str
    max_row_bytes: int
    environment: dict[str, str]


class Start(NamedTuple):
    worker: int
    # With which the worker shows that it is the one that was started.
    secret: str


class Environment(NamedTuple):
    """What a run worker's environment gets before its one chunk."""

    variables: dict[str, str]


class ModelAnswer(NamedTuple):
    """The reply to the model call of that number: it holds `answer` or `error`."""

    call: int
    reply: Reply


class Signal(NamedTuple):
    worker: int
    signal: int
    group: bool


class Stop(NamedTuple):
    pass


def parse(message: Mapping[str, object]) -> Configure | Start | Environment | ModelAnswer | Signal | Stop:
    """Reads what the sidecar sent. Raises `ProtocolError` for what is not in docs/worker-protocol.md."""
    kind = message["type"]
    try:
        if kind == "configure":
            if message["kind"] not in ("metric", "run") or message["start_method"] not in ("fork", "spawn"):
                raise TypeError("kind or start_method")
            return Configure(
                kind=_text(message["kind"]),
                # Paths are bytes to the system, UTF-8 on the wire, whatever this process's locale is.
                file=os.fsdecode(_text(message["file"]).encode()),
                start_method=_text(message["start_method"]),
                max_row_bytes=_number(message["max_row_bytes"]),
                environment=_texts(message["environment"]),
            )
        if kind == "start":
            return Start(_number(message["worker"]), _text(message["secret"]))
        if kind == "environment":
            return Environment(_texts(message["variables"]))
        if kind == "model_answer":
            name = "error" if "error" in message else "answer"
            reply = message[name]
            if not isinstance(reply, dict):
                raise TypeError(name)
            return ModelAnswer(_number(message["call"]), {name: reply})
        if kind == "signal":
            return Signal(_number(message["worker"]), _number(message["signal"]), message["group"] is True)
        if kind == "stop":
            return Stop()
    except (KeyError, TypeError) as error:
        raise ProtocolError(f'the message "{kind}" has a wrong or missing field: {error}') from error
    raise ProtocolError(f'the message "{kind}" is not known')


def hello(role: str, worker: int, secret: str = "") -> dict[str, object]:
    return {
        "type": "hello",
        "role": role,
        "worker": worker,
        "secret": secret,
        "pid": os.getpid(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable or "",
        "clock_ns": time.monotonic_ns(),
    }


def loaded(metric: Mapping[str, object], fork_hazards: list[str]) -> dict[str, object]:
    return {"type": "loaded", "metric": metric, "fork_hazards": fork_hazards}


def ready() -> dict[str, object]:
    return {"type": "ready"}


def started(worker: int, pid: int) -> dict[str, object]:
    return {"type": "started", "worker": worker, "pid": pid}


def start_failed(worker: int, error: str) -> dict[str, object]:
    return {"type": "start_failed", "worker": worker, "error": error}


def ended(worker: int, pid: int, exit_code: int | None, signal: int | None) -> dict[str, object]:
    return {"type": "ended", "worker": worker, "pid": pid, "exit_code": exit_code, "signal": signal}


def printed(stream: str, chunk: int, case: int | None, text: str) -> dict[str, object]:
    return {"type": "printed", "stream": stream, "chunk": chunk, "case": case, "text": text}


def model_call(call: int, chunk: int, case: int | None, question: Mapping[str, object]) -> dict[str, object]:
    """`question`: `messages`, `model`, `temperature`, `max_tokens`, `response_format` and `timeout_ms`."""
    return {"type": "model_call", "call": call, "chunk": chunk, "case": case, **question}


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return {_text(name): _text(item) for name, item in value.items()}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not an integer")
    return value
