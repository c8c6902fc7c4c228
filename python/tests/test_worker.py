"""A real template and a real worker, driven over the sockets."""

from __future__ import annotations

import json
import os
import random
import signal

import pytest
from conftest import StartWorker, contract_vectors
from fake_sidecar import Row

from skynet._worker.rows import INVALID_CASE, METRIC_EXCEPTION, METRIC_RETURN_VALUE, SCORE

EXACT_MATCH = """
def score(input, output, expected=None):
    want = expected["label"]
    if output == want:
        return 1.0, {"feedback": "Correct."}
    return 0.0, {"feedback": f"Expected {want!r}, got {output!r}."}
"""

# Does what the output says.
DOES = """
import os, signal, sys, threading, time, subprocess, math
def score(input, output, expected=None):
    if output == "ok":
        return 1.0, {"feedback": str(input.get("n", ""))}
    exec(output, globals())
    return 0.5, {"feedback": "did it"}
"""


def case(output: object, n: int = 0, expected: object = None) -> tuple[bytes, bytes, bytes]:
    return encoded({"n": n}), encoded(output), encoded(expected)


def encoded(value: object) -> bytes:
    return b"" if value is None else json.dumps(value).encode()


def facts(rows: list[Row]) -> list[tuple[int, int, float, str]]:
    return [(row.position, row.kind, row.value, row.text) for row in rows]


def test_scores_a_chunk(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(EXACT_MATCH, start_method)
    rows = sidecar.score(worker, [case("a", expected={"label": "a"}), case("b", expected={"label": "a"})])
    assert facts(rows) == [(0, SCORE, 1.0, "Correct."), (1, SCORE, 0.0, "Expected 'a', got 'b'.")]
    (sent,) = worker.rows
    assert 0 < sum(row.metric_ms for row in rows) * 1e6 == pytest.approx(sent.metric_ns, abs=10)
    assert sent.cpu_ns > 0
    sidecar.until(lambda: sidecar.outbox(1) == (None, 1, []), "for an empty outbox")


def test_every_vector_of_the_contract_through_a_worker(start_worker: StartWorker) -> None:
    vectors = contract_vectors("return_values.jsonl")
    sidecar, worker = start_worker("def score(input, output): return eval(output)")
    rows = sidecar.score(worker, [case(vector["returns"]) for vector in vectors])
    assert len(rows) == len(vectors)
    for row, vector in zip(rows, vectors):
        assert row.kind == (SCORE if vector["valid"] else METRIC_RETURN_VALUE), vector
        if vector["valid"]:
            assert row.value == vector["score"]
            assert vector.get("feedback", row.text) == row.text
            assert dict(json.loads(row.detail or "[]")) == vector.get("scores", {})
            assert json.loads(row.side_info or "{}") == vector.get("side_info", {})


def test_a_fault_costs_the_case_that_has_it_and_no_other(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    good = case("ok", 1)
    rows = sidecar.score(
        worker,
        [
            good,
            (b'{"n": "\xff"}', b'"ok"'),
            good,
            (b"[]", b'"ok"'),
            (b"{}", b'"ok"', b"3"),
            (b"{", b'"ok"'),
            (b"{}", b"[" * 100_000),
            (b'{"n": ' + b"9" * 5000 + b"}", b'"ok"'),
            case("{}['label']"),
            case("raise SystemExit(3)"),
            case("raise KeyboardInterrupt"),
            case("def f(): f()\nf()"),
            good,
        ],
    )
    assert [row.kind for row in rows] == [
        SCORE,
        INVALID_CASE,
        SCORE,
        *[INVALID_CASE] * 5,
        *[METRIC_EXCEPTION] * 4,
        SCORE,
    ]
    assert facts(rows)[0][2:] == facts(rows)[2][2:] == facts(rows)[-1][2:] == (1.0, "1")
    texts = [row.text for row in rows]
    assert texts[1].startswith("input is not UTF-8: byte 0xff at position 7")
    assert texts[3].startswith("input is an array; expected a JSON object")
    assert texts[4].startswith("expected is a number; it must be a JSON object")
    assert texts[5].startswith("input is not JSON")
    assert texts[6].startswith("output is nested too deeply")
    assert texts[7].startswith("input holds a number that Python refuses")
    assert texts[8] == "KeyError: 'label' (metric.py, line 6)"
    assert texts[9] == "SystemExit: 3 (metric.py, line 6)"
    assert texts[10] == "KeyboardInterrupt (metric.py, line 6)"
    assert texts[11].startswith("RecursionError: maximum recursion depth exceeded")
    assert "Traceback (most recent call last)" in rows[8].detail
    assert all(row.metric_ms == 0 for row in rows if row.kind == INVALID_CASE)
    assert all(row.metric_ms > 0 for row in rows if row.kind != INVALID_CASE)


def test_what_comes_in_arrives_exact(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker("def score(input, output): return 1.0, {'feedback': repr((input, output))}")
    sent = '{"n": 9007199254740993, "__proto__": 1, "t": "\\u2028é\\ud83d\\ude00\\ud800"}'
    rows = sidecar.score(worker, [(sent.encode(), b"[NaN, 0.1, true, null]"), (b"{}", b" \n1 ")])
    assert rows[0].text == "({'n': 9007199254740993, '__proto__': 1, 't': '\\u2028é😀\\ud800'}, [nan, 0.1, True, None])"
    assert rows[1].text == "({}, 1)"


def test_each_call_gets_values_of_its_own(start_worker: StartWorker) -> None:
    source = """
def score(input, output, expected=None):
    seen = len(input) + len(output) + len(expected)
    input["new"] = output["new"] = expected["new"] = 1
    return seen, {"feedback": ""}
"""
    sidecar, worker = start_worker(source)
    rows = sidecar.score(worker, [(b"{}", b"{}", b"{}")] * 3)
    assert [row.value for row in rows] == [0, 0, 0]


def test_whatever_is_awaitable_is_awaited_on_one_loop(start_worker: StartWorker, start_method: str) -> None:
    source = """
import asyncio
loops = set()
class Judge:
    async def __call__(self, input, output, expected=None):
        loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        if output == "raise":
            raise ValueError("no")
        return len(loops), {"feedback": ""}
score = Judge()
"""
    sidecar, worker = start_worker(source, start_method)
    rows = sidecar.score(worker, [case("a"), case("raise"), case("b")])
    assert [row.value for row in rows] == [1, 0, 1]
    assert rows[1].text == "ValueError: no (metric.py, line 9)"
    assert "asyncio" not in rows[1].detail


def test_a_plain_function_that_returns_a_coroutine_is_awaited(start_worker: StartWorker) -> None:
    source = "async def judge(output): return 1, {'feedback': output}\ndef score(input, output): return judge(output)"
    sidecar, worker = start_worker(source)
    assert sidecar.score(worker, [case("x")])[0].text == "x"


def test_prints_are_told_with_their_case(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    actions = [
        "print('one')",
        "print('part', end='')",
        "sys.stderr.write('err\\n')",
        "os.write(1, b'raw\\n')",
        "subprocess.run(['sh', '-c', 'echo child; echo child-err >&2'])",
        "open('/dev/stderr', 'w').write('device\\n')",
    ]
    rows = sidecar.score(worker, [case(action) for action in actions])
    assert [row.kind for row in rows] == [SCORE] * len(actions), [row.text for row in rows]
    printed = [(m["stream"], m["chunk"], m["case"], m["text"]) for m in worker.of_type("printed")]
    assert printed == [("stdout", 1, 0, "one\n"), ("stdout", 1, 1, "part"), ("stderr", 1, 2, "err\n")]
    sidecar.until(lambda: sidecar.logged.get("w1.out", b"").count(b"\n") == 4)
    assert sorted(sidecar.logged["w1.out"].splitlines()) == [b"child", b"child-err", b"device", b"raw"]


def test_megabytes_of_prints_do_no_harm(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    flood = "for s in (sys.stdout, sys.stderr):\n    s.write('0123456789\\n' * 100_000)"
    rows = sidecar.score(worker, [case(flood), case("ok", 5)])
    assert facts(rows)[1] == (1, SCORE, 1.0, "5")
    assert worker.printed("stdout") == worker.printed("stderr") == "0123456789\n" * 100_000


@pytest.mark.parametrize(
    "action",
    [
        "for d in (0, 1, 2): os.close(d)",
        "pid = os.fork()\nif pid: os.waitpid(pid, 0)",
        "pid = os.fork()\nif not pid: raise SystemExit(7)\nassert os.waitpid(pid, 0)[1] == 7 << 8",
        "pid = os.fork()\nif not pid: 1 / 0\nassert os.waitpid(pid, 0)[1] != 0",
        "pid = os.fork()\nif not pid:\n    os.setsid()\n    print('from a fork')\nelse: os.waitpid(pid, 0)",
        "subprocess.Popen(['sleep', '1000'])",
        "subprocess.Popen(['sleep', '1000'], start_new_session=True)",
        "for _ in range(3): threading.Thread(target=time.sleep, args=(1000,), daemon=False).start()",
        "threading.Thread(target=lambda: print('from a thread')).start()",
        "signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)",
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])",
        "sys.stdout = sys.stderr = None",
        "sys.setrecursionlimit(200)",
        "import json, time; json.JSONDecoder = json.loads = time.monotonic_ns = None",
        "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as p: assert p.map(abs, [-1]) == [1]",
        "sys.stdout.detach(); sys.stdout.close()",
        "p = subprocess.Popen(['sleep', '1000'])\np.terminate()\nassert p.wait(20) == -15",
        "import multiprocessing as m\np = m.get_context('fork').Process(target=time.sleep, args=(1000,))\np.start()\n"
        "p.terminate()\np.join(20)\nassert p.exitcode == -15",
        "os.chdir('/')",
    ],
)
def test_a_metric_may_do_what_it_likes_to_its_process(
    start_worker: StartWorker, start_method: str, action: str
) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    rows = sidecar.score(worker, [case("ok", 1), case(action), case("ok", 2)])
    assert facts(rows) == [(0, SCORE, 1.0, "1"), (1, SCORE, 0.5, "did it"), (2, SCORE, 1.0, "2")]
    assert facts(sidecar.score(worker, [case("ok", 3)], number=2)) == [(0, SCORE, 1.0, "3")]
    assert sidecar.process.poll() is None


def test_an_alarm_that_a_case_leaves_behind_costs_no_other_chunk(start_worker: StartWorker) -> None:
    source = """
import signal
def fire(*_): raise TimeoutError("too late")
signal.signal(signal.SIGALRM, fire)
def score(input, output):
    if output == "alarm":
        signal.setitimer(signal.ITIMER_REAL, 0.05)
    return 1.0, {"feedback": ""}
"""
    sidecar, worker = start_worker(source)
    sidecar.score(worker, [case("alarm")])
    sidecar.until(lambda: "TimeoutError: too late" in worker.printed("stderr"))
    assert [row.kind for row in sidecar.score(worker, [case("x")], number=2)] == [SCORE]


def test_large_results_arrive_whole(start_worker: StartWorker) -> None:
    source = "def score(input, output): return 1.0, {'feedback': 'x' * output, 'n': output}"
    sidecar, worker = start_worker(source, max_row_bytes=1 << 20)
    sizes = [10, 65_000, 65_500, 10, 200_000, 1_040_000, 1_048_600, 3_000_000, 20]
    rows = sidecar.score(worker, [case(size) for size in sizes])
    assert [len(row.text) for row in rows if row.kind == SCORE] == [10, 65_000, 65_500, 10, 200_000, 1_040_000, 20]
    refused = [row for row in rows if row.kind != SCORE]
    assert [(row.kind, row.value, row.side_info) for row in refused] == [(METRIC_RETURN_VALUE, 0.0, "")] * 2
    assert refused[1].text == (
        "the result takes 3000049 bytes, and at most 1048576 are allowed; shorten the feedback and the side info"
    )


def test_an_error_that_is_too_large_loses_its_traceback_only(start_worker: StartWorker) -> None:
    source = "def score(input, output): raise ValueError('x' * 1_000_000)"
    sidecar, worker = start_worker(source, max_row_bytes=8192)
    (row,) = sidecar.score(worker, [case(1)])
    assert (row.kind, row.detail) == (METRIC_EXCEPTION, "")
    assert row.text.startswith("ValueError: xxx")
    assert row.text.endswith("(cut: 1000012 bytes in all) (metric.py, line 1)")


def test_many_small_results_come_before_the_chunk_ends(start_worker: StartWorker, tmp_path: object) -> None:
    source = """
import os
def score(input, output):
    if output:
        while not os.path.exists(output):
            pass
    return input["n"], {"feedback": "x" * 5000}
"""
    sidecar, worker = start_worker(source)
    gate = f"{tmp_path}/gate"
    worker.send_chunk(1, [*(case("", n) for n in range(30)), case(gate, 30)])
    sidecar.until(lambda: sidecar.outbox(1)[0] == 30)
    _, _, waiting = sidecar.outbox(1)
    sent = worker.all_rows(1)
    sidecar.until(lambda: len({row.position for row in [*worker.all_rows(1), *waiting]}) == 30)
    assert {row.value for row in [*sent, *waiting, *worker.all_rows(1)]} == set(map(float, range(30)))
    open(gate, "w").close()
    sidecar.until(lambda: worker.has_finished(1))
    assert sorted(row.value for row in worker.all_rows(1)) == list(map(float, range(31)))


@pytest.mark.parametrize(
    ("action", "exit_code", "signal_number"),
    [
        ("os._exit(0)", 0, None),
        ("os._exit(3)", 3, None),
        ("os.kill(os.getpid(), signal.SIGKILL)", None, signal.SIGKILL),
        ("import ctypes; ctypes.string_at(0)", None, signal.SIGSEGV),
        ("os.abort()", None, signal.SIGABRT),
    ],
)
def test_the_outbox_tells_what_a_dead_worker_had(
    start_worker: StartWorker, start_method: str, action: str, exit_code: int | None, signal_number: int | None
) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    worker.send_chunk(5, [case("ok", 1), case("ok", 2), case(action), case("ok", 3)])
    end = sidecar.ended(1)
    assert (end["exit_code"], end["signal"], end["pid"]) == (exit_code, signal_number, worker.hello["pid"])
    sidecar.until(lambda: not worker.is_open)
    position, chunk, rows = sidecar.outbox(1)
    assert (position, chunk) == (2, 5)
    found = {row.position: row.text for row in [*worker.all_rows(5), *rows]}
    assert found == {0: "1", 1: "2"}
    if signal_number == signal.SIGSEGV:
        sidecar.until(lambda: b"Segmentation fault" in sidecar.logged.get("w1.out", b""))


def test_an_interrupt_lets_finally_blocks_run_and_ends_the_worker(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    hangs = "try:\n    print('began')\n    while True: pass\nfinally:\n    print('cleaned up')"
    worker.send_chunk(1, [case("ok", 1), case(hangs), case("print('never')")])
    sidecar.until(lambda: "began" in worker.printed())
    sidecar.signal(1)
    assert (sidecar.ended(1)["exit_code"], sidecar.ended(1)["signal"]) == (0, None)
    sidecar.until(lambda: not worker.is_open)
    assert worker.printed() == "began\ncleaned up\n"
    assert [row.position for row in worker.all_rows(1)] in ([], [0])


@pytest.mark.parametrize(
    "waits",
    [
        "time.sleep(1000)",
        "await asyncio.sleep(1000)",
        "await asyncio.Event().wait()",
        "threading.Event().wait()",
        "subprocess.run(['sleep', '1000'])",
    ],
)
def test_an_interrupt_reaches_a_metric_that_waits(start_worker: StartWorker, waits: str) -> None:
    source = f"""
import asyncio, subprocess, threading, time
{"async " if "await" in waits else ""}def score(input, output):
    try:
        print("began")
        {waits}
    finally:
        print("cleaned up")
"""
    sidecar, worker = start_worker(source)
    worker.send_chunk(1, [case("x"), case("x")])
    sidecar.until(lambda: "began" in worker.printed())
    sidecar.signal(1)
    assert sidecar.ended(1)["exit_code"] == 0
    sidecar.until(lambda: not worker.is_open)
    assert worker.printed() == "began\ncleaned up\n"


def test_a_metric_that_swallows_the_interrupt_takes_no_further_case(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    swallows = "try:\n    print('began')\n    time.sleep(1000)\nexcept BaseException: print('swallowed')"
    worker.send_chunk(1, [case(swallows), case("print('never')")])
    sidecar.until(lambda: "began" in worker.printed())
    sidecar.signal(1)
    assert sidecar.ended(1)["exit_code"] == 0
    sidecar.until(lambda: not worker.is_open)
    assert worker.printed() == "began\nswallowed\n"


def test_an_idle_worker_leaves_at_an_interrupt(start_worker: StartWorker, start_method: str) -> None:
    sidecar, _ = start_worker(DOES, start_method)
    sidecar.signal(1)
    assert (sidecar.ended(1)["exit_code"], sidecar.ended(1)["signal"]) == (0, None)


def test_a_worker_leaves_when_its_connection_ends(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    sidecar.score(worker, [case("ok")])
    sidecar.peers.remove(worker)
    worker.sock.close()
    assert (sidecar.ended(1)["exit_code"], sidecar.ended(1)["signal"]) == (0, None)


def test_sigterm_from_a_service_manager_ends_nothing(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    sidecar.score(worker, [case("ok")])
    os.kill(worker.hello["pid"], signal.SIGTERM)
    sidecar.process.send_signal(signal.SIGTERM)
    assert facts(sidecar.score(worker, [case("ok", 2)], number=2)) == [(0, SCORE, 1.0, "2")]


def test_a_recalled_chunk_ends_after_the_case_in_hand(start_worker: StartWorker, tmp_path: object) -> None:
    sidecar, worker = start_worker(DOES)
    gate = f"{tmp_path}/gate"
    worker.send_chunk(300, [case(f"while not os.path.exists({gate!r}): pass"), *[case("ok")] * 50])
    sidecar.until(lambda: sidecar.outbox(1)[0] == 0)
    with open(f"{sidecar.folder}/w1.box", "r+b") as file:
        file.seek(20)
        file.write(bytes([300 & 0xFF]))
    open(gate, "w").close()
    sidecar.until(lambda: worker.has_finished(300))
    assert facts(worker.all_rows(300)) == [(0, SCORE, 0.5, "did it")]
    # 44 is the low byte of both numbers.
    assert len(sidecar.score(worker, [case("ok")] * 3, number=556)) == 3


def test_a_chunk_that_comes_while_another_is_scored_is_next(start_worker: StartWorker, tmp_path: object) -> None:
    sidecar, worker = start_worker(DOES)
    gate = f"{tmp_path}/gate"
    worker.send_chunk(1, [case(f"while not os.path.exists({gate!r}): pass")])
    sidecar.until(lambda: sidecar.outbox(1)[0] == 0)
    worker.send_chunk(2, [case("ok")] * 3)
    open(gate, "w").close()
    sidecar.until(lambda: worker.has_finished(1) and worker.has_finished(2))
    assert facts(worker.all_rows(1)) == [(0, SCORE, 0.5, "did it")]
    assert facts(worker.all_rows(2)) == [(position, SCORE, 1.0, "0") for position in range(3)]


def test_seeds_make_a_metric_repeatable(start_worker: StartWorker, start_method: str) -> None:
    source = """
import random
import numpy
def score(input, output): return random.random(), {"feedback": repr(float(numpy.random.random()))}
"""
    sidecar, worker = start_worker(source, start_method)
    seeds = [7, 7, 2**64 - 1, 0]
    rows = sidecar.score(worker, [case(1)] * 4, seeds)
    again = sidecar.score(worker, [case(1)] * 4, seeds, number=2)
    assert [(row.value, row.text) for row in rows] == [(row.value, row.text) for row in again]
    assert rows[0].value == rows[1].value == random.Random(7).random()
    assert rows[0].text == rows[1].text
    assert len({row.value for row in rows}) == len({row.text for row in rows}) == 3


def test_workers_share_no_random_sequence(start_worker: StartWorker) -> None:
    source = """
import random
import numpy
def score(input, output): return random.random(), {"feedback": repr(float(numpy.random.random()))}
"""
    sidecar, first = start_worker(source)
    rows = [sidecar.score(worker, [case(1)])[0] for worker in (first, sidecar.start(2), sidecar.start(3))]
    assert len({row.value for row in rows}) == len({row.text for row in rows}) == 3


def test_cpu_time_counts_children_and_not_sleep(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    burn = "import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass"
    sidecar.score(worker, [case("time.sleep(0.2)")])
    sidecar.score(worker, [case(f"subprocess.run([sys.executable, '-c', {burn!r}])")], number=2)
    slept, burnt = (next(rows for rows in worker.rows if rows.finished and rows.chunk == n) for n in (1, 2))
    assert slept.metric_ns > 190e6
    assert slept.cpu_ns < 100e6
    assert burnt.cpu_ns > 90e6


def test_a_reward_tells_that_nothing_was_measured(start_worker: StartWorker) -> None:
    source = """
from skynet import reward
REWARD_SPEC = {
    "weights": {"accuracy": 0.5, "speed": 0.5, "cost": 0},
    "speed": {"reference": 2000},
    "cost": {"reference": 0.01},
}
def score(input, output): return reward(REWARD_SPEC, 1, "Correct.")
"""
    sidecar, worker = start_worker(source)
    (row,) = sidecar.score(worker, [case(1)])
    assert (row.value, row.text) == (
        0.5,
        "Correct. The run time was not measured (no observation belongs to this case), so speed scores 0.",
    )
    assert json.loads(row.detail) == [["accuracy", 1.0], ["speed", 0.0], ["cost", 0.0]]
