"""Scores a support-ticket classifier: half credit for near misses, and feedback that says how to do better.

The output is the classifier's answer, as JSON text or as an object: {"category": …, "priority": …}.
"""

from __future__ import annotations

import json
from typing import Any

CATEGORIES = {
    "billing": "charges, refunds, invoices, plans and ways to pay",
    "account": "signing in, access, personal data and who owns a home",
    "shipping": "a parcel on its way, its address, and what was missing or wrong in it",
    "product_fault": "the lamp or its parts are broken, or behave wrongly without the app",
    "app_bug": "the app, the web page, a schedule or an update does not do what it should",
    "feature_request": "an idea for something that does not exist yet",
}

PRIORITIES = {
    "low": "nothing is lost by waiting",
    "normal": "an inconvenience, or a date that is weeks away",
    "high": "the customer cannot use what they paid for, is out of money, or has a date within days",
    "urgent": "danger to people or property, abuse of an account or of money, or a business at a standstill",
}

WEIGHTS = {"format": 0.1, "category": 0.6, "priority": 0.3}


def score(input: dict[str, Any], output: Any, expected: dict[str, Any] | None = None) -> tuple[float, dict[str, Any]]:
    if expected is None:
        raise ValueError("this metric needs the expected category and priority of every ticket")
    answer, remarks = read_answer(output)
    scores = {
        "format": 0.0 if remarks else 1.0,
        "category": judge_category(answer.get("category"), expected["category"], remarks),
        "priority": judge_priority(answer.get("priority"), expected["priority"], remarks),
    }
    value = sum(WEIGHTS[name] * scores[name] for name in WEIGHTS)
    if not remarks:
        return value, {"feedback": "Correct: the category and the priority are both right.", "scores": scores}
    subject = input["subject"]
    return value, {"feedback": f"Ticket {subject!r}: " + " ".join(remarks), "scores": scores}


def read_answer(output: Any) -> tuple[dict[str, Any], list[str]]:
    """The answer as a dict, empty where there is none, and what was wrong with its form."""
    if isinstance(output, dict):
        return output, []
    text = str(output).strip()
    try:
        answer = json.loads(text)
    except ValueError as error:
        start, end = text.find("{"), text.rfind("}")
        if start < 0 < len(text):
            return {}, ["The output is prose. Answer with one JSON object that has the keys category and priority."]
        try:
            answer = json.loads(text[start : end + 1])
        except ValueError:
            return {}, [f"The output is not valid JSON: {error}. Answer with one JSON object and nothing else."]
        if isinstance(answer, dict):
            return answer, ["There is text around the JSON object. Answer with the object alone, without a code fence."]
    if not isinstance(answer, dict):
        return {}, [f"The output is JSON, but not an object: {text[:80]}. Answer with the keys category and priority."]
    return answer, []


def judge_category(got: Any, want: str, remarks: list[str]) -> float:
    """1 for the right one, else 0 with a remark that tells the two apart."""
    if got == want:
        return 1.0
    if got is None:
        remarks.append(f"The category is missing; it is {want!r} ({CATEGORIES[want]}).")
    elif got not in CATEGORIES:
        remarks.append(f"{got!r} is no category; use one of {', '.join(CATEGORIES)}.")
        remarks.append(f"Here it is {want!r} ({CATEGORIES[want]}).")
    else:
        remarks.append(
            f"The category is {want!r} ({CATEGORIES[want]}), not {got!r} ({CATEGORIES[got]}). "
            "Ask what the customer needs mended, not which words the message uses."
        )
    return 0.0


def judge_priority(got: Any, want: str, remarks: list[str]) -> float:
    """1 for the right one, one half for its neighbour, else 0."""
    if got == want:
        return 1.0
    if got is None:
        remarks.append(f"The priority is missing; it is {want!r}: {PRIORITIES[want]}.")
        return 0.0
    levels = list(PRIORITIES)
    if got not in levels:
        remarks.append(f"{got!r} is no priority; use one of {', '.join(levels)}.")
        remarks.append(f"Here it is {want!r}: {PRIORITIES[want]}.")
        return 0.0
    distance = levels.index(got) - levels.index(want)
    direction = "too high" if distance > 0 else "too low"
    remarks.append(f"The priority {got!r} is {direction}; {want!r} means: {PRIORITIES[want]}.")
    return 0.5 if abs(distance) == 1 else 0.0
