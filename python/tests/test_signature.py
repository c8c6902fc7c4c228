from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from conftest import WriteMetric, contract_vectors

from skynet._worker.loading import load_metric
from skynet._worker.signature import SignatureError, read_signature

STEPS = {"Metric function": "metric_function", "Metric file": "metric_file"}


pytestmark = pytest.mark.usefixtures("loads_here")


@pytest.mark.parametrize("vector", contract_vectors("signatures.jsonl"), ids=lambda v: v["source"])
def test_the_contract(vector: dict[str, object], write_metric: WriteMetric) -> None:
    path: Path = write_metric(str(vector["source"]))
    metric = load_metric(str(path))
    if vector["valid"]:
        assert metric.report["problems"] == []
        assert metric.report["arguments"] == vector["arguments"]
        assert metric.call is not None
    else:
        problems: Any = metric.report["problems"]
        assert [problem["step"] for problem in problems] == [STEPS[str(vector["check"])]]
        assert metric.call is None


def test_arguments_reach_the_parameters_that_they_are_meant_for() -> None:
    def keyword(input: object, output: object, *, expected: object = None) -> object:
        return input, output, expected

    def keywords(input: object, output: object, **others: object) -> object:
        return input, output, others

    def both(input: object, output: object, strict: object = False, *, expected: object) -> object:
        return input, output, strict, expected

    def other_keyword(input: object, output: object, *, strict: object = False) -> object:
        return input, output, strict

    assert read_signature(keyword).call(1, 2, 3) == (1, 2, 3)
    assert read_signature(keywords).call(1, 2, 3) == (1, 2, {"expected": 3})
    assert read_signature(both).call(1, 2, 3) == (1, 2, False, 3)
    assert read_signature(other_keyword).call(1, 2, 3) == (1, 2, False)
    assert read_signature(other_keyword).arguments == 2


def test_a_partial_with_a_keyword_bound_in_the_middle_is_tried_and_not_guessed() -> None:
    namespace: dict[str, Any] = {}
    exec("def score(input, strict, output, expected=None): ...", namespace)
    with pytest.raises(
        SignatureError, match=r"score\(input, \*, strict=True, output, expected=None\) cannot be called"
    ):
        read_signature(functools.partial(namespace["score"], strict=True))

    def judged(input: object, output: object, expected: object = None, model: object = "m") -> object:
        return input, output, expected, model

    assert read_signature(functools.partial(judged, model="n")).call(1, 2, 3) == (1, 2, 3, "n")


@pytest.mark.parametrize(
    ("source", "signature"),
    [
        ("def score(output): ...", "score(output)"),
        ("def score(input, output, expected, rubric): ...", "score(input, output, expected, rubric)"),
        ("def score(input, output, expected=None, *, rubric): ...", "score(input, output, expected=None, *, rubric)"),
        ("def score(): ...", "score()"),
    ],
)
def test_a_refusal_names_the_signature_found(source: str, signature: str) -> None:
    namespace: dict[str, object] = {}
    exec(source, namespace)
    with pytest.raises(SignatureError) as raised:
        read_signature(namespace["score"])
    assert str(raised.value) == (
        f"{signature} cannot be called as score(input, output, expected) nor as score(input, output); "
        "define `def score(input, output, expected=None)`"
    )


@pytest.mark.parametrize("name", ["expected", "gold", "target", "label", "reference", "answer"])
def test_usual_names_of_the_third_parameter_pass(name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"def score(input, output, {name}=None): ...", namespace)
    assert read_signature(namespace["score"]).warnings == ()


def test_an_odd_name_of_the_third_parameter_warns() -> None:
    def score(input: object, output: object, strict: object = False) -> object:
        return strict

    (warning,) = read_signature(score).warnings
    assert warning.startswith('the third parameter of score is called "strict" and gets the expected values')
    assert read_signature(score).call(1, 2, 3) == 3


def test_async_functions_are_recognized_in_every_dress() -> None:
    async def score(input: object, output: object, expected: object = None) -> object: ...

    class Judge:
        async def __call__(self, input: object, output: object, expected: object = None) -> object: ...

        async def method(self, input: object, output: object) -> object: ...

    for each in (score, Judge(), Judge().method, functools.partial(score), functools.partial(Judge())):
        assert read_signature(each).is_async
    assert not read_signature(lambda input, output: None).is_async


def test_a_signature_is_shown_whatever_its_defaults_are() -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    def score(input: object, output: object, expected: object = Unprintable()) -> object:
        return 1

    assert read_signature(score).text == "(…)"
    score.__defaults__ = ("x" * 5000,)
    assert len(read_signature(score).text) < 600


def test_a_callable_that_tells_no_signature_gets_all_three() -> None:
    class Opaque:
        __signature__ = "not a signature"

        def __call__(self, *arguments: object) -> object:
            return arguments

    signature = read_signature(Opaque())
    assert signature.call(1, 2, 3) == (1, 2, 3)
    assert (signature.arguments, signature.text) == (3, "")
    assert signature.warnings == (
        "the signature of score cannot be read; it is called as score(input, output, expected)",
    )
