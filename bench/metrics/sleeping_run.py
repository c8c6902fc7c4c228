"""Run code that takes 300 ms and computes nothing."""

import time


def run(artifact, input):
    time.sleep(0.3)
    return input
