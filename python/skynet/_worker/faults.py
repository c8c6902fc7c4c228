"""Why a case has no result, as a row tells it."""

from __future__ import annotations

from skynet._worker.chunk import InvalidCaseError
from skynet._worker.exceptions import MESSAGE_BYTES, cut, exception_message, traceback_text
from skynet._worker.frames import to_utf8
from skynet._worker.return_value import ReturnValueError
from skynet._worker.rows import INVALID_CASE, METRIC_EXCEPTION, METRIC_RETURN_VALUE


def describe_fault(error: BaseException, folder: str) -> tuple[int, tuple[bytes, bytes, bytes]]:
    """Kind and texts of the row for what was raised. `folder` holds the user's file."""
    # Asked of its type: an exception of the user's may raise another one when it is asked itself.
    if issubclass(type(error), InvalidCaseError):
        return INVALID_CASE, (to_utf8(str(error)), b"", b"")
    if issubclass(type(error), ReturnValueError):
        cause = traceback_text(error.__cause__) if error.__cause__ else b""
        return METRIC_RETURN_VALUE, (to_utf8(cut(str(error), MESSAGE_BYTES)), cause, b"")
    return METRIC_EXCEPTION, (to_utf8(exception_message(error, folder)), traceback_text(error), b"")
