from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import StartWorker, WriteMetric

from skynet._worker.loading import load_metric, module_name

GOOD = 'def score(input, output, expected=None):\n    return 1.0, {"feedback": "Correct."}\n'


pytestmark = pytest.mark.usefixtures("loads_here")


def problem(path: Path) -> dict[str, str]:
    """The only problem of a metric."""
    metric = load_metric(str(path))
    assert metric.call is None
    problems: Any = metric.report["problems"]
    assert len(problems) == 1
    found: dict[str, str] = problems[0]
    assert "\n" not in found["message"]
    assert str(path.parent) not in found["message"]
    return found


def test_a_report_has_every_field_of_the_protocol(write_metric: WriteMetric) -> None:
    metric = load_metric(str(write_metric(GOOD)))
    report = dict(metric.report)
    load_ms = report.pop("load_ms")
    assert isinstance(load_ms, float) and load_ms > 0
    assert report == {
        "fingerprint": hashlib.sha256(GOOD.encode()).hexdigest(),
        "file": "metric.py",
        "problems": [],
        "arguments": 3,
        "signature": "(input, output, expected=None)",
        "is_async": False,
        "warnings": [],
        "reward_spec_json": "",
        "reward_weights": None,
    }
    assert metric.call is not None
    assert metric.call({}, "x", None) == (1.0, {"feedback": "Correct."})


def test_a_metric_is_a_real_module(start_worker: StartWorker, start_method: str) -> None:
    source = """
from __future__ import annotations
import copy, dataclasses, inspect, json, os, pickle, sys, typing
import sibling

@dataclasses.dataclass
class Answer:
    text: str
    parts: typing.List[Answer] = dataclasses.field(default_factory=list)

def score(input, output, expected=None):
    answer = Answer(output)
    return 1.0, {
        "feedback": "",
        "pickled": pickle.loads(pickle.dumps(answer)) == answer,
        "hints": sorted(typing.get_type_hints(Answer)),
        "name": __name__,
        "file": os.path.basename(__file__),
        "sibling": sibling.VALUE,
        "json": json.loads("[1]"),
        "source": inspect.getsource(score)[:9],
        "argv": [os.path.basename(each) for each in sys.argv],
    }
"""
    beside = {"sibling": "import json\nVALUE = json.loads('2')\n", "json": "raise RuntimeError('not this one')\n"}
    sidecar, worker = start_worker(source, start_method, beside=beside)
    (row,) = sidecar.score(worker, [(b"{}", b'"x"')])
    assert json.loads(row.side_info) == {
        "pickled": True,
        "hints": ["parts", "text"],
        "name": "metric",
        "file": "metric.py",
        "sibling": 2,
        "json": [1],
        "source": "def score",
        "argv": ["metric.py"],
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/metric.py", "metric"),
        ("/a/my-metric.v2.py", "my_metric_v2"),
        ("/a/json.py", "skynet_metric_json"),
        ("/a/sys.py", "skynet_metric_sys"),
        ("/a/__main__.py", "skynet_metric___main__"),
        ("/a/pytest.py", "skynet_metric_pytest"),
    ],
)
def test_a_module_takes_no_other_ones_name(path: str, name: str) -> None:
    assert module_name(path, "metric") == name


@pytest.mark.parametrize("name", ["json.py", "__main__.py", "my-metric.py", "metric"])
def test_loads_files_of_any_name(write_metric: WriteMetric, name: str) -> None:
    assert load_metric(str(write_metric(GOOD, name))).report["problems"] == []


def test_the_fingerprint_covers_the_file_and_what_it_imports_beside_it(write_metric: WriteMetric) -> None:
    source = "import fingerprinted_sibling\n" + GOOD

    def fingerprint(text: str, sibling: str) -> object:
        sys.modules.pop("fingerprinted_sibling", None)
        sys.modules.pop("metric", None)
        return load_metric(str(write_metric(text, fingerprinted_sibling=sibling))).report["fingerprint"]

    first = fingerprint(source, "A = 1\n")
    assert fingerprint(source, "A = 1\n") == first
    assert len({first, fingerprint(source, "A = 22\n"), fingerprint(source + "\n", "A = 1\n")}) == 3


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import no_such_module",
            "ModuleNotFoundError: No module named 'no_such_module' (metric.py, line 1); install it for the Python that "
            f"loads the file ({'.'.join(map(str, sys.version_info[:3]))}), or name another one with --python",
        ),
        ("raise ValueError('two\\nlines')", "ValueError: two lines (metric.py, line 1)"),
        ("\n\nraise SystemExit(3)", "SystemExit: 3 (metric.py, line 3)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (metric.py, line 1)"),
        ("x = 1 +\n", "SyntaxError: invalid syntax (metric.py, line 1)"),
        ("x = 1\n  y = 2", "IndentationError: unexpected indent (metric.py, line 2)"),
        ("def f():\n    return 1 / 0\n\nf()\n", "ZeroDivisionError: division by zero (metric.py, line 2)"),
        ("raise ValueError('a', 2)", "ValueError: ('a', 2) (metric.py, line 1)"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_load_is_told_as_itself(write_metric: WriteMetric, source: str, message: str) -> None:
    found = problem(write_metric(source))
    assert (found["step"], found["message"]) == ("metric_file", message)
    assert found["traceback"].startswith("Traceback") or found["message"].startswith(("SyntaxError", "Indentation"))
    assert "_worker" not in found["traceback"]


def test_a_fault_in_a_sibling_names_the_sibling(write_metric: WriteMetric) -> None:
    path = write_metric("import broken_sibling\n", broken_sibling="x = (\n")
    assert problem(path)["message"] == "SyntaxError: '(' was never closed (broken_sibling.py, line 1)" or (
        # The words of Python 3.9.
        problem(path)["message"].startswith("SyntaxError: unexpected EOF while parsing (broken_sibling.py, line ")
    )


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = problem(tmp_path / "metric.py")
    assert found["message"] == (
        "metric.py cannot be read: No such file or directory; give the path of a readable Python file"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "def metric(input, output): ...",
            "metric.py defines no function called score, only metric; define `def score(",
        ),
        (
            "def Score(a, b): ...\nfrom os.path import join\n_x = lambda: 0",
            "metric.py defines no function called score, only Score; define `def score(",
        ),
        ("x = 1", "metric.py defines no function called score; define `def score("),
        (
            "".join(f"def f{n}(): ...\n" for n in range(7)),
            "metric.py defines no function called score, only f0, f1, f2, f3, f4 and 2 more; define `def score(",
        ),
        ("score = 3", "score is not a function but of type int; define `def score("),
    ],
)
def test_a_file_without_a_function_is_told(write_metric: WriteMetric, source: str, message: str) -> None:
    found = problem(write_metric(source))
    assert found["step"] == "metric_function"
    assert found["message"].startswith(message)


def test_an_attribute_that_raises_is_the_authors_own_error(write_metric: WriteMetric) -> None:
    found = problem(write_metric("def __getattr__(name):\n    raise RuntimeError('no ' + name)\n"))
    assert (found["step"], found["message"]) == ("metric_function", "RuntimeError: no score (metric.py, line 2)")


def test_a_reward_spec_is_reported_with_its_weights(write_metric: WriteMetric) -> None:
    spec = '{"weights": {"accuracy": 7, "speed": 2, "cost": 1}, "speed": {"reference": 2000}, "cost": {"reference": 1}}'
    report = load_metric(str(write_metric(f"REWARD_SPEC = {spec}\n{GOOD}"))).report
    assert report["problems"] == []
    assert json.loads(str(report["reward_spec_json"])) == json.loads(spec)
    assert report["reward_weights"] == pytest.approx({"accuracy": 0.7, "speed": 0.2, "cost": 0.1})


def test_a_reward_spec_that_breaks_a_rule_is_a_problem_of_its_own(write_metric: WriteMetric) -> None:
    found = problem(write_metric(f"REWARD_SPEC = {{'weights': {{'accuracy': -1}}}}\n{GOOD}"))
    assert found["step"] == "reward_spec"
    assert found["message"] == 'ValueError: REWARD_SPEC["weights"]["accuracy"] is -1; it must be 0 or more'


def test_each_step_has_a_problem_of_its_own(write_metric: WriteMetric) -> None:
    metric = load_metric(str(write_metric("REWARD_SPEC = 1\ndef score(output): ...")))
    problems: Any = metric.report["problems"]
    assert [each["step"] for each in problems] == ["metric_function", "reward_spec"]


def test_the_bytes_that_were_hashed_are_the_ones_that_run(write_metric: WriteMetric) -> None:
    path = write_metric(
        "import os\nwith open(__file__, 'w') as file: file.write('1/0')\n" + GOOD + "raise OSError('x')"
    )
    found = problem(path)
    assert "raise OSError('x')" in found["traceback"]


def test_a_bom_and_another_encoding_are_read(tmp_path: Path) -> None:
    for index, encoded in enumerate(
        (b"\xef\xbb\xbf" + GOOD.encode(), b"# coding: latin-1\nA = '\xe9'\nassert A == chr(233)\n" + GOOD.encode())
    ):
        path = tmp_path / f"metric_{index}.py"
        path.write_bytes(encoded)
        assert load_metric(str(path)).report["problems"] == []


def test_a_module_that_loads_itself_lazily_may_raise_anything_when_it_is_asked(write_metric: WriteMetric) -> None:
    source = """
import sys, types

class Lazy(types.ModuleType):
    def __getattribute__(self, name):
        raise RuntimeError("the optional library is not installed")

class NotAModule:
    __slots__ = ()

sys.modules["lazy_library"] = Lazy("lazy_library")
sys.modules["odd_library"] = NotAModule()
"""
    try:
        assert load_metric(str(write_metric(source + GOOD))).report["problems"] == []
    finally:
        sys.modules.pop("lazy_library", None)
        sys.modules.pop("odd_library", None)
