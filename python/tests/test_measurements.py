from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from conftest import StartWorker

import skynet
from skynet.metric_call import current

MEASURED = {
    "id": "obs-1",
    "run_ms": 1234.5678901234567,
    "run_not_measured_reason": "",
    "cost_usd": 0.000123456789,
    "cost_not_measured_reason": "",
    "usage": {
        "calls": 2,
        "prompt_tokens": 2006,
        "cached_prompt_tokens": 1920,
        "completion_tokens": 300,
        "reasoning_tokens": 17,
    },
}
UNPRICED = {**MEASURED, "cost_usd": None, "cost_not_measured_reason": "the model m has no price", "usage": None}


@pytest.fixture(autouse=True)
def no_call() -> Iterator[None]:
    yield
    current.end()


def test_an_observation_tells_what_was_measured() -> None:
    current.begin(json.dumps(MEASURED))
    usage = skynet.Usage(
        prompt_tokens=2006, cached_prompt_tokens=1920, completion_tokens=300, reasoning_tokens=17, calls=2
    )
    assert skynet.observation() == skynet.Observation(
        run_ms=1234.5678901234567,
        cost_usd=0.000123456789,
        usage=usage,
        id="obs-1",
        run_not_measured_reason="",
        cost_not_measured_reason="",
    )
    assert skynet.service_cost() == 0.000123456789


def test_what_was_not_measured_is_none_and_has_a_reason() -> None:
    current.begin(json.dumps(UNPRICED))
    found = skynet.observation()
    assert (found.run_ms, found.cost_usd, found.usage) == (1234.5678901234567, None, None)
    assert found.cost_not_measured_reason == "the model m has no price"
    assert skynet.service_cost() is None


def test_a_case_without_an_observation_has_nothing_measured() -> None:
    current.begin()
    found = skynet.observation()
    assert (found.run_ms, found.cost_usd, found.usage, found.id) == (None, None, None, "")
    assert found.run_not_measured_reason == found.cost_not_measured_reason == "no observation belongs to this case"
    assert skynet.service_cost() is None


@pytest.mark.parametrize("helper", [skynet.observation, skynet.service_cost])
def test_outside_a_call_they_raise(helper: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match=r"^skynet\.\w+\(\) works while skynet-scorer calls the metric only"):
        helper()


ASKS = """
from skynet import observation, service_cost
try:
    observation()
except RuntimeError as error:
    print(error)
def score(input, output):
    found = observation()
    return 1.0, {"feedback": f"{found.id} {found.run_ms} {service_cost()} {found.run_not_measured_reason}"}
"""

NOT_OBSERVED = " None None no observation belongs to this case"


def test_each_case_gets_its_own_observation(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(ASKS, start_method)
    first, second = (json.dumps({**MEASURED, "id": name, "run_ms": 1.5}).encode() for name in ("a", "b"))
    cases = [(b"{}", b"1", b"", first), (b"{}", b"1", b"{}", b""), (b"{}", b"1", b"{}", second)]
    texts = ["a 1.5 0.000123456789 ", NOT_OBSERVED, "b 1.5 0.000123456789 "]
    assert [row.text for row in sidecar.score(worker, cases)] == texts
    # Value by value, as a case of the chunk is not UTF-8, or not JSON.
    for number, wrong in enumerate(((b'{"\xff": 1}', b"1", b"", first), (b"{]", b"1", b"", first)), 2):
        rows = sidecar.score(worker, [cases[0], wrong, *cases[1:]], number=number)
        assert [row.text for row in rows if row.position != 1] == texts
        assert rows[1].text.startswith("input is not")
    # A chunk without any.
    assert [row.text for row in sidecar.score(worker, [(b"{}", b"1")], number=9)] == [NOT_OBSERVED]


def test_a_reward_stands_on_what_was_measured(start_worker: StartWorker) -> None:
    source = """
from skynet import reward
REWARD_SPEC = {
    "weights": {"accuracy": 0.5, "speed": 0.25, "cost": 0.25},
    "speed": {"reference": 1000},
    "cost": {"reference": 0.01},
}
def score(input, output): return reward(REWARD_SPEC, 1, "Correct.")
"""
    sidecar, worker = start_worker(source)
    slow = {**MEASURED, "run_ms": 2000}
    unpriced = {**UNPRICED, "run_ms": 500}
    cases = [(b"{}", b"1", b"", json.dumps(found).encode()) for found in (slow, unpriced)]
    rows = sidecar.score(worker, cases)
    assert [(row.value, row.text) for row in rows] == [
        (0.875, "Correct."),
        (0.75, "Correct. The cost was not measured (the model m has no price), so cost scores 0."),
    ]
    assert json.loads(rows[0].detail) == [["accuracy", 1.0], ["speed", 0.5], ["cost", 1.0]]
