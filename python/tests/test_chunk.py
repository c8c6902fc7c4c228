from __future__ import annotations

import pytest
from fake_sidecar import encode_chunk

from skynet._worker.chunk import Chunk, InvalidCaseError, check_types
from skynet._worker.frames import FRAME_HEAD, ProtocolError

GOOD = (b'{"q": 1}', b'"a"', b'{"label": "a"}')


def chunk_of(*cases: tuple[bytes, ...]) -> Chunk:
    return Chunk(memoryview(encode_chunk(1, cases))[FRAME_HEAD.size :])


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ((b"{", b"1"), "input is not JSON: Expecting property name enclosed in double quotes at position 1"),
        ((b"{}", b""), "output is not JSON: Expecting value at position 0 (found the end); send valid JSON text"),
        ((b"{}", b"'a'"), 'output is not JSON: Expecting value at position 0 (found "\'"); send valid JSON text'),
        ((b"{}", b"1 2"), "output is not JSON: Extra data at position 2 (found '2'); send valid JSON text"),
        ((b"{}", b'"\n"'), "output is not JSON: Invalid control character at position 1"),
        ((b"  {} x", b"1"), "input is not JSON: Extra data at position 5 (found 'x')"),
        ((b"{}", b"1", b"{]"), "expected is not JSON: Expecting property name enclosed in double quotes at position 1"),
        ((b'{"a": "\xff"}', b"1"), "input is not UTF-8: byte 0xff at position 7; send JSON text in UTF-8"),
        ((b"{}", b"\xed\xa0\x80"), "output is not UTF-8: byte 0xed at position 0"),
        ((b"{}", b"[" * 200_000), "output is nested too deeply for Python to read; send flatter JSON"),
        ((b"{}", b"9" * 5000), "output holds a number that Python refuses: Exceeds the limit (4300"),
    ],
)
def test_says_which_value_is_wrong_and_where(case: tuple[bytes, ...], message: str) -> None:
    chunk = chunk_of(GOOD, case, GOOD)
    with pytest.raises(InvalidCaseError) as raised:
        chunk.read_case(1)
    assert str(raised.value).startswith(message)
    assert chunk.read_case(0) == chunk.read_case(2) == ({"q": 1}, "a", {"label": "a"}, "")


def test_reads_what_python_writes() -> None:
    case = (b' \t{"n": 9007199254740993}\r\n', b"[NaN, Infinity, -Infinity, 1e400]", b"")
    case_input, output, expected, _ = chunk_of(case).read_case(0)
    assert case_input == {"n": 9007199254740993}
    assert str(output) == "[nan, inf, -inf, inf]"
    assert expected is None


@pytest.mark.parametrize("value", [None, [], "text", 1.5, True])
def test_input_has_to_be_an_object(value: object) -> None:
    with pytest.raises(InvalidCaseError, match=r"input is (null|an array|a string|a number|true); expected a JSON"):
        check_types(value, None)


def test_expected_has_to_be_an_object_or_null() -> None:
    check_types({}, None)
    check_types({}, {})
    with pytest.raises(InvalidCaseError, match="expected is a string; it must be a JSON object"):
        check_types({}, "text")


def test_a_chunk_that_lies_about_itself_breaks_the_protocol() -> None:
    with pytest.raises(ProtocolError, match="does not hold 3 values for each of 2 cases"):
        Chunk(memoryview(b"\x01\0\0\0\x02\0\0\0\0{}\x1e1\x1e\x1e")).read_case(0)
    with pytest.raises(ProtocolError, match="has 3 bytes"):
        Chunk(memoryview(b"\x01\0\0"))
    with pytest.raises(ProtocolError, match="says that it has 0 cases"):
        Chunk(memoryview(b"\x01\0\0\0\0\0\0\0\0"))
    with pytest.raises(ProtocolError, match="says that it has 9 cases"):
        Chunk(memoryview(b"\x01\0\0\0\x09\0\0\0\x01"))
