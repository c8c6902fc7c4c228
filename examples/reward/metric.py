"""Rewards a reader of receipts that is right, quick and cheap."""

import json

from skynet import llm, observation, reward, service_cost

REWARD_SPEC = {
    "weights": {"accuracy": 0.8, "speed": 0.1, "cost": 0.1},
    "accuracy": {},
    "speed": {"reference": 200},  # milliseconds: somebody waits for the form to be filled in
    "cost": {"reference": 0.00005},  # US dollars a receipt
}

FIELDS = ("merchant", "date", "total", "category")

JUDGE = (
    "You get a receipt and a sentence that says what was bought. "
    "Answer PASS where it is true and says enough, else FAIL, and why."
)


def score(input, output, expected=None):
    found = read(output)
    if found is None:
        feedback = f"The answer is not one JSON object; it begins with {str(output)[:20]!r}. {measured()}"
        return reward(REWARD_SPEC, 0.0, feedback, scores={"fields": 0.0, "purpose": 0.0})
    wrong = [name for name in FIELDS if str(found.get(name, "")).casefold() != expected[name].casefold()]
    fields = 1 - len(wrong) / len(FIELDS)
    verdict = llm(JUDGE, input=f"{input['receipt']}\n\nSentence: {found.get('purpose')}", temperature=0)
    purpose = 1.0 if verdict.strip().upper().startswith("PASS") else 0.0
    notes = [f"{name} should be {expected[name]!r}, not {found.get(name)!r}." for name in wrong]
    if not purpose:
        notes.append(f"The purpose {found.get('purpose')!r} was refused: {verdict}")
    feedback = " ".join([*(notes or ["All fields are right."]), measured()])
    return reward(REWARD_SPEC, 0.8 * fields + 0.2 * purpose, feedback, scores={"fields": fields, "purpose": purpose})


def read(output):
    """The object that the output is; `None` where it is none."""
    try:
        found = json.loads(output)
    except (TypeError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def measured():
    """Time and cost in words, where they were measured; where not, `reward` says why."""
    run_ms, usd = observation().run_ms, service_cost()
    time = "" if run_ms is None else f"The run took {run_ms:.0f} ms."
    cost = "" if usd is None else f"Its model calls cost ${usd:.6f}."
    return f"{time} {cost}".strip()
