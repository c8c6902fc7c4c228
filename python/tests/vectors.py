"""The shared vectors in test/vectors/frames.jsonl: read by both languages, written by running this file."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from skynet._worker.chunk import CHUNK_HEAD, SEEDS_FOLLOW, SEPARATOR, WITH_OBSERVATIONS
from skynet._worker.frames import CHUNK, ROWS, encode_frame, encode_message
from skynet._worker.rows import ROWS_HEAD, encode_row

PATH = Path(__file__).resolve().parents[2] / "test/vectors/frames.jsonl"

Vector = dict[str, Any]

# Numbers that a double cannot hold exactly are strings of digits.
VECTORS: list[Vector] = [
    {"name": "a message without fields", "kind": "message", "message": {"type": "stop"}},
    {"name": "a message with a number", "kind": "message", "message": {"type": "start", "worker": 7}},
    {
        "name": "a message with text beyond ASCII",
        "kind": "message",
        "message": {"type": "printed", "stream": "stdout", "chunk": 3, "case": None, "text": "café ✓ 😀\u2028\n\x00"},
    },
    {
        "name": "a message with nested fields",
        "kind": "message",
        "message": {
            "type": "configure",
            "kind": "metric",
            "file": "/srv/metric.py",
            "start_method": "fork",
            "max_row_bytes": 1048576,
            "environment": {"OMP_NUM_THREADS": "1"},
        },
    },
    {
        "name": "a chunk of one case without expected values",
        "kind": "chunk",
        "chunk": 1,
        "cases": [{"input": '{"q": "2+2"}', "output": '"4"', "expected": None, "seed": None}],
    },
    {
        "name": "a chunk of two cases with blanks and exact integers",
        "kind": "chunk",
        "chunk": 4294967295,
        "cases": [
            {"input": '{"n": 9007199254740993}', "output": "[1, 2.50]", "expected": '{"label": "é"}', "seed": None},
            {"input": " {}\n", "output": "null", "expected": "null", "seed": None},
        ],
    },
    {
        "name": "a chunk with seeds",
        "kind": "chunk",
        "chunk": 2,
        "cases": [
            {"input": "{}", "output": "0", "expected": None, "seed": "18446744073709551615"},
            {"input": "{}", "output": "NaN", "expected": "{}", "seed": "0"},
        ],
    },
    {
        "name": "the end of a chunk without rows",
        "kind": "rows",
        "chunk": 9,
        "finished": True,
        "metric_ns": "0",
        "cpu_ns": "0",
        "wait_ns": "0",
        "rows": [],
    },
    {
        "name": "a score",
        "kind": "rows",
        "chunk": 1,
        "finished": False,
        "metric_ns": "1500",
        "cpu_ns": "1234567890123",
        "wait_ns": "9007199254740993",
        "rows": [
            {"position": 0, "kind": "score", "value": 0.1, "metric_ms": 0.0015, "texts": ["Correct.", "", ""]},
        ],
    },
    {
        "name": "rows of every kind",
        "kind": "rows",
        "chunk": 17,
        "finished": True,
        "metric_ns": "1",
        "cpu_ns": "2",
        "wait_ns": "3",
        "rows": [
            {
                "position": 0,
                "kind": "score",
                "value": -3.5,
                "metric_ms": 12.25,
                "texts": ["café ✓ 😀", '[["format",1.0],["é",0.5]]', '{"rubric":["a","b"]}'],
            },
            {
                "position": 255,
                "kind": "invalid_case",
                "value": 0.0,
                "metric_ms": 0.0,
                "texts": ["input is not JSON", "", ""],
            },
            {
                "position": 2,
                "kind": "metric_exception",
                "value": 0.0,
                "metric_ms": 1e-6,
                "texts": ["KeyError: 'label' (metric.py, line 12)", "Traceback\n  \x00", ""],
            },
            {
                "position": 1,
                "kind": "metric_return_value",
                "value": 0.0,
                "metric_ms": 1e300,
                "texts": ["score returned None", "", ""],
            },
        ],
    },
    {
        "name": "a chunk with an observation for one case",
        "kind": "chunk",
        "chunk": 9,
        "cases": [
            {
                "input": "{}",
                "output": "1",
                "expected": None,
                "seed": None,
                "observation": '{"id":"obs-1","run_ms":12.5}',
            },
            {"input": "{}", "output": "2", "expected": "{}", "seed": None, "observation": None},
        ],
    },
]

ROW_KINDS = ("score", "invalid_case", "metric_exception", "metric_return_value", "ran")


def encode(vector: Vector) -> bytes:
    """The whole frame that a vector describes."""
    if vector["kind"] == "message":
        return encode_message(vector["message"])
    if vector["kind"] == "chunk":
        cases = vector["cases"]
        seeds = [int(case["seed"]) for case in cases if case["seed"] is not None]
        flags = (SEEDS_FOLLOW if seeds else 0) | (WITH_OBSERVATIONS if "observation" in cases[0] else 0)
        head = CHUNK_HEAD.pack(vector["chunk"], len(cases), flags) + struct.pack(f"<{len(seeds)}Q", *seeds)
        return encode_frame(CHUNK, head, chunk_text(vector).encode())
    used = (int(vector["metric_ns"]), int(vector["cpu_ns"]), int(vector["wait_ns"]))
    rows = [
        encode_row(
            row["position"],
            ROW_KINDS.index(row["kind"]),
            row["value"],
            row["metric_ms"],
            tuple(text.encode() for text in row["texts"]),
        )
        for row in vector["rows"]
    ]
    return encode_frame(ROWS, ROWS_HEAD.pack(vector["chunk"], len(rows), vector["finished"], *used), *rows)


def chunk_text(vector: Vector) -> str:
    """What follows the head and the seeds."""
    names = ("input", "output", "expected", "observation")
    values = [case[name] or "" for case in vector["cases"] for name in names if name in case]
    return "".join(value + SEPARATOR for value in values)


def read() -> list[Vector]:
    """The vectors as the file holds them, each with its `hex`."""
    with PATH.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


if __name__ == "__main__":
    with PATH.open("w", encoding="utf-8", newline="\n") as file:
        for vector in VECTORS:
            # ASCII only, so that no reader splits a line at U+2028.
            file.write(json.dumps({**vector, "hex": encode(vector).hex()}) + "\n")
