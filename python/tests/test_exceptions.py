from __future__ import annotations

import pytest

from skynet._worker.exceptions import (
    OWN_FOLDER,
    cut,
    exception_message,
    is_own_file,
    metric_part,
    remember_source,
    traceback_text,
)
from skynet._worker.faults import describe_fault
from skynet._worker.rows import METRIC_EXCEPTION

FOLDER = "/srv/metric"


def raised_by(source: str, path: str = f"{FOLDER}/metric.py", **names: object) -> BaseException:
    """What running the source, as if it stood in a file, raises."""
    remember_source(path, source.encode())
    try:
        exec(compile(source, path, "exec"), dict(names))
    except BaseException as error:
        # The frame of this function.
        return error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{}['label']", "KeyError: 'label' (metric.py, line 1)"),
        ("\nassert False", "AssertionError (metric.py, line 2)"),
        ("assert False, 'a\\nb\\0c'", "AssertionError: a b c (metric.py, line 1)"),
        (
            "raise ValueError('a\\r\\n\\tb\\x1b[31mc\\x85d\\u2028e\\u2029f\\x7f\\x9b')",
            "ValueError: a   b [31mc d e f   (metric.py, line 1)",
        ),
        ("raise type('Two\\nlines\\x1b', (Exception,), {})('x')", "Two lines : x (metric.py, line 1)"),
        ("raise type('L' * 1000, (Exception,), {})('x')", f"{'L' * 200}…: x (metric.py, line 1)"),
        ("raise SyntaxError('one\\ntwo', ('/a/b\\n.py', 3, None, None))", "SyntaxError: one two (b .py, line 3)"),
        ("raise SyntaxError('odd', (object(), 3, None, None))", "SyntaxError: odd (line 3) (metric.py, line 1)"),
        ("raise SystemExit", "SystemExit (metric.py, line 1)"),
        ("class Own(Exception): pass\nraise Own('caf\\u00e9 \\ud83d')", "Own: café \ufffd (metric.py, line 2)"),
    ],
)
def test_a_message_has_type_text_file_and_line(source: str, message: str) -> None:
    assert exception_message(raised_by(source), FOLDER) == message


def test_the_line_is_the_innermost_one_of_the_metrics_own_files() -> None:
    def library() -> None:
        raised_by("1/0", "/usr/lib/python3/somewhere/library.py")
        raise ValueError("deep in a library")

    error = raised_by("\n\nlibrary()", library=library)
    assert exception_message(error, FOLDER) == "ValueError: deep in a library (metric.py, line 3)"
    elsewhere = exception_message(error, "/another/folder")
    assert elsewhere.startswith("ValueError: deep in a library (test_exceptions.py, line ")


def test_an_exception_whose_text_raises_is_told_all_the_same() -> None:
    source = "class Bad(Exception):\n    def __str__(self): raise RuntimeError('no')\nraise Bad()"
    assert exception_message(raised_by(source), FOLDER) == "Bad: <str() of it raised RuntimeError> (metric.py, line 3)"
    assert b"Bad" in traceback_text(raised_by(source))


SHY = """
class Shy(Exception):
    def __getattribute__(self, name):
        raise RuntimeError(name)
raise Shy("hidden")
"""


def test_an_exception_that_tells_nothing_of_itself_is_told_all_the_same() -> None:
    try:
        exec(compile(SHY, f"{FOLDER}/metric.py", "exec"), {})
    except Exception as shy:
        kind, texts = describe_fault(shy, FOLDER)
        assert (kind, texts[0]) == (METRIC_EXCEPTION, b"Shy: hidden (metric.py, line 5)")
        assert b"Shy" in texts[1]


def test_a_metaclass_cannot_hide_the_types_name() -> None:
    source = """
class Meta(type):
    @property
    def __name__(cls): raise RuntimeError("no")
class Own(Exception, metaclass=Meta): pass
raise Own("x")
"""
    assert exception_message(raised_by(source), FOLDER) == "Own: x (metric.py, line 6)"


def test_paths_of_the_workers_own_files_are_left_out() -> None:
    text = f"<coro=<_result_of() running at {OWN_FOLDER}awaiting.py:59>>"
    assert exception_message(raised_by(f"raise RuntimeError({text!r})"), FOLDER) == (
        "RuntimeError: <coro=<_result_of() running at awaiting.py:59>> (metric.py, line 1)"
    )


def test_a_long_message_is_cut_with_a_mark() -> None:
    message = exception_message(raised_by("raise ValueError('é' * 500_000)"), FOLDER)
    assert len(message.encode()) <= 4096
    assert message.startswith("ValueError: éééé")
    assert message.endswith(" … (cut: 1000012 bytes in all) (metric.py, line 1)")


def test_a_long_traceback_keeps_both_ends() -> None:
    encoded = traceback_text(raised_by("raise ValueError('x' * 500_000 + 'end')"))
    assert len(encoded) <= 65536
    text = encoded.decode()
    assert text.startswith("Traceback (most recent call last):")
    assert text.endswith("end\n")
    assert "… (cut: 500" in text


def test_a_traceback_quotes_the_source_and_chains() -> None:
    text = traceback_text(raised_by("try:\n    1/0\nexcept Exception as e:\n    raise KeyError('x') from e")).decode()
    assert "ZeroDivisionError: division by zero" in text
    assert "raise KeyError('x') from e" in text
    assert f'File "{FOLDER}/metric.py", line 4' in text


def test_the_workers_own_frames_are_left_out() -> None:
    from skynet._worker.signature import with_two

    def fails(_input: object, _output: object) -> None:
        raise LookupError("x")

    try:
        with_two(fails)(1, 2, 3)
    except LookupError as error:
        part = metric_part(error.__traceback__)
    assert part is not None
    assert part.tb_frame.f_code.co_name == "fails"


def test_an_exception_without_a_frame_of_the_metrics_has_no_place() -> None:
    assert exception_message(TypeError("score() takes 2 arguments"), FOLDER) == "TypeError: score() takes 2 arguments"


def test_installed_packages_are_not_the_authors_files() -> None:
    assert is_own_file(f"{FOLDER}/metric.py", FOLDER)
    assert is_own_file(f"{FOLDER}/parts/one.py", FOLDER)
    assert not is_own_file(f"{FOLDER}/.venv/lib/python3.12/site-packages/numpy/__init__.py", FOLDER)
    assert not is_own_file("/srv/metrics.py", FOLDER)
    assert not is_own_file("<string>", FOLDER)


@pytest.mark.parametrize("text", ["", "short", "é" * 50])
def test_what_fits_is_not_cut(text: str) -> None:
    assert cut(text, 100) == text


def test_a_cut_never_splits_a_character() -> None:
    for limit in range(60, 70):
        assert len(cut("é" * 100, limit).encode()) <= limit
