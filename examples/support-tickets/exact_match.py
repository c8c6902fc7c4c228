"""Exact match: the output is the category, right or wrong."""


def score(input, output, expected=None):
    want = expected["category"]
    if output == want:
        return 1.0, {"feedback": "Correct."}
    return 0.0, {"feedback": f"Expected {want!r}, got {output!r}, for a ticket with the subject {input['subject']!r}."}
