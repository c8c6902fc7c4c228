"""Asks a model, and nothing else: what a judge waits for is all that it takes."""

from skynet import llm


def score(input, output, expected=None):
    verdict = llm("Is the answer right? Say PASS or FAIL.", f"Question: {input['question']}\nAnswer: {output}")
    return float(verdict.startswith("PASS")), {"feedback": str(verdict)}
