"""Takes whatever the run made."""


def score(input, output, expected=None):
    return 1.0, {"feedback": "taken"}
