"""What an engine and the log are told of an exception that the metric raised."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from types import TracebackType

from skynet._worker.frames import to_utf8
from skynet._worker.signature import type_name
from skynet._worker.texts import one_line

MESSAGE_BYTES = 4096
TRACEBACK_BYTES = 65536
# Of a traceback that is too long, what is nearest to the fault matters most.
TRACEBACK_HEAD_BYTES = 16384

# The files whose frames stand between a process's start and the user's code.
OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
CALLING = frozenset(
    OWN_FOLDER + name for name in ("awaiting.py", "loading.py", "run_worker.py", "signature.py", "worker.py")
)


def exception_message(error: BaseException, folder: str) -> str:
    """One exception for an engine: `KeyError: 'label' (metric.py, line 12)`.

    Type and message, the file's name and the line of the innermost frame within `folder`, else of the innermost one,
    in one line; no path or line of source but what the exception's own text quotes.
    """
    place = _syntax_place(error)
    if place is not None:
        return _with_place(f"{type_name(error)}: {place[0]}", *place[1:])
    what = exception_summary(error).replace(OWN_FOLDER, "")
    innermost = _innermost(metric_part(_traceback_of(error)), folder)
    return cut(what, MESSAGE_BYTES) if innermost is None else _with_place(what, *innermost)


def exception_summary(error: BaseException) -> str:
    """Type and text: `KeyError: 'label'`, or the type alone where there is no text."""
    name, text = type_name(error), exception_text(error)
    return f"{name}: {text}" if text else name


def exception_text(error: BaseException) -> str:
    """`str(error)`, also where that raises."""
    try:
        return str.__str__(str(error))
    except BaseException as second:
        return f"<str() of it raised {type_name(second)}>"


def traceback_text(error: BaseException) -> bytes:
    """The whole traceback, UTF-8, its middle cut out where it takes more than 64 KiB."""
    try:
        lines = traceback.format_exception(type(error), error, metric_part(_traceback_of(error)))
        encoded = to_utf8("".join(lines))
    except BaseException as second:
        encoded = to_utf8(f"{type_name(error)} (its traceback cannot be shown: {type_name(second)})\n")
    if len(encoded) <= TRACEBACK_BYTES:
        return encoded
    mark = f"\n… (cut: {len(encoded)} bytes in all) …\n".encode()
    tail = TRACEBACK_BYTES - TRACEBACK_HEAD_BYTES - len(mark)
    head_text = encoded[:TRACEBACK_HEAD_BYTES].decode(errors="ignore")
    return head_text.encode() + mark + encoded[-tail:].decode(errors="ignore").encode()


def cut(text: str, limit: int) -> str:
    """`text` in one line where its UTF-8 has at most `limit` bytes, else its beginning and a mark that says so."""
    encoded = to_utf8(text)
    if len(encoded) <= limit:
        return one_line(encoded.decode())
    mark = f" … (cut: {len(encoded)} bytes in all)"
    return one_line(encoded[: limit - len(mark.encode())].decode(errors="ignore")) + mark


def metric_part(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from where the frames that call the user's code, and those of an event loop among them, end."""
    begin = trace
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in CALLING:
            begin = trace.tb_next
        trace = trace.tb_next
    return begin


def remember_source(path: str, source: bytes) -> None:
    """Lets tracebacks quote the source that was loaded, whatever becomes of the file."""
    lines = source.decode(errors="replace").splitlines(keepends=True)
    linecache.cache[path] = (len(source), None, lines, path)


def is_own_file(path: str, folder: str) -> bool:
    """Whether `path` is a file of the metric's author in `folder`, and not of a package installed below it."""
    if not path.startswith(folder + os.sep):
        return False
    if os.sep + "site-packages" + os.sep in path or os.sep + "dist-packages" + os.sep in path:
        return False
    return not any(path.startswith(prefix + os.sep) for prefix in {sys.prefix, sys.base_prefix} if len(prefix) > 1)


def _traceback_of(error: BaseException) -> TracebackType | None:
    """The exception's own class may do anything when it is asked."""
    trace: TracebackType | None = vars(BaseException)["__traceback__"].__get__(error)
    return trace


def _syntax_place(error: BaseException) -> tuple[str, str, int] | None:
    """What a `SyntaxError` says, and the file's name and the line where it says that; `None` where it does not."""
    if not issubclass(type(error), SyntaxError):
        return None
    try:
        message, path, line = (vars(SyntaxError)[name].__get__(error) for name in ("msg", "filename", "lineno"))
        return (str(message), os.path.basename(os.fspath(path)), int(line or 0)) if path else None
    except Exception:
        # Whoever raises one may put anything there.
        return None


def _with_place(what: str, file: str, line: int) -> str:
    place = f" ({one_line(file)}, line {line})"
    return cut(what, MESSAGE_BYTES - len(to_utf8(place))) + place


def _innermost(trace: TracebackType | None, folder: str) -> tuple[str, int] | None:
    innermost: tuple[str, int] | None = None
    own: tuple[str, int] | None = None
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        # A frame that was never traced to a line has None there since 3.11.
        innermost = (os.path.basename(path), trace.tb_lineno or 0)
        if is_own_file(path, folder):
            own = innermost
        trace = trace.tb_next
    return own or innermost
