"""Waits 200 ms, as for a database, and nothing tells beforehand that it will."""

import time


def score(input, output, expected=None):
    time.sleep(0.2)
    return 1.0, {"feedback": "waited"}
