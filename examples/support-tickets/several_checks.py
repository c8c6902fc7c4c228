"""Several checks: is the output JSON, are all fields there, and how many of them are right?"""

import json


def score(input, output, expected=None):
    try:
        data = json.loads(output)
    except ValueError as error:
        feedback = f"The output is not valid JSON: {error}. Return one object, with no text around it."
        return 0.0, {"feedback": feedback, "scores": {"format": 0.0, "fields": 0.0, "values": 0.0}}
    missing = [key for key in expected if key not in data]
    wrong = [key for key in expected if key in data and data[key] != expected[key]]
    scores = {
        "format": 1.0,
        "fields": 1 - len(missing) / len(expected),
        "values": 1 - (len(missing) + len(wrong)) / len(expected),
    }
    remarks = [f"The field {key!r} is missing." for key in missing]
    remarks += [f"{key} should be {expected[key]!r}, not {data[key]!r}." for key in wrong]
    value = (scores["format"] + scores["fields"] + 2 * scores["values"]) / 4
    return value, {"feedback": " ".join(remarks) or "All fields are present and right.", "scores": scores}
