"""Judges an answer of the ferry line's help desk with a model, by a rubric of three questions."""

import json

from skynet import llm

RUBRIC = """\
You judge answers of the help desk of a ferry line. You get the policy that applies, a customer's question and the
answer. Answer with one JSON object and nothing else:
{"grounded": 0, 1 or 2, "complete": 0, 1 or 2, "friendly": 0, 1 or 2, "advice": "…"}
grounded: 2 where all it says follows from the policy, 1 where it adds what the policy does not say, 0 where it
contradicts it.
complete: 2 where it has all that this customer needs, 1 where something is missing, 0 where it does not answer.
friendly: 2 where a customer would feel well treated, 1 where it is dry, 0 where it is curt or scolds.
advice: one or two sentences: what is wrong, and what a better answer would say."""

# What a wrong answer costs the ferry line counts for most.
WEIGHTS = {"grounded": 0.6, "complete": 0.25, "friendly": 0.15}
MOST_POINTS = 2


def score(input, output, expected=None):
    verdict = judge(input, output)
    parts = {name: verdict[name] / MOST_POINTS for name in WEIGHTS}
    value = sum(weight * parts[name] for name, weight in WEIGHTS.items())
    return value, {"feedback": f"{verdict['advice']} Question: {input['question']}", "scores": parts}


def judge(input, answer):
    """The judge's verdict: points from 0 to 2 by the rubric's names, and its advice.

    Raises `ValueError` where the model did not keep the form, and lets `skynet.ModelError` through where it did not
    answer: such a case gets an error, which is not the answer's fault and must not be a low score.
    """
    said = llm(
        RUBRIC,
        input=f"Policy: {input['policy']}\nQuestion: {input['question']}\nAnswer: {answer}",
        temperature=0,
        response_format={"type": "json_object"},
    )
    verdict = json.loads(said)
    points = [verdict[name] for name in WEIGHTS if name in verdict] if isinstance(verdict, dict) else []
    if len(points) < len(WEIGHTS) or any(number not in (0, 1, 2) for number in points):
        raise ValueError(f"the judge did not give 0, 1 or 2 points for each of {', '.join(WEIGHTS)}; it said {said!r}")
    if not isinstance(verdict.get("advice"), str):
        raise ValueError(f"the judge gave no advice; it said {said!r}")
    return verdict
