"""Exact match with feedback: the metric that every throughput benchmark calls, cheap enough that what is measured is everything else."""

from __future__ import annotations

from typing import Any


def score(input: dict[str, Any], output: Any, expected: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """1.0 where the output equals the expected label, else 0.0."""
    want = expected["label"]
    if output == want:
        return 1.0, {"feedback": "Correct."}
    return 0.0, {"feedback": f"Expected {want!r}, got {output!r}."}
