"""What the metric's call costs by itself: the floor under a worker's time.

    python bench/bare_call.py bench/metric.py < cases.jsonl

Each line of standard input is one case: `[input, output, expected]`. All are parsed before the clock starts. Prints one
JSON object: `cpu_us`, the CPU time of a call in microseconds, one number a pass over all cases.
"""

from __future__ import annotations

import json
import runpy
import sys
from time import process_time_ns

PASSES = 21


def main() -> None:
    """Time the passes and print them."""
    score = runpy.run_path(sys.argv[1])["score"]
    cases = [json.loads(line) for line in sys.stdin]
    cpu_us = []
    for _ in range(PASSES):
        began = process_time_ns()
        for input_, output, expected in cases:
            score(input_, output, expected)
        cpu_us.append((process_time_ns() - began) / 1e3 / len(cases))
    print(json.dumps({"cpu_us": cpu_us}))


if __name__ == "__main__":
    main()
