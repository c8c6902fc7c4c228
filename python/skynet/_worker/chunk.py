"""The cases of a `chunk` frame, as the sidecar packed them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from json import JSONDecodeError, JSONDecoder
from typing import Any

from skynet._worker.frames import ProtocolError

CHUNK_HEAD = struct.Struct("<IIB")
SEPARATOR = "\x1e"

# JSON's own blanks; `str.strip()` alone would take more.
BLANKS = " \t\n\r"

# Flags of a chunk.
SEEDS_FOLLOW = 1
WITH_OBSERVATIONS = 2


class InvalidCaseError(Exception):
    """The case itself cannot be scored; the text says where and why."""


class Chunk:
    """The head of a chunk and the still unread text of its cases. Keeps nothing of the payload that it is made from."""

    def __init__(self, payload: memoryview) -> None:
        if len(payload) < CHUNK_HEAD.size:
            raise ProtocolError(f"a chunk has {len(payload)} bytes; its head alone has {CHUNK_HEAD.size}")
        number, count, flags = CHUNK_HEAD.unpack_from(payload)
        has_seeds = flags & SEEDS_FOLLOW
        text_begins = CHUNK_HEAD.size + (8 * count if has_seeds else 0)
        if count < 1 or text_begins > len(payload):
            raise ProtocolError(f"chunk {number} says that it has {count} cases in {len(payload)} bytes")
        self.bytes = len(payload)
        self.number: int = number
        self.count: int = count
        self.seeds: tuple[int, ...] = struct.unpack_from(f"<{count}Q", payload, CHUNK_HEAD.size) if has_seeds else ()
        self.has_observations = bool(flags & WITH_OBSERVATIONS)
        self._parts: list[bytes] | list[str] | None = None
        # The whole text; empty where a byte of it is not UTF-8, so that each value has to be read on its own.
        self.text = ""
        try:
            self.text = str(payload[text_begins:], "utf-8")
        except UnicodeDecodeError:
            self._parts = bytes(payload[text_begins:]).split(SEPARATOR.encode())

    def read_case(self, position: int) -> tuple[object, object, object, str]:
        """Reads one case on its own: input, output, expected, and the unread observation (empty: none).

        Raises `InvalidCaseError` where that case is wrong.
        """
        case_input, output, expected, observation = self._values_of(position)
        return (
            _read_value("input", case_input),
            _read_value("output", output),
            _read_value("expected", expected) if expected else None,
            observation if isinstance(observation, str) else observation.decode(errors="replace"),
        )

    def read_run(self) -> tuple[object, object]:
        """Artifact and input of the one case of a run worker. Raises `InvalidCaseError`."""
        case_input, artifact, _, _ = self._values_of(0)
        return _read_value("artifact", artifact), _read_value("input", case_input)

    def _values_of(self, position: int) -> tuple[bytes | str, ...]:
        values = 4 if self.has_observations else 3
        parts = self._parts
        if parts is None:
            parts = self._parts = self.text.split(SEPARATOR)
        if len(parts) != values * self.count + 1 or parts[-1]:
            raise ProtocolError(f"chunk {self.number} does not hold {values} values for each of {self.count} cases")
        found = parts[values * position : values * (position + 1)]
        return (*found, "") if values == 3 else tuple(found)


def check_types(case_input: object, expected: object) -> None:
    """Raises `InvalidCaseError` where `input` is not an object, or `expected` neither an object nor null."""
    if not isinstance(case_input, dict):
        raise InvalidCaseError(f"input is {json_type(case_input)}; expected a JSON object of the case's input fields")
    if expected is not None and not isinstance(expected, dict):
        raise InvalidCaseError(
            f"expected is {json_type(expected)}; it must be a JSON object keyed by the Output columns, or null"
        )


def json_type(value: object) -> str:
    """How JSON calls a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


def _read_value(name: str, encoded: bytes | str) -> object:
    try:
        text = encoded if isinstance(encoded, str) else encoded.decode()
        value, end = scan_once(text, len(text) - len(text.lstrip(BLANKS)))
        rest = text[end:].lstrip(BLANKS)
        if rest:
            raise JSONDecodeError("Extra data", text, len(text) - len(rest))
        return value
    except UnicodeDecodeError as error:
        byte, position = error.object[error.start], error.start
        raise InvalidCaseError(
            f"{name} is not UTF-8: byte 0x{byte:02x} at position {position}; send JSON text in UTF-8"
        ) from None
    except StopIteration as error:
        raise _not_json(name, text, "Expecting value", error.value) from None
    except JSONDecodeError as error:
        raise _not_json(name, text, error.msg, error.pos) from None
    except RecursionError:
        raise InvalidCaseError(f"{name} is nested too deeply for Python to read; send flatter JSON") from None
    except ValueError as error:
        # Python refuses integers of more than 4300 digits.
        raise InvalidCaseError(f"{name} holds a number that Python refuses: {error}; send it as a string") from None


def _not_json(name: str, text: str, why: str, position: int) -> InvalidCaseError:
    found = "the end" if position >= len(text) else ascii(text[position])
    return InvalidCaseError(
        f"{name} is not JSON: {why.removesuffix(' at')} at position {position} (found {found}); send valid JSON text"
    )


# Bound before a metric can replace parts of `json`. Fails on leading blanks; accepts `NaN` as Python writes it.
scan_once: Callable[[str, int], tuple[Any, int]] = vars(JSONDecoder())["scan_once"]
