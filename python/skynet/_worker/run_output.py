"""What `run(artifact, input)` may return, and how it is told that it returned something else."""

from __future__ import annotations

import json
from collections.abc import Iterator

from skynet._worker.frames import to_utf8
from skynet._worker.return_value import MAX_DEPTH, ReturnValueError, a_type, shown_key

ADVICE = (
    "return what JSON can hold: dicts with string keys, lists, strings, finite numbers, booleans and None "
    "(an array by its .tolist(), another object as a dict)"
)


def encode_output(output: object) -> bytes:
    """The output as JSON in UTF-8, tuples as lists. Raises `ReturnValueError` for what JSON cannot hold."""
    try:
        return to_utf8(json_encode(output))
    except Exception:
        where, what = next(_unfit(output, "output", 0), ("output", "something that cannot be written"))
        came = f"run returned {a_type(output)}" + ("" if where == "output" else f", in which {where} is {what}")
        if where == "output" and what != a_type(output):
            came = f"run returned {what}"
        # The message says it all; a traceback would show this package's inside, and none of the run code.
        raise ReturnValueError(f"{came}, which JSON cannot hold; {ADVICE}") from None


def _unfit(value: object, where: str, depth: int) -> Iterator[tuple[str, str]]:
    """Where something stands that JSON cannot hold, and what it is."""
    if value is None or isinstance(value, (bool, str)):
        return
    if isinstance(value, float):
        if value - value != 0.0:
            yield where, str(float(value))
    elif isinstance(value, int):
        try:
            int.__repr__(value)
        except ValueError:
            yield where, f"an int of {int(value).bit_length()} bits"
    elif not isinstance(value, (dict, list, tuple)):
        yield where, a_type(value)
    elif depth > MAX_DEPTH:
        yield where, "nested too deeply, or holds itself"
    elif isinstance(value, dict):
        for key, item in value.items():
            if key is not None and not isinstance(key, (str, int, float)):
                yield where, f"a dict with a key of type {type(key).__name__}"
            yield from _unfit(item, f"{where}[{shown_key(key)}]", depth + 1)
    else:
        for position, item in enumerate(value):
            yield from _unfit(item, f"{where}[{position}]", depth + 1)


# Run code that replaces parts of `json` changes nothing here.
json_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
