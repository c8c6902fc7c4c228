"""Runs of artifacts: real templates and workers, driven over the sockets."""

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import StartRuns, WriteMetric
from fake_sidecar import PATIENCE_SECONDS, FakeSidecar
from test_template import is_alive, wait_until

from skynet._worker.rows import INVALID_CASE, METRIC_EXCEPTION, METRIC_RETURN_VALUE, RAN

# Does what the artifact says, and returns what that leaves in `result`.
DOES = """
import os, subprocess, sys, tempfile, threading, time
memory = []
def run(artifact, input):
    scope = dict(globals(), input=input, result=None)
    exec(artifact, scope)
    return scope["result"]
"""


def is_gone(path: str) -> bool:
    return not os.path.exists(path)


def test_a_run_gets_artifact_and_input_and_its_output_is_json(start_runs: StartRuns, start_method: str) -> None:
    source = 'def run(artifact, input):\n    print("running")\n    return {"é": (artifact, input, 1.5, True, None)}'
    sidecar = start_runs(source, start_method)
    row = sidecar.run(1, {"prompt": "p"}, {"q": 9007199254740993})
    assert (row.position, row.kind, row.value, row.detail, row.side_info) == (0, RAN, 0.0, "", "")
    assert row.text == '{"é":[{"prompt":"p"},{"q":9007199254740993},1.5,true,null]}'
    assert row.metric_ms > 0
    worker = sidecar.worker(1)
    assert worker is not None
    assert [rows.finished for rows in worker.rows] == [True]
    assert [(m["chunk"], m["case"], m["text"]) for m in worker.of_type("printed")] == [(1, 0, "running\n")]
    # Nobody told it to.
    assert (sidecar.ended(1)["exit_code"], sidecar.ended(1)["signal"]) == (0, None)
    # Where the sidecar finds it though it hears of the end first.
    assert sidecar.outbox(1) == (None, 1, [row])


def test_what_the_run_file_prints_without_a_line_end_comes_before_its_row(start_runs: StartRuns) -> None:
    sidecar = start_runs("def run(artifact, input): print('partial', end='')")
    worker = sidecar.start(1)
    assert sidecar.score(worker, [(b"{}", b"1")])[0].text == "null"
    (printed,) = worker.of_type("printed")
    assert (printed["chunk"], printed["case"], printed["text"]) == (1, 0, "partial")


@pytest.mark.parametrize(
    "source",
    [
        "async def run(artifact, input):\n    import asyncio\n    await asyncio.sleep(0)\n    return artifact + 1",
        "class Program:\n    def __call__(self, artifact, input): return artifact + 1\nrun = Program()",
        "import functools\nrun = functools.partial(lambda a, b, c: b + a, 1)",
        "def run(*both): return both[0] + 1",
        "def run(artifact, input, more=1): return artifact + more",
    ],
)
def test_whatever_can_be_called_with_both_runs(start_runs: StartRuns, start_method: str, source: str) -> None:
    assert start_runs(source, start_method).run(1, 41).text == "42"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (run.py, line 1)"),
        ("def run(:", "SyntaxError: invalid syntax (run.py, line 1)"),
        ("x = 1", "run.py defines no function called run; define `def run(artifact, input)`"),
        ("run = 3", "run is not a function but of type int; define `def run(artifact, input)`"),
        ("def run(input): pass", "run(input) cannot be called as run(artifact, input); define `def run("),
        ("def run(a, b, c): pass", "run(a, b, c) cannot be called as run(artifact, input); define `def run("),
        ("def run(*, artifact, input): pass", "run(*, artifact, input) cannot be called as run(artifact, input)"),
    ],
)
def test_run_code_that_cannot_run_says_why(
    start_sidecar: Callable[..., FakeSidecar], write_metric: WriteMetric, source: str, message: str
) -> None:
    sidecar = start_sidecar()
    loaded = sidecar.configure(write_metric(source, "run.py"), kind="run")["metric"]
    (problem,) = loaded["problems"]
    assert problem["step"] == "run_file"
    assert problem["message"].startswith(message)
    assert loaded["file"] == "run.py"
    assert sidecar.template is not None
    assert sidecar.template.of_type("ready") == []


def test_what_is_told_of_run_code(start_sidecar: Callable[..., FakeSidecar], write_metric: WriteMetric) -> None:
    sidecar = start_sidecar()
    source = "REWARD_SPEC = 'not one, and no business of run code'\nasync def run(input, artifact): pass"
    loaded = sidecar.configure(write_metric(source, "run.py"), kind="run")["metric"]
    assert len(loaded.pop("fingerprint")) == 64
    assert loaded.pop("load_ms") > 0
    assert loaded == {
        "file": "run.py",
        "problems": [],
        "arguments": 2,
        "signature": "(input, artifact)",
        "is_async": True,
        "warnings": [
            {
                "step": "run_file",
                "message": "run(input, artifact) gets the artifact first and the input second; "
                "define `def run(artifact, input)`",
            }
        ],
        "reward_spec_json": "",
        "reward_weights": None,
    }


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("float('nan')", "run returned nan, which JSON cannot hold; return what JSON can hold: dicts with string keys"),
        ("{'a': [1, {2}]}", 'run returned a dict, in which output["a"][1] is a set, which JSON cannot hold; return'),
        ("b'x'", "run returned a bytes, which JSON cannot hold"),
        ("object()", "run returned an object, which JSON cannot hold"),
        ("[1e400]", "run returned a list, in which output[0] is inf, which JSON cannot hold"),
        ("{(1, 2): 3}", "run returned a dict with a key of type tuple, which JSON cannot hold"),
        ("[10 ** 5000]", "run returned a list, in which output[0] is an int of 16610 bits, which JSON cannot hold"),
        ("__import__('numpy').zeros(2)", "run returned a ndarray, which JSON cannot hold"),
        ("(x := []).append(x) or x", "run returned a list, in which output[0][0]"),
    ],
)
def test_an_output_that_json_cannot_hold_says_what_it_is(start_runs: StartRuns, result: str, message: str) -> None:
    row = start_runs(DOES).run(1, f"result = {result}")
    assert row.kind == METRIC_RETURN_VALUE
    assert row.text.startswith(message)


def test_an_output_that_is_too_large_is_refused(start_runs: StartRuns) -> None:
    sidecar = start_runs(DOES)
    assert len(sidecar.run(1, "result = 'x' * 1_000_000").text) == 1_000_002
    sidecar = start_runs(DOES, max_row_bytes=1000)
    assert sidecar.run(1, "result = 'x' * 998").kind == RAN
    row = sidecar.run(2, "result = 'x' * 999")
    assert (row.kind, row.text) == (
        METRIC_RETURN_VALUE,
        "the output takes 1001 bytes, and at most 1000 are allowed; return a smaller value",
    )


def test_faults_of_a_run_are_told_and_cost_no_other(start_runs: StartRuns, start_method: str) -> None:
    sidecar = start_runs(DOES, start_method)
    row = sidecar.run(1, "{}['label']")
    assert (row.kind, row.text) == (METRIC_EXCEPTION, "KeyError: 'label' (run.py, line 6)")
    assert row.detail.startswith("Traceback (most recent call last)")
    assert "_worker" not in row.detail
    assert sidecar.run(2, "raise SystemExit(3)").text == "SystemExit: 3 (run.py, line 6)"
    worker = sidecar.start(3)
    (row,) = sidecar.score(worker, [(b"[]", b"1")])
    assert (row.kind, row.text[:18]) == (INVALID_CASE, "input is an array;")
    worker = sidecar.start(4)
    (row,) = sidecar.score(worker, [(b"{}", b"{]")])
    assert (row.kind, row.text[:20]) == (INVALID_CASE, "artifact is not JSON")
    worker = sidecar.start(5)
    worker.send_chunk(1, [(b"{}", json.dumps("os._exit(7)").encode())])
    assert sidecar.ended(5)["exit_code"] == 7
    assert sidecar.outbox(5) == (0, 1, [])
    assert sidecar.run(6, "result = 1").text == "1"
    assert [sidecar.ended(number)["exit_code"] for number in (1, 2, 3, 4, 6)] == [0] * 5


def test_no_run_knows_of_another(start_runs: StartRuns, start_method: str) -> None:
    sidecar = start_runs(DOES, start_method)
    artifact = "memory.append(input); open('left', 'w').close(); os.environ['LEFT'] = '1'; result = len(memory)"
    look = "result = [memory, os.listdir('.'), os.environ.get('LEFT')]"
    assert sidecar.run(1, artifact).text == "1"
    assert json.loads(sidecar.run(2, look).text) == [[], [], None]


def test_each_run_has_its_environment(start_runs: StartRuns, start_method: str) -> None:
    sidecar = start_runs(DOES, start_method)
    artifact = (
        "said = subprocess.check_output('echo $OPENAI_API_KEY', shell=True, text=True)\n"
        "result = [os.environ['OPENAI_API_KEY'], said]"
    )
    for number in (1, 2):
        found = json.loads(sidecar.run(number, artifact, OPENAI_API_KEY=f"token-{number}").text)
        assert found == [f"token-{number}", f"token-{number}\n"]


@pytest.mark.parametrize("prelude", ["", "import tempfile\ntempfile.gettempdir()\n"])
def test_the_scratch_folder_is_the_runs_own_and_goes_with_it(
    start_runs: StartRuns, start_method: str, prelude: str
) -> None:
    sidecar = start_runs(prelude + DOES, start_method)
    artifact = """
os.makedirs("deep/er/still")
open("deep/er/file", "w").close()
os.symlink("/", "root")
os.chmod("deep/er", 0)
os.chmod(".", 0o500)
result = [os.getcwd(), tempfile.gettempdir(), os.environ["TMPDIR"], oct(os.stat(".").st_mode)[-3:]]
"""
    before = sidecar.start(1)
    scratch = f"{sidecar.folder}/w1.dir"
    assert os.stat(scratch).st_mode & 0o777 == 0o700
    (row,) = sidecar.score(before, [(b"{}", json.dumps(artifact).encode())])
    assert json.loads(row.text) == [scratch, scratch, scratch, "500"]
    sidecar.ended(1)
    wait_until(lambda: not os.path.exists(scratch))
    assert os.path.exists("/")
    # Also where a run died, and where none was made.
    for number, action in ((2, "os.kill(os.getpid(), 9)"), (3, None)):
        worker = sidecar.start(number)
        if action is None:
            sidecar.peers.remove(worker)
            worker.sock.close()
        else:
            worker.send_chunk(1, [(b"{}", json.dumps(f"open('x', 'w').close(); {action}").encode())])
        sidecar.ended(number)
        wait_until(functools.partial(is_gone, f"{sidecar.folder}/w{number}.dir"))
    assert sidecar.process.poll() is None


# What can be found out about this process and its template without another's help.
LOOKS = """
found = {"argv": sys.argv, "cwd": os.getcwd(), "environ": dict(os.environ)}
for pid in ("self", os.getppid()):
    for name in ("cmdline", "maps"):
        with open(f"/proc/{pid}/{name}", errors="replace") as file:
            found[f"{pid} {name}"] = file.read()
names = os.listdir("/proc/self/fd")
found["fds"] = [os.readlink(f"/proc/self/fd/{name}") for name in names if os.path.exists(f"/proc/self/fd/{name}")]
found["modules"] = sorted(sys.modules)
found["sources"] = [str(getattr(module, "__file__", "")) for module in list(sys.modules.values())]
result = found
"""


def test_a_run_knows_nothing_but_its_own(start_runs: StartRuns, start_method: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "where-the-metric-is"
    elsewhere.mkdir()
    environment = {"PWD": str(elsewhere), "OLDPWD": str(elsewhere), "MINE": "kept"}
    sidecar = start_runs(DOES, start_method, environment=environment)
    sidecar.start(2)
    row = sidecar.run(1, LOOKS, OPENAI_API_KEY="token-1")
    assert row.kind == RAN, row.text
    found = json.loads(row.text)
    assert "where-the-metric-is" not in row.text
    assert found["environ"]["OPENAI_API_KEY"] == "token-1"
    assert found["environ"]["MINE"] == "kept"
    assert not {"PWD", "OLDPWD"} & found["environ"].keys()
    assert found["cwd"] == f"{sidecar.folder}/w1.dir"
    assert found["argv"] == [str(tmp_path / "metric/run.py")]
    assert "metric" not in found["modules"]
    others = [name for name in found["fds"] if name.startswith(sidecar.folder) and "/w1." not in name]
    assert others == [f"{sidecar.folder}/template"]
    assert sum(name.startswith("socket:") for name in found["fds"]) == 2


def test_a_run_that_is_interrupted_cleans_up_and_ends(start_runs: StartRuns, start_method: str) -> None:
    sidecar = start_runs(DOES, start_method)
    worker = sidecar.start(1)
    hangs = "try:\n    print('began')\n    time.sleep(1000)\nfinally:\n    print('cleaned up')"
    worker.send_chunk(1, [(b"{}", json.dumps(hangs).encode())])
    sidecar.until(lambda: "began" in worker.printed())
    sidecar.signal(1)
    assert (sidecar.ended(1)["exit_code"], sidecar.ended(1)["signal"]) == (0, None)
    sidecar.until(lambda: not worker.is_open)
    assert worker.printed() == "began\ncleaned up\n"
    assert worker.rows == []


def test_an_interrupt_after_the_answer_is_nothing(start_runs: StartRuns) -> None:
    # It is on its way out when the sidecar, which has its answer, tells it to go.
    sidecar = start_runs(DOES)
    ends = (
        "import atexit, signal\nreal = os._exit\n"
        "def slow(status):\n    os.kill(os.getpid(), signal.SIGINT)\n    real(status)\n"
        "os._exit = slow\nresult = 1"
    )
    assert sidecar.run(1, ends).text == "1"
    assert (sidecar.ended(1)["exit_code"], sidecar.ended(1)["signal"]) == (0, None)


def test_an_idle_run_worker_leaves_at_an_interrupt_and_with_its_connection(start_runs: StartRuns) -> None:
    sidecar = start_runs(DOES)
    sidecar.start(1)
    sidecar.signal(1)
    assert (sidecar.ended(1)["exit_code"], sidecar.ended(1)["signal"]) == (0, None)
    worker = sidecar.start(2)
    sidecar.peers.remove(worker)
    worker.sock.close()
    assert (sidecar.ended(2)["exit_code"], sidecar.ended(2)["signal"]) == (0, None)


# Starts a process that belongs to no group of the run's, and whose parent ends at once.
DAEMON = """
starts = '''
import subprocess
print(subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL).pid)
'''
print(subprocess.run([sys.executable, "-c", starts], check=True, stdout=subprocess.PIPE, text=True).stdout)
"""


@pytest.mark.parametrize(
    "leaves",
    [
        "print(subprocess.Popen(['sleep', '1000']).pid)",
        "print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid)",
        DAEMON,
    ],
)
def test_nothing_that_a_run_started_outlives_it(start_runs: StartRuns, start_method: str, leaves: str) -> None:
    sidecar = start_runs(DOES, start_method)
    other = sidecar.start(2)
    other.send_chunk(1, [(b"{}", json.dumps(DAEMON + "time.sleep(1000)").encode())])
    sidecar.until(lambda: other.printed().endswith("\n"))
    sidecar.run(1, leaves)
    worker = sidecar.worker(1)
    assert worker is not None
    sidecar.ended(1)
    pid = int(worker.printed())
    wait_until(lambda: not is_alive(pid))
    # What a run that goes on has started goes on too.
    assert is_alive(int(other.printed()))
    assert sidecar.run(3, "result = 3").text == "3"


def test_what_loading_started_belongs_to_no_run(start_runs: StartRuns) -> None:
    sidecar = start_runs("import subprocess\nserver = subprocess.Popen(['sleep', '1000'])\nprint(server.pid)\n" + DOES)
    assert sidecar.template is not None
    pid = int(sidecar.template.printed())
    for number in (1, 2):
        assert sidecar.run(number, "result = 1").text == "1"
        sidecar.ended(number)
    # By the second run's start all of the first one's end is done.
    assert is_alive(pid)


def test_a_process_that_a_run_forked_answers_nothing(start_runs: StartRuns, start_method: str) -> None:
    sidecar = start_runs(DOES, start_method)
    artifact = "pid = os.fork()\nif pid: os.waitpid(pid, 0)\nresult = 'parent' if pid else 'child'"
    row = sidecar.run(1, artifact)
    assert row.text == '"parent"'
    worker = sidecar.worker(1)
    assert worker is not None
    assert len(worker.rows) == 1


def test_threads_of_a_run_do_not_keep_it(start_runs: StartRuns) -> None:
    sidecar = start_runs(DOES)
    row = sidecar.run(1, "threading.Thread(target=time.sleep, args=(1000,), daemon=False).start(); result = 1")
    assert row.text == "1"
    assert sidecar.ended(1)["exit_code"] == 0


def test_stop_ends_runs_and_removes_what_they_left(start_runs: StartRuns, start_method: str) -> None:
    sidecar = start_runs(DOES, start_method)
    worker = sidecar.start(1)
    hangs = "os.makedirs('a/b'); print(os.getpid()); time.sleep(1000)"
    worker.send_chunk(1, [(b"{}", json.dumps(hangs).encode())])
    sidecar.until(lambda: worker.printed().endswith("\n"))
    assert sidecar.template is not None
    sidecar.template.send_message({"type": "stop"})
    assert sidecar.process.wait(PATIENCE_SECONDS) == 0
    assert not is_alive(int(worker.printed()))
    assert not os.path.exists(sidecar.folder)


def test_a_run_dies_with_the_sidecar(start_runs: StartRuns, start_method: str) -> None:
    sidecar = start_runs(DOES, start_method)
    worker = sidecar.start(1)
    worker.send_chunk(1, [(b"{}", json.dumps("print(os.getpid())\nwhile True: pass").encode())])
    sidecar.until(lambda: worker.printed().endswith("\n"))
    pid = int(worker.printed())
    sidecar.hang_up()
    assert sidecar.process.wait(PATIENCE_SECONDS) == 0
    wait_until(lambda: not is_alive(pid))


def test_sigterm_from_a_service_manager_ends_no_run(start_runs: StartRuns) -> None:
    sidecar = start_runs(DOES)
    row = sidecar.run(1, f"os.kill(os.getpid(), {int(signal.SIGTERM)}); result = 'went on'")
    assert row.text == '"went on"'
