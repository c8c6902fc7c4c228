"""What a metric may return, and how it is told that it returned something else."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import lru_cache
from numbers import Integral

from skynet._worker.exceptions import exception_summary
from skynet._worker.frames import to_utf8
from skynet._worker.signature import type_name
from skynet.real_number import NotANumberError, real_number

EXAMPLE = 'such as: return 0.5, {"feedback": "Close. Missing the date."}'
FEEDBACK_EXAMPLE = 'such as {"feedback": "Close. Missing the date."}'

# Deeper side info is cut: readers of JSON in other languages have limits of their own.
MAX_DEPTH = 64
SHOWN_KEYS = 10
SHOWN_KEY_CHARACTERS = 40


class ReturnValueError(Exception):
    """The metric returned something else than the contract says; the text tells what."""


def read_return_value(returned: object) -> tuple[float, tuple[bytes, bytes, bytes]]:
    """Score, and as UTF-8 the feedback, the named scores and the other side info. Raises `ReturnValueError`."""
    try:
        return _read(returned)
    except (ReturnValueError, KeyboardInterrupt):
        raise
    except Exception as error:
        # A Mapping or a number of the metric's own may raise while it is read.
        raise ReturnValueError(
            f"what score returned cannot be read, {exception_summary(error)}; return plain Python values, " + EXAMPLE
        ) from error


def _read(returned: object) -> tuple[float, tuple[bytes, bytes, bytes]]:
    score, side_info = _pair(returned)
    try:
        value = real_number(score)
    except NotANumberError as error:
        raise ReturnValueError(f"the score {error}; return a finite number, {EXAMPLE}") from None
    if not isinstance(side_info, (dict, Mapping)):
        raise ReturnValueError(
            f'the side info is {a_type(side_info)}; return a dict with a "feedback" string, {FEEDBACK_EXAMPLE}'
        )
    others = side_info.copy() if type(side_info) is dict else dict(side_info.items())
    feedback = others.pop("feedback", None)
    if not isinstance(feedback, str):
        raise ReturnValueError(_no_feedback(side_info))
    named = _named_scores(others.pop("scores")) if "scores" in others else b""
    return value, (to_utf8(str.__str__(feedback)), named, to_utf8(to_json(others)) if others else b"")


def _pair(returned: object) -> tuple[object, object]:
    if not isinstance(returned, (tuple, list)):
        raise ReturnValueError(f"score returned {a_type(returned)}; expected a pair of score and side info, {EXAMPLE}")
    if len(returned) != 2:
        count = f"{len(returned)} items" if len(returned) != 1 else "1 item"
        raise ReturnValueError(
            f"score returned {a_type(returned)} of {count}; expected a pair of score and side info, {EXAMPLE}"
        )
    return returned[0], returned[1]


def _no_feedback(side_info: Mapping[object, object]) -> str:
    keys = list(side_info)
    if "feedback" in keys:
        came = f'its "feedback" is {a_type(side_info["feedback"])}'
    elif keys:
        came = f"it has the key{'s' if len(keys) > 1 else ''} {_shown(keys)}"
    else:
        came = "it is empty"
    return f'the side info has no "feedback" string; {came}; add one, {FEEDBACK_EXAMPLE}'


def _named_scores(scores: object) -> bytes:
    advice = 'map names to finite numbers, such as {"format": 1.0}'
    if not isinstance(scores, (dict, Mapping)):
        raise ReturnValueError(f'"scores" in the side info is {a_type(scores)}; {advice}')
    pairs: list[str] = []
    for name, score in scores.items():
        if not isinstance(name, str):
            raise ReturnValueError(f'a name in "scores" is {a_type(name)}, {_shown([name])}; {advice}')
        try:
            number = score if type(score) is float and score - score == 0.0 else real_number(score)
            pairs.append(f"[{_encoded_name(str.__str__(name))},{number!r}]")
        except NotANumberError as error:
            raise ReturnValueError(f"the named score {_shown([name])} {error}; {advice}") from None
    return to_utf8(f"[{','.join(pairs)}]") if pairs else b""


@lru_cache(maxsize=1024)
def _encoded_name(name: str) -> str:
    """A metric has few names for its scores, and uses them in every case."""
    return json_encode(name)


def to_json(value: object) -> str:
    """JSON text of any value: what JSON cannot hold is its `str()`, and NaN and the infinities are strings."""
    return json_encode(_plain(value, []))


def a_type(value: object) -> str:
    """How a message calls a value: `None`, else its type with an article."""
    if value is None:
        return "None"
    name = type_name(value)
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def _plain(value: object, path: list[int]) -> object:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral):
        return _plain_int(int(value))
    if isinstance(value, float):
        number = float(value)
        return number if number - number == 0.0 else str(number)
    if isinstance(value, (Mapping, list, tuple)):
        return _plain_container(value, path)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
        plain = value.tolist()
        return safe_str(value) if isinstance(plain, numpy.generic) else _plain(plain, path)
    return safe_str(value)


def _plain_int(number: int) -> object:
    try:
        int.__repr__(number)
    except ValueError:
        return f"<an int of {number.bit_length()} bits>"
    return number


def _plain_container(value: Mapping[object, object] | list[object] | tuple[object, ...], path: list[int]) -> object:
    if id(value) in path:
        return "<cycle>"
    if len(path) >= MAX_DEPTH:
        return f"<nested more than {MAX_DEPTH} levels deep>"
    path.append(id(value))
    try:
        if isinstance(value, Mapping):
            return {
                str.__str__(key) if isinstance(key, str) else safe_str(key): _plain(item, path)
                for key, item in value.items()
            }
        return [_plain(item, path) for item in value]
    finally:
        path.pop()


def safe_str(value: object) -> str:
    """`str(value)`, also where that raises."""
    try:
        return str.__str__(str(value))
    except Exception as error:
        return f"<{a_type(value)} whose str() raised {type_name(error)}>"


def _shown(keys: list[object]) -> str:
    shown = [shown_key(key) for key in keys[:SHOWN_KEYS]]
    return ", ".join(shown) + (f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else "")


def shown_key(key: object) -> str:
    """A dict's key as a message quotes it."""
    text = safe_str(key)
    text = text if len(text) <= SHOWN_KEY_CHARACTERS else text[:SHOWN_KEY_CHARACTERS] + "…"
    return json_encode(text) if isinstance(key, str) else text


# A metric that replaces parts of `json` changes nothing here.
json_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
