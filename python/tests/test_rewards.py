from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import skynet
from skynet.metric_call import current
from skynet.reward_spec import parse_reward_spec

SPEC: dict[str, object] = {
    "weights": {"accuracy": 0.7, "speed": 0.2, "cost": 0.1},
    "accuracy": {},
    "speed": {"reference": 2000},
    "cost": {"reference": 0.01},
}


def begin(run_ms: float | None, cost_usd: float | None, cost_not_measured_reason: str = "") -> None:
    """Begins a call whose run was measured."""
    found = {
        "id": "obs-1",
        "run_ms": run_ms,
        "run_not_measured_reason": "",
        "cost_usd": cost_usd,
        "cost_not_measured_reason": cost_not_measured_reason,
        "usage": None,
    }
    current.begin(json.dumps(found))


def with_(**sections: object) -> dict[str, object]:
    return {**SPEC, **sections}


@pytest.fixture(autouse=True)
def no_call() -> Iterator[None]:
    yield
    current.end()


def test_without_measurements_speed_and_cost_score_nothing_and_the_feedback_says_why() -> None:
    assert skynet.reward(SPEC, 1.0, "Correct.") == (
        0.7,
        {
            "feedback": "Correct. "
            "The run time was not measured (no observation belongs to this case), so speed scores 0. "
            "The cost was not measured (no observation belongs to this case), so cost scores 0.",
            "scores": {"accuracy": 1.0, "speed": 0.0, "cost": 0.0},
        },
    )


@pytest.mark.parametrize(
    ("run_ms", "cost_usd", "speed", "cost"),
    [
        (2000, 0.01, 1.0, 1.0),
        (1999, 0.0, 1.0, 1.0),
        (0, 0.005, 1.0, 1.0),
        (4000, 0.02, 0.5, 0.5),
        (20_000, 1.0, 0.1, 0.01),
    ],
)
def test_the_reference_is_a_target(run_ms: float, cost_usd: float, speed: float, cost: float) -> None:
    begin(run_ms, cost_usd)
    value, side_info = skynet.reward(SPEC, 0.5, "Half.")
    assert side_info == {"feedback": "Half.", "scores": {"accuracy": 0.5, "speed": speed, "cost": cost}}
    assert value == pytest.approx(0.7 * 0.5 + 0.2 * speed + 0.1 * cost)


def test_a_perfect_score_is_reachable() -> None:
    begin(10, 0)
    for first in range(1, 100):
        spec = with_(weights={"accuracy": first / 7, "speed": 0.1, "cost": 1 / 3})
        assert skynet.reward(spec, 1, "Correct.")[0] == 1.0


def test_only_what_was_not_measured_is_told() -> None:
    begin(10, None, "the model has no price")
    value, side_info = skynet.reward(SPEC, 1, "Correct.")
    assert side_info["feedback"] == "Correct. The cost was not measured (the model has no price), so cost scores 0."
    assert value == pytest.approx(0.9)


def test_a_part_without_weight_is_not_mentioned() -> None:
    spec = with_(weights={"accuracy": 2, "speed": 0, "cost": 0})
    assert skynet.reward(spec, 0.25, "Poor.") == (
        0.25,
        {"feedback": "Poor.", "scores": {"accuracy": 0.25, "speed": 0.0, "cost": 0.0}},
    )


@pytest.mark.parametrize(("error", "accuracy"), [(0, 1.0), (5, 0.5), (15, 0.25), (1e12, 5e-12)])
def test_with_a_reference_accuracy_is_an_error(error: float, accuracy: float) -> None:
    scores: Any = skynet.reward(with_(accuracy={"reference": 5}), error, "")[1]["scores"]
    assert scores["accuracy"] == pytest.approx(accuracy)


def test_own_scores_stand_beside_the_parts() -> None:
    scores = skynet.reward(SPEC, 1, "", scores={"format": 0.5})[1]["scores"]
    assert scores == {"format": 0.5, "accuracy": 1.0, "speed": 0.0, "cost": 0.0}
    with pytest.raises(ValueError, match='scores has the key "speed", which reward itself gives'):
        skynet.reward(SPEC, 1, "", scores={"speed": 1.0})


def test_rounding_is_clamped() -> None:
    for accuracy, clamped in ((1.0000000000000002, 1.0), (-1e-9, 0.0), (True, 1.0)):
        scores: Any = skynet.reward(SPEC, accuracy, "")[1]["scores"]
        assert scores["accuracy"] == clamped


@pytest.mark.parametrize(
    ("spec", "accuracy", "message"),
    [
        (SPEC, 1.01, 'accuracy is 1.01; without REWARD_SPEC["accuracy"]["reference"] it must be from 0 to 1'),
        (SPEC, -0.5, 'accuracy is -0.5; without REWARD_SPEC["accuracy"]["reference"] it must be from 0 to 1'),
        (SPEC, float("nan"), "accuracy is nan, which is not finite; give a finite number"),
        (SPEC, "1", "accuracy is of type str, not a number; give a finite number"),
        (with_(accuracy={"reference": 1}), -1, "accuracy is -1; with an accuracy reference it is an error"),
    ],
)
def test_a_wrong_accuracy_is_named(spec: dict[str, object], accuracy: float, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        skynet.reward(spec, accuracy, "")
    assert str(raised.value).startswith(message)


def test_feedback_has_to_be_text() -> None:
    not_text: Any = None
    with pytest.raises(TypeError, match="feedback must be a str, not NoneType"):
        skynet.reward(SPEC, 1, not_text)


def test_weights_are_scaled() -> None:
    spec = parse_reward_spec(with_(weights={"accuracy": 7, "speed": 2, "cost": 1}))
    assert (spec.accuracy_weight, spec.speed_weight, spec.cost_weight) == pytest.approx((0.7, 0.2, 0.1))
    assert (
        parse_reward_spec({key: value for key, value in SPEC.items() if key != "accuracy"}).accuracy_reference is None
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (None, "REWARD_SPEC is missing"),
        ([], "REWARD_SPEC is of type list, not a dict; a whole spec is {"),
        ({}, 'REWARD_SPEC["weights"] is missing'),
        (with_(weights={"accuracy": 1, "speed": 1}), 'REWARD_SPEC["weights"]["cost"] is missing; give a number'),
        (with_(weights={"accuracy": -1, "speed": 1, "cost": 1}), 'REWARD_SPEC["weights"]["accuracy"] is -1; it must'),
        (with_(weights={"accuracy": 0, "speed": 0, "cost": 0}), 'REWARD_SPEC["weights"] are all 0; at least one'),
        (with_(weights={"accuracy": "1", "speed": 0, "cost": 0}), 'REWARD_SPEC["weights"]["accuracy"] is of type str'),
        (with_(weights={"accuracy": 1e308, "speed": 1e308, "cost": 0}), 'REWARD_SPEC["weights"] are too large'),
        (
            with_(weights={"accuracy": 1, "speed": 0, "cost": 0, "latency": 1}),
            "REWARD_SPEC[\"weights\"] has the unknown key 'latency'; the known ones are accuracy, speed, cost",
        ),
        (with_(speed={}), 'REWARD_SPEC["speed"]["reference"] is missing; give a positive number of milliseconds'),
        (with_(speed=None), 'REWARD_SPEC["speed"] is missing'),
        (with_(speed={"reference": 0}), 'REWARD_SPEC["speed"]["reference"] is 0; it must be more than 0'),
        (with_(cost={"reference": -0.5}), 'REWARD_SPEC["cost"]["reference"] is -0.5; it must be more than 0'),
        (with_(cost={"reference": float("inf")}), 'REWARD_SPEC["cost"]["reference"] is inf, which is not finite'),
        (with_(accuracy={"reference": 0}), 'REWARD_SPEC["accuracy"]["reference"] is 0; it must be more than 0'),
        (with_(accuracy={"reference": None}), 'REWARD_SPEC["accuracy"]["reference"] is None; give a finite number'),
        (with_(acuracy={}), "REWARD_SPEC has the unknown key 'acuracy'"),
    ],
)
def test_a_spec_that_breaks_a_rule_names_key_and_value(spec: Any, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_reward_spec(spec)
    assert str(raised.value).startswith(message)
    with pytest.raises(ValueError):
        skynet.reward(spec, 1.0, "")
