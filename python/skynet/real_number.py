"""What counts as a number where a metric gives one."""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import SupportsFloat, cast


class NotANumberError(ValueError):
    """Completes "the score …": what came instead of a finite real number."""


def real_number(value: object) -> float:
    """A real number as a float: `int`, `float`, `bool`, `numbers.Real`, numpy scalars and `Decimal`.

    Raises `NotANumberError` for NaN, the infinities, what does not fit a float, strings, `None`, complex numbers and
    arrays.
    """
    if type(value) is float:
        number = value
    elif isinstance(value, str) or not _is_real(value):
        raise NotANumberError("is None" if value is None else f"is of type {type(value).__name__}, not a number")
    else:
        number = _to_float(value)
    if not math.isfinite(number):
        raise NotANumberError(f"is {number}, which is not finite")
    return number


def named_number(name: str, value: object) -> float:
    """`value` as a float. Raises `ValueError` with its name and what to give, where it is no finite real number."""
    try:
        return real_number(value)
    except NotANumberError as error:
        raise ValueError(f"{name} {error}; give a finite number") from None


def positive_number(name: str, value: object) -> float:
    """The same, for what must be more than 0."""
    number = named_number(name, value)
    if number <= 0:
        raise ValueError(f"{name} is {number:g}; it must be more than 0")
    return number


def _is_real(value: object) -> bool:
    if isinstance(value, Real):
        return True
    decimal = sys.modules.get("decimal")
    if decimal is not None and isinstance(value, decimal.Decimal):
        return True
    # numpy's bool is no `Real`; its complex, text and date scalars are no numbers either.
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.bool_)


def _to_float(value: object) -> float:
    try:
        return float(cast(SupportsFloat, value))
    except OverflowError:
        raise NotANumberError("does not fit a float") from None
    except ValueError:
        # A signalling Decimal NaN.
        raise NotANumberError("is not finite") from None
