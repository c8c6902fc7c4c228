"""`REWARD_SPEC`: how accuracy, speed and cost make up a reward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from skynet.real_number import named_number, positive_number

PARTS = ("accuracy", "speed", "cost")
EXAMPLE = (
    '{"weights": {"accuracy": 0.7, "speed": 0.2, "cost": 0.1}, "accuracy": {}, '
    '"speed": {"reference": 2000}, "cost": {"reference": 0.01}}'
)


class RewardSpec(NamedTuple):
    """A checked spec. Weights add up to 1; the speed's reference is in milliseconds, the cost's in US dollars.

    Without an accuracy reference accuracy is a score from 0 to 1; with one it is an error, and lower is better.
    """

    accuracy_weight: float
    speed_weight: float
    cost_weight: float
    accuracy_reference: float | None
    speed_reference: float
    cost_reference: float


def parse_reward_spec(spec: object) -> RewardSpec:
    """Checks a spec. Raises `ValueError` that names the key and the value."""
    whole = _mapping("REWARD_SPEC", spec, ("weights", *PARTS))
    weights = _mapping('REWARD_SPEC["weights"]', whole.get("weights"), PARTS)
    accuracy_weight, speed_weight, cost_weight = (_weight(weights, part) for part in PARTS)
    try:
        total = math.fsum((accuracy_weight, speed_weight, cost_weight))
    except OverflowError:
        raise ValueError(
            'REWARD_SPEC["weights"] are too large to add up; give weights such as 0.7, 0.2 and 0.1'
        ) from None
    if total == 0:
        raise ValueError('REWARD_SPEC["weights"] are all 0; at least one must be more than 0')
    return RewardSpec(
        accuracy_weight=accuracy_weight / total,
        speed_weight=speed_weight / total,
        cost_weight=cost_weight / total,
        accuracy_reference=_accuracy_reference(whole),
        speed_reference=_reference(whole, "speed", "milliseconds"),
        cost_reference=_reference(whole, "cost", "US dollars"),
    )


def _weight(weights: Mapping[object, object], part: str) -> float:
    where = f'REWARD_SPEC["weights"]["{part}"]'
    if part not in weights:
        raise ValueError(f"{where} is missing; give a number of 0 or more")
    weight = named_number(where, weights[part])
    if weight < 0:
        raise ValueError(f"{where} is {weight:g}; it must be 0 or more")
    return weight


def _accuracy_reference(whole: Mapping[object, object]) -> float | None:
    if "accuracy" not in whole:
        return None
    section = _mapping('REWARD_SPEC["accuracy"]', whole["accuracy"], ("reference",))
    return (
        positive_number('REWARD_SPEC["accuracy"]["reference"]', section["reference"])
        if "reference" in section
        else None
    )


def _reference(whole: Mapping[object, object], part: str, unit: str) -> float:
    section = _mapping(f'REWARD_SPEC["{part}"]', whole.get(part), ("reference",))
    where = f'REWARD_SPEC["{part}"]["reference"]'
    if "reference" not in section:
        raise ValueError(f"{where} is missing; give a positive number of {unit}")
    return positive_number(where, section["reference"])


def _mapping(where: str, value: object, known: tuple[str, ...]) -> Mapping[object, object]:
    if value is None:
        raise ValueError(f"{where} is missing; a whole spec is {EXAMPLE}")
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} is of type {type(value).__name__}, not a dict; a whole spec is {EXAMPLE}")
    for key in value:
        if key not in known:
            raise ValueError(f"{where} has the unknown key {key!r}; the known ones are {', '.join(known)}")
    return value
