"""Exact match with feedback: so cheap that what a benchmark measures is everything around it."""

from __future__ import annotations

from typing import Any


def score(input: dict[str, Any], output: Any, expected: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """1.0 where the output equals the expected label, else 0.0."""
    want = expected["label"]
    if output == want:
        return 1.0, {"feedback": "Correct."}
    return 0.0, {"feedback": f"Expected {want!r}, got {output!r}."}
