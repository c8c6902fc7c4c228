"""How the user's function is called: `score` with two arguments, three, or `expected` by keyword; `run` with two."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import NamedTuple

from skynet._worker.texts import one_line

Score = Callable[[object, object, object], object]

EXPECTED_NAMES = frozenset({"expected", "gold", "target", "label", "reference", "answer"})

SHOWN_CHARACTERS = 500
SHOWN_NAME_CHARACTERS = 200


class SignatureError(Exception):
    """The function cannot be called as the contract says; the text names the signature found."""


class Signature(NamedTuple):
    """`call` takes input, output and expected, and passes on what `score` wants of them; or artifact and input."""

    call: Callable[..., object]
    arguments: int
    text: str
    is_async: bool
    warnings: tuple[str, ...]


def read_signature(score: object) -> Signature:
    """Finds out how `score` is called. Raises `SignatureError`."""
    if not callable(score):
        raise SignatureError(
            f"score is not a function but of type {type_name(score)}; "
            "define `def score(input, output, expected=None)` in the metric's file"
        )
    try:
        signature = inspect.signature(score)
    except Exception:
        # Some callables of C extensions tell nothing, and an object's `__getattr__` may raise anything: they get all
        # three.
        warning = "the signature of score cannot be read; it is called as score(input, output, expected)"
        return Signature(score, 3, "", is_async(score), (warning,))
    text = shown(signature)
    keyword_only = signature.parameters.get("expected")
    by_keyword = keyword_only is not None and keyword_only.kind is inspect.Parameter.KEYWORD_ONLY
    if not by_keyword and binds(signature, 1, 2, 3):
        return Signature(score, 3, text, is_async(score), odd_name(signature))
    if binds(signature, 1, 2, expected=3):
        return Signature(with_keyword(score), 3, text, is_async(score), ())
    if binds(signature, 1, 2):
        return Signature(with_two(score), 2, text, is_async(score), ())
    raise SignatureError(
        f"score{text} cannot be called as score(input, output, expected) nor as score(input, output); "
        "define `def score(input, output, expected=None)`"
    )


def read_run_signature(run: object) -> Signature:
    """Finds out whether `run` can be called as `run(artifact, input)`. Raises `SignatureError`."""
    define = "define `def run(artifact, input)`"
    if not callable(run):
        raise SignatureError(f"run is not a function but of type {type_name(run)}; {define}")
    try:
        signature = inspect.signature(run)
    except Exception:
        warning = "the signature of run cannot be read; it is called as run(artifact, input)"
        return Signature(run, 2, "", is_async(run), (warning,))
    text = shown(signature)
    if not binds(signature, 1, 2):
        raise SignatureError(f"run{text} cannot be called as run(artifact, input); {define}")
    is_swapped = list(signature.parameters)[:2] == ["input", "artifact"]
    warnings = (f"run{text} gets the artifact first and the input second; {define}",) if is_swapped else ()
    return Signature(run, 2, text, is_async(run), warnings)


def binds(signature: inspect.Signature, *arguments: object, **keywords: object) -> bool:
    """Whether a call with these arguments would be accepted. Only trying tells: a partial's parameters mislead."""
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        return False
    return True


def odd_name(signature: inspect.Signature) -> tuple[str, ...]:
    """A warning where the third parameter hardly means the expected values."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in signature.parameters.values() if parameter.kind in positional]
    if len(names) < 3 or names[2] in EXPECTED_NAMES:
        return ()
    return (
        f'the third parameter of score is called "{names[2]}" and gets the expected values; '
        'call it "expected" where it is meant to, or make it keyword-only where it is not',
    )


def shown(signature: inspect.Signature) -> str:
    """The signature as text; defaults may be of any length, and their `repr()` may raise."""
    try:
        text = one_line(str(signature))
    except Exception:
        return "(…)"
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


def with_keyword(score: Callable[..., object]) -> Score:
    return lambda case_input, output, expected: score(case_input, output, expected=expected)


def with_two(score: Callable[..., object]) -> Score:
    return lambda case_input, output, _expected: score(case_input, output)


def is_async(score: Callable[..., object]) -> bool:
    """Whether `score` is an `async def`, also within a partial or as a `__call__`. What a call returns decides."""
    while isinstance(score, functools.partial):
        score = score.func
    if inspect.isroutine(score):
        return inspect.iscoroutinefunction(score)
    # Its type tells without asking the object itself, whose `__getattr__` may raise.
    return inspect.iscoroutinefunction(type(score).__call__)


def type_name(value: object) -> str:
    """The name of a value's type in one line, whatever the type does to hide it."""
    name: str = vars(type)["__name__"].__get__(type(value))
    return one_line(name if len(name) <= SHOWN_NAME_CHARACTERS else name[:SHOWN_NAME_CHARACTERS] + "…")
