"""Judges the judge: does it accept what a person at the help desk accepted?"""

from metric import judge


def score(input, output, expected=None):
    verdict = judge(input, output)
    accepts = verdict["grounded"] == 2 and verdict["complete"] >= 1 and verdict["friendly"] >= 1
    person_accepts = expected["accepted"] == "yes"
    if accepts == person_accepts:
        return 1.0, {"feedback": "The judge and the person agree.", "scores": {"agrees": 1.0}}
    who = "The judge accepts" if accepts else "The judge refuses"
    person = "accepted" if person_accepts else "refused"
    feedback = f"{who} what a person {person}. The judge's advice: {verdict['advice']} Question: {input['question']}"
    return 0.0, {"feedback": feedback, "scores": {"agrees": 0.0}}
