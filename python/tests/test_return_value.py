from __future__ import annotations

import enum
import json
import types
from collections import UserDict, UserString, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn

import numpy
import pytest
from conftest import contract_vectors

from skynet._worker.return_value import ReturnValueError, read_return_value, to_json

VECTORS = contract_vectors("return_values.jsonl")
VALID = [vector for vector in VECTORS if vector["valid"]]
INVALID = [vector for vector in VECTORS if not vector["valid"]]


class Grade(enum.IntEnum):
    GOOD = 1


@pytest.mark.parametrize("vector", VALID, ids=lambda v: v["returns"])
def test_takes_what_the_contract_allows(vector: dict[str, object]) -> None:
    returned = eval(str(vector["returns"]))
    value, (feedback, scores, side_info) = read_return_value(returned)
    assert value == vector["score"]
    assert type(value) is float
    if "feedback" in vector:
        assert feedback.decode() == vector["feedback"]
    assert dict(json.loads(scores or b"[]")) == vector.get("scores", {})
    assert json.loads(side_info or b"{}") == vector.get("side_info", {})


@pytest.mark.parametrize("vector", INVALID, ids=lambda v: v["returns"])
def test_refuses_what_the_contract_forbids(vector: dict[str, object]) -> None:
    with pytest.raises(ReturnValueError) as raised:
        read_return_value(eval(str(vector["returns"])))
    message = str(raised.value)
    assert "\n" not in message
    assert "return" in message or "such as" in message


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            (0.8, {"reason": "x", "scores": {}}),
            'the side info has no "feedback" string; it has the keys "reason", "scores"; '
            'add one, such as {"feedback": "Close. Missing the date."}',
        ),
        ((0.8, {"reason": "x"}), 'the side info has no "feedback" string; it has the key "reason"; add one'),
        ((0.8, {}), 'the side info has no "feedback" string; it is empty; add one'),
        ((0.8, {"feedback": b"x"}), 'the side info has no "feedback" string; its "feedback" is a bytes; add one'),
        (0.8, "score returned a float; expected a pair of score and side info, such as: return 0.5, {"),
        (None, "score returned None; expected a pair"),
        ((1, {}, 3), "score returned a tuple of 3 items; expected a pair"),
        ((0.8,), "score returned a tuple of 1 item; expected a pair"),
        (("0.8", {}), "the score is of type str, not a number; return a finite number"),
        ((None, {}), "the score is None; return a finite number"),
        ((float("-inf"), {}), "the score is -inf, which is not finite"),
        ((10**400, {}), "the score does not fit a float"),
        ((0.8, "Close."), 'the side info is a str; return a dict with a "feedback" string'),
        ((0.8, {"feedback": "", "scores": [1]}), '"scores" in the side info is a list; map names to finite numbers'),
        ((0.8, {"feedback": "", "scores": {1: 1}}), 'a name in "scores" is an int, 1; map names'),
        (
            (0.8, {"feedback": "", "scores": {"format": "high"}}),
            'the named score "format" is of type str, not a number; map names to finite numbers, such as {"format": ',
        ),
        (
            (0.8, {"feedback": "", "scores": {"format": float("nan")}}),
            'the named score "format" is nan, which is not finite',
        ),
    ],
)
def test_says_what_came_and_what_to_do(returned: object, message: str) -> None:
    with pytest.raises(ReturnValueError) as raised:
        read_return_value(returned)
    assert str(raised.value).startswith(message)


def test_a_message_never_grows_with_the_side_info() -> None:
    with pytest.raises(ReturnValueError) as raised:
        read_return_value((1.0, {f"{index}{'x' * 5000}": 1 for index in range(5000)}))
    assert len(str(raised.value)) < 1000
    assert "and 4990 more" in str(raised.value)


@pytest.mark.parametrize(
    ("score", "value"),
    [
        (numpy.float32(0.5), 0.5),
        (numpy.float64(0.25), 0.25),
        (numpy.longdouble(0.5), 0.5),
        (numpy.int64(-3), -3.0),
        (numpy.bool_(True), 1.0),
        (Decimal("0.25"), 0.25),
        (Fraction(1, 4), 0.25),
        (Grade.GOOD, 1.0),
    ],
    ids=repr,
)
def test_every_real_number_is_a_score(score: object, value: float) -> None:
    assert read_return_value((score, {"feedback": ""}))[0] == value


@pytest.mark.parametrize(
    "score",
    [
        numpy.array(0.5),
        numpy.array([0.5]),
        numpy.complex64(1),
        numpy.str_("0.5"),
        numpy.datetime64("2026-01-02"),
        numpy.float32("nan"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        b"1",
        [1],
    ],
    ids=repr,
)
def test_nothing_else_is(score: object) -> None:
    with pytest.raises(ReturnValueError, match=r"^the score "):
        read_return_value((score, {"feedback": ""}))


def test_takes_mappings_string_subclasses_and_named_tuples() -> None:
    class Verdict(str):
        def __str__(self) -> str:
            return "not this"

    pair = namedtuple("pair", "score side_info")
    side_info = UserDict({"feedback": Verdict("this"), "scores": types.MappingProxyType({Verdict("a"): 1})})
    assert read_return_value(pair(1, side_info)) == (1.0, (b"this", b'[["a",1.0]]', b""))


def test_a_user_string_is_no_string() -> None:
    with pytest.raises(ReturnValueError, match='its "feedback" is an UserString'):
        read_return_value((1, {"feedback": UserString("x")}))


def test_does_not_change_what_the_metric_returned() -> None:
    side_info = {"feedback": "x", "scores": {"a": 1.0}, "other": [1]}
    read_return_value((1.0, side_info))
    assert side_info == {"feedback": "x", "scores": {"a": 1.0}, "other": [1]}


def test_named_scores_keep_order_digits_and_strange_names() -> None:
    scores = {'say "hi"\n': 0.1, "é": 1e-07, "__proto__": 1e300, "": 3, "half \ud83d": 0}
    encoded = read_return_value((1.0, {"feedback": "", "scores": scores}))[1][1]
    assert json.loads(encoded) == [
        ['say "hi"\n', 0.1],
        ["é", 1e-07],
        ["__proto__", 1e300],
        ["", 3.0],
        ["half \ufffd", 0.0],
    ]


def test_a_value_that_raises_while_it_is_read_is_named() -> None:
    class Broken(dict[str, object]):
        def items(self) -> NoReturn:
            raise RuntimeError("no items today")

    with pytest.raises(ReturnValueError, match="cannot be read, RuntimeError: no items today; return plain Python"):
        read_return_value((1.0, Broken()))


def test_what_raises_without_a_text_is_named_without_one() -> None:
    class Broken(dict[str, object]):
        def items(self) -> NoReturn:
            raise MemoryError

    with pytest.raises(ReturnValueError, match="cannot be read, MemoryError; return plain Python"):
        read_return_value((1.0, Broken()))


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def cyclic() -> list[object]:
    items: list[object] = [1]
    items.append(items)
    return items


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": float("nan"), "b": [float("inf"), float("-inf")]}, '{"a":"nan","b":["inf","-inf"]}'),
        ({1: "a", None: "b", (1, 2): "c"}, '{"1":"a","None":"b","(1, 2)":"c"}'),
        ({"s": {1}}, '{"s":"{1}"}'),
        ([Decimal("0.10"), b"x", Unprintable], None),
        ([Unprintable()], '["<an Unprintable whose str() raised RuntimeError>"]'),
        (cyclic(), '[1,"<cycle>"]'),
        ((True, None, 1.5, "é\u2028"), '[true,null,1.5,"é\u2028"]'),
        ([numpy.int64(3), numpy.float32(0.5), numpy.array([[1, 2]]), numpy.bool_(True)], "[3,0.5,[[1,2]],true]"),
        ([numpy.datetime64("2026-01-02"), numpy.array([numpy.nan])], '["2026-01-02",["nan"]]'),
        ([10**30], "[1000000000000000000000000000000]"),
        ([10**5000], '["<an int of 16610 bits>"]'),
        ([Grade.GOOD], "[1]"),
        ({"same": [[1], [1]]}, '{"same":[[1],[1]]}'),
    ],
)
def test_side_info_is_json_whatever_is_in_it(value: object, text: str | None) -> None:
    encoded = to_json(value)
    json.loads(encoded)
    if text is not None:
        assert encoded == text


def test_side_info_that_is_too_deep_is_cut() -> None:
    encoded = to_json(nested(100_000))
    assert "<nested more than 64 levels deep>" in encoded
    json.loads(encoded)
