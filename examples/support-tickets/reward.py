"""Accuracy, speed and cost in one score.

Skynet measures the time and the cost of a run itself. Where it measured none, as for a file of finished outputs, that
part scores 0 and the feedback says so: the best that this metric can then give is 0.7.
"""

import json

from skynet import reward

REWARD_SPEC = {
    "weights": {"accuracy": 0.7, "speed": 0.2, "cost": 0.1},
    "accuracy": {},
    "speed": {"reference": 2000},  # milliseconds
    "cost": {"reference": 0.01},  # US dollars
}


def score(input, output, expected=None):
    want = expected["category"]
    got = category_of(output)
    feedback = "Correct." if got == want else f"The category should be {want!r}, not {got!r}."
    return reward(REWARD_SPEC, 1.0 if got == want else 0.0, feedback)


def category_of(output):
    """The category in the classifier's JSON, or the whole output where it is not JSON."""
    try:
        return json.loads(output)["category"]
    except (ValueError, KeyError, TypeError):
        return output
