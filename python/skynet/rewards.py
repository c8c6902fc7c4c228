"""Blends accuracy with measured run time and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping

from skynet.measurements import measured
from skynet.real_number import named_number
from skynet.reward_spec import PARTS, RewardSpec, parse_reward_spec

# A cosine may be 1.0000000000000002.
ROUNDING = 1e-6


def reward(
    spec: Mapping[str, object],
    accuracy: float,
    feedback: str,
    *,
    scores: Mapping[str, float] | None = None,
) -> tuple[float, dict[str, object]]:
    """What `score` returns for a metric with a `REWARD_SPEC`: the reward, and the side info with its three parts.

    `accuracy` is a score from 0 to 1, or an error of 0 or more where the spec has an accuracy reference. The run time
    and the cost are the sidecar's own measurements; what was not measured scores 0 for its part, and the feedback
    says so. `scores` are named scores to stand beside `accuracy`, `speed` and `cost`.

    Raises `ValueError` that names the key and the value, `TypeError` for a feedback that is no string.
    """
    checked = parse_reward_spec(spec)
    if not isinstance(feedback, str):
        raise TypeError(f"feedback must be a str, not {type(feedback).__name__}")
    run = measured()
    speed, speed_note = _measured_part(
        "speed", "run time", run.run_ms, run.run_not_measured_reason, checked.speed_reference
    )
    cost, cost_note = _measured_part("cost", "cost", run.cost_usd, run.cost_not_measured_reason, checked.cost_reference)
    parts = {"accuracy": _accuracy_part(checked, accuracy), "speed": speed, "cost": cost}
    weights = {"accuracy": checked.accuracy_weight, "speed": checked.speed_weight, "cost": checked.cost_weight}
    # Divided once more, so that three perfect parts give exactly 1, where optimizers stop.
    value = math.fsum(weights[part] * parts[part] for part in PARTS) / math.fsum(weights.values())
    # A part without weight changes nothing, so nobody needs to hear of it.
    notes = [
        note
        for note, weight in ((speed_note, checked.speed_weight), (cost_note, checked.cost_weight))
        if note and weight > 0
    ]
    return value, {"feedback": " ".join([feedback, *notes]).lstrip(), "scores": {**_own_scores(scores), **parts}}


def _accuracy_part(spec: RewardSpec, accuracy: object) -> float:
    value = named_number("accuracy", accuracy)
    if spec.accuracy_reference is not None:
        if value < 0:
            raise ValueError(f"accuracy is {value:g}; with an accuracy reference it is an error, of 0 or more")
        return spec.accuracy_reference / (spec.accuracy_reference + value)
    if not -ROUNDING <= value <= 1 + ROUNDING:
        raise ValueError(f'accuracy is {value:g}; without REWARD_SPEC["accuracy"]["reference"] it must be from 0 to 1')
    return min(1.0, max(0.0, value))


def _measured_part(part: str, what: str, value: float | None, reason: str, reference: float) -> tuple[float, str]:
    if value is None:
        return 0.0, f"The {what} was not measured ({reason}), so {part} scores 0."
    return (1.0 if value <= reference else reference / value), ""


def _own_scores(scores: Mapping[str, float] | None) -> dict[str, float]:
    for name in scores or {}:
        if name in PARTS:
            raise ValueError(f'scores has the key "{name}", which reward itself gives; call it something else')
    return dict(scores or {})
