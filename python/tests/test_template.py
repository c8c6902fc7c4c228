"""A real template: loading, starting, signalling and reaping workers, and leaving nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import StartWorker, WriteMetric
from fake_sidecar import BOOT, PATIENCE_SECONDS, PYTHON_DIR, FakeSidecar, Peer

StartSidecar = Callable[..., FakeSidecar]

GOOD = 'def score(input, output, expected=None):\n    return 1.0, {"feedback": "Correct."}\n'
DOES = """
import ctypes, os, re, subprocess, sys, threading, time
def score(input, output):
    exec(output, globals())
    return 1.0, {"feedback": ""}
"""


def does(action: str) -> tuple[bytes, bytes]:
    return b"{}", json.dumps(action).encode()


def is_alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has reaped yet does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def printed_pids(sidecar: FakeSidecar, worker: Peer, count: int) -> list[int]:
    sidecar.until(lambda: len(worker.printed().split()) == count, "for process ids")
    return [int(word) for word in worker.printed().split()]


def test_says_hello_with_its_clock(start_sidecar: StartSidecar) -> None:
    sidecar = start_sidecar()
    before = time.monotonic_ns()
    sidecar.until(lambda: sidecar.template)
    hello = sidecar.peers[0].hello
    assert {**hello, "clock_ns": 0} == {
        "type": "hello",
        "role": "template",
        "worker": 0,
        "secret": "",
        "pid": sidecar.process.pid,
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": os.path.normpath(sys.executable),
        "clock_ns": 0,
    }
    assert before <= hello["clock_ns"] <= time.monotonic_ns()


def test_messages_of_a_start(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(GOOD, start_method)
    template = sidecar.template
    assert template is not None
    kinds = ["hello", *(["loaded"] if start_method == "fork" else []), "ready", "started"]
    assert [message["type"] for message in template.messages] == kinds
    assert template.of_type("started") == [{"type": "started", "worker": 1, "pid": worker.hello["pid"]}]
    kinds = ["hello", *(["loaded"] if start_method == "spawn" else []), "ready"]
    assert [message["type"] for message in worker.messages] == kinds


def test_many_workers_at_once(start_worker: StartWorker) -> None:
    sidecar, _ = start_worker(GOOD)
    workers = [sidecar.start(number) for number in range(2, 18)]
    for worker in workers:
        assert len(sidecar.score(worker, [(b"{}", b"1")])) == 1
    assert len({os.getpgid(worker.hello["pid"]) for worker in workers}) == len(workers)


def test_a_worker_shows_the_secret_that_it_was_started_with(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(GOOD, start_method)
    assert [worker.hello["secret"], sidecar.start(2).hello["secret"]] == ["s-1", "s-2"]


def test_a_metric_with_problems_starts_no_worker(start_sidecar: StartSidecar, write_metric: WriteMetric) -> None:
    sidecar = start_sidecar()
    loaded = sidecar.configure(write_metric("1/0"))
    assert [problem["step"] for problem in loaded["metric"]["problems"]] == ["metric_file"]
    template = sidecar.template
    assert template is not None
    template.send_message({"type": "start", "worker": 1, "secret": "s-1"})
    sidecar.until(lambda: template.of_type("start_failed"))
    assert template.of_type("start_failed")[0] == {
        "type": "start_failed",
        "worker": 1,
        "error": "the file is not loaded",
    }
    assert template.of_type("ready") == []


def test_a_spawned_worker_tells_why_it_cannot_load(start_sidecar: StartSidecar, write_metric: WriteMetric) -> None:
    sidecar = start_sidecar()
    sidecar.configure(write_metric("1/0"), "spawn")
    template = sidecar.template
    assert template is not None
    template.send_message({"type": "start", "worker": 1, "secret": "s-1"})
    sidecar.until(lambda: sidecar.worker(1))
    worker = sidecar.worker(1)
    assert worker is not None
    worker.send_message(sidecar.settings)
    sidecar.until(lambda: worker.of_type("loaded"))
    (problem,) = worker.of_type("loaded")[0]["metric"]["problems"]
    assert problem["message"] == "ZeroDivisionError: division by zero (metric.py, line 1)"
    assert worker.of_type("ready") == []


def test_a_start_that_the_system_refuses_is_told(start_worker: StartWorker) -> None:
    sidecar, _ = start_worker(GOOD)
    template = sidecar.template
    assert template is not None
    template.send_message({"type": "start", "worker": 1, "secret": "s-1"})
    sidecar.until(lambda: template.of_type("start_failed"))
    assert template.of_type("start_failed")[0]["error"] == "worker 1 cannot be started: File exists"
    assert len(sidecar.score(sidecar.start(2), [(b"{}", b"1")])) == 1


def test_the_environment_is_set_where_it_is_not(write_metric: WriteMetric, start_method: str) -> None:
    source = "import os\ndef score(i, o): return 1.0, {'feedback': os.environ['OMP_NUM_THREADS'] + os.environ['MINE']}"
    with FakeSidecar(environment={"MINE": "set"}) as sidecar:
        sidecar.configure(write_metric(source), start_method, environment={"OMP_NUM_THREADS": "1", "MINE": "unset"})
        assert sidecar.score(sidecar.start(), [(b"{}", b"1")])[0].text == "1set"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_text_is_utf8_whatever_the_locale(write_metric: WriteMetric, start_method: str, locale: str) -> None:
    source = "# é\ndef score(i, o):\n    print(o)\n    return 1.0, {'feedback': o + 'é'}"
    with FakeSidecar(environment={"LC_ALL": locale, "LANG": locale}) as sidecar:
        path = write_metric(source).rename(write_metric(source).parent / "métric.py")
        sidecar.configure(path, start_method)
        worker = sidecar.start()
        assert sidecar.score(worker, [(b"{}", '"😀"'.encode())])[0].text == "😀é"
        assert worker.printed() == "😀\n"


def test_what_loading_prints_is_told(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker("import os\nprint('banner', end='')\nos.write(1, b'raw')\n" + GOOD, start_method)
    loader = worker if start_method == "spawn" else sidecar.template
    assert loader is not None
    sidecar.until(lambda: loader.printed() == "banner")
    assert loader.of_type("printed")[0]["case"] is None
    log = "w1.out" if start_method == "spawn" else "t.out"
    sidecar.until(lambda: sidecar.logged.get(log) == b"raw")


def test_imports_see_the_users_path_and_not_ours(write_metric: WriteMetric, start_method: str, tmp_path: Path) -> None:
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "from_pythonpath.py").write_text("VALUE = 'found'\n")
    source = f"""
import sys, from_pythonpath, skynet
def score(input, output):
    ours = [entry for entry in sys.path if entry in ("", {str(PYTHON_DIR)!r}, {os.getcwd()!r})]
    return 1.0, {{"feedback": from_pythonpath.VALUE, "ours": ours, "first": sys.path[0]}}
"""
    # Without the `.pth` file that makes this checkout importable for the tests.
    environment = {"PYTHONPATH": str(tmp_path / "installed")}
    with FakeSidecar(environment=environment) as sidecar:
        path = write_metric(source)
        sidecar.configure(path, start_method)
        (row,) = sidecar.score(sidecar.start(), [(b"{}", b"1")])
    assert (row.text, json.loads(row.side_info)) == ("found", {"ours": [], "first": str(path.parent)})


HAZARDS = {
    "threads": ("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()", "thread"),
    "a child": ("import subprocess\nchild = subprocess.Popen(['sleep', '1000'])", "loading left a child process"),
    "a data file": ("data = open(__file__)", "open (metric.py)"),
    "a socket": ("import socket\ns = socket.socket()", "open (socket:["),
    "sqlite": ("import sqlite3\ndb = sqlite3.connect(__file__ + '.db')\ndb.execute('create table t (a)')", ".db)"),
    "an event loop": ("import asyncio\nloop = asyncio.new_event_loop()", "open (anon_inode:[eventpoll])"),
    "shared memory": ("import mmap\nm = mmap.mmap(-1, 4096)", "loading left writable shared memory"),
    "a pipe": ("import os\nends = os.pipe()", "open (pipe:["),
}


@pytest.mark.parametrize(("source", "text"), HAZARDS.values(), ids=HAZARDS)
def test_what_makes_forking_unsafe_is_found(
    start_sidecar: StartSidecar, write_metric: WriteMetric, source: str, text: str
) -> None:
    loaded = start_sidecar().configure(write_metric(f"{source}\n{GOOD}"))
    assert loaded["metric"]["problems"] == []
    assert any(text in hazard for hazard in loaded["fork_hazards"]), loaded["fork_hazards"]


def test_what_forks_may_share_is_no_hazard(start_sidecar: StartSidecar, write_metric: WriteMetric) -> None:
    source = """
import logging, mmap, subprocess, threading
logging.basicConfig(filename=__file__ + ".log")
null, random = open("/dev/null", "r+"), open("/dev/urandom", "rb")
private = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE)
subprocess.run(["true"])
thread = threading.Thread(target=int)
thread.start()
thread.join()
"""
    assert start_sidecar().configure(write_metric(source + GOOD))["fork_hazards"] == []


def test_a_file_that_forks_while_loading_is_loaded_once(start_sidecar: StartSidecar, write_metric: WriteMetric) -> None:
    sidecar = start_sidecar()
    sidecar.configure(write_metric("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n" + GOOD))
    assert len(sidecar.score(sidecar.start(), [(b"{}", b"1")])) == 1
    template = sidecar.template
    assert template is not None
    assert len(template.of_type("loaded")) == 1


def test_exit_codes_survive_a_metric_that_ignores_sigchld(
    start_sidecar: StartSidecar, write_metric: WriteMetric
) -> None:
    source = "import os, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\ndef score(i, o): os._exit(7)"
    sidecar = start_sidecar()
    sidecar.configure(write_metric(source))
    worker = sidecar.start()
    worker.send_chunk(1, [(b"{}", b"1")])
    assert sidecar.ended(1)["exit_code"] == 7


def test_signals_reach_the_worker_its_group_and_nobody_later(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    action = "child = subprocess.Popen(['sleep', '1000'])\nprint(child.pid)\nwhile True: pass"
    worker.send_chunk(1, [does(action)])
    (child,) = printed_pids(sidecar, worker, 1)
    sidecar.signal(1, signal.SIGKILL, group=True)
    assert sidecar.ended(1)["signal"] == signal.SIGKILL
    wait_until(lambda: not is_alive(child))
    sidecar.signal(1, signal.SIGKILL)
    sidecar.signal(99, signal.SIGKILL)
    assert sidecar.start(2).hello["worker"] == 2


def test_a_stop_does_not_stand_in_line_behind_starts(start_sidecar: StartSidecar, write_metric: WriteMetric) -> None:
    sidecar = start_sidecar()
    sidecar.configure(write_metric(GOOD))
    template = sidecar.template
    assert template is not None
    sidecar.process.send_signal(signal.SIGSTOP)
    for number in range(1, 51):
        template.send_message({"type": "start", "worker": number, "secret": "s"})
    template.send_message({"type": "stop"})
    sidecar.process.send_signal(signal.SIGCONT)
    assert sidecar.process.wait(PATIENCE_SECONDS) == 0
    assert template.of_type("started") == []


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_what_a_dead_worker_started_dies_with_it(start_worker: StartWorker, end: str) -> None:
    sidecar, worker = start_worker(DOES)
    action = (
        "print(subprocess.Popen(['sleep', '1000']).pid)\n"
        f"pid = os.fork()\nif not pid: time.sleep(1000)\nprint(pid)\n{end}"
    )
    worker.send_chunk(1, [does(action)])
    sidecar.ended(1)
    started = printed_pids(sidecar, worker, 2)
    wait_until(lambda: not any(map(is_alive, started)))


HOLDS_THE_LOCK = "re.match('(a+)+$', 'a' * 64 + 'b')"


@pytest.mark.parametrize("busy", [HOLDS_THE_LOCK, "time.sleep(1000)", "while True: pass"])
def test_nothing_outlives_the_sidecar(start_worker: StartWorker, start_method: str, busy: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    start = "print(os.getpid(), subprocess.Popen(['sleep', '1000']).pid, flush=True)\n"
    away = "print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid, flush=True)\n"
    worker.send_chunk(1, [does(start + away + busy)])
    pids = printed_pids(sidecar, worker, 3)
    assert all(map(is_alive, pids))
    folder, template = sidecar.folder, sidecar.process
    sidecar.hang_up()
    assert template.wait(PATIENCE_SECONDS) == 0
    wait_until(lambda: not any(map(is_alive, pids)))
    assert not os.path.exists(folder)


def test_workers_die_with_the_sidecar_though_the_template_is_stopped(
    start_worker: StartWorker, start_method: str
) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    start = "print(os.getpid(), subprocess.Popen(['sleep', '1000']).pid)"
    worker.send_chunk(1, [does(f"{start}\n{HOLDS_THE_LOCK}")])
    pids = printed_pids(sidecar, worker, 2)
    sidecar.process.send_signal(signal.SIGSTOP)
    try:
        sidecar.hang_up()
        wait_until(lambda: not any(map(is_alive, pids)))
    finally:
        sidecar.process.send_signal(signal.SIGCONT)


def test_a_template_that_loads_dies_with_the_sidecar(start_sidecar: StartSidecar, write_metric: WriteMetric) -> None:
    sidecar = start_sidecar()
    sidecar.until(lambda: sidecar.template)
    template = sidecar.template
    assert template is not None
    settings = {"start_method": "fork", "max_row_bytes": 1 << 20, "environment": {}}
    path = write_metric(f"import re\nprint('loading')\n{HOLDS_THE_LOCK}")
    template.send_message({"type": "configure", "kind": "metric", "file": str(path), **settings})
    sidecar.until(lambda: "loading" in template.printed())
    sidecar.hang_up()
    assert sidecar.process.wait(PATIENCE_SECONDS) == -signal.SIGKILL


def test_workers_die_with_the_template(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    start = "print(os.getpid(), subprocess.Popen(['sleep', '1000']).pid)"
    worker.send_chunk(1, [does(f"{start}\n{HOLDS_THE_LOCK}")])
    pids = printed_pids(sidecar, worker, 2)
    sidecar.process.kill()
    sidecar.process.wait()
    wait_until(lambda: not any(map(is_alive, pids)))


def test_stop_ends_everything_with_exit_code_0(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    worker.send_chunk(1, [does("print(os.getpid(), subprocess.Popen(['sleep', '1000']).pid)\ntime.sleep(1000)")])
    pids = printed_pids(sidecar, worker, 2)
    template = sidecar.template
    assert template is not None
    template.send_message({"type": "stop"})
    assert sidecar.process.wait(PATIENCE_SECONDS) == 0
    assert not any(map(is_alive, pids))
    assert not os.path.exists(sidecar.folder)


def test_what_is_registered_to_run_at_exit_runs_once_in_the_process_that_loaded(
    start_sidecar: StartSidecar, write_metric: WriteMetric, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    source = (
        f"import atexit, os\nopen({str(log)!r}, 'w').close()\n"
        f"atexit.register(lambda: open({str(log)!r}, 'a').write('x'))\n"
    )
    sidecar = start_sidecar()
    sidecar.configure(write_metric(source + GOOD))
    sidecar.score(sidecar.start(), [(b"{}", b"1")])
    sidecar.hang_up()
    assert sidecar.process.wait(PATIENCE_SECONDS) == 0
    assert log.read_text() == "x"


def test_an_exit_handler_that_hangs_does_not_keep_the_template(
    start_sidecar: StartSidecar, write_metric: WriteMetric
) -> None:
    sidecar = start_sidecar()
    sidecar.configure(write_metric("import atexit, time\natexit.register(time.sleep, 1000)\n" + GOOD))
    sidecar.hang_up()
    assert sidecar.process.wait(PATIENCE_SECONDS) == -signal.SIGALRM


def test_adopted_orphans_are_reaped(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    daemonize = "import subprocess\nprint(subprocess.Popen(['sleep', '0.05'], start_new_session=True).pid)"
    action = f"subprocess.run([sys.executable, '-c', {daemonize!r}])"
    sidecar.score(worker, [does(action)])
    sidecar.until(lambda: sidecar.logged.get("w1.out", b"").endswith(b"\n"))
    pid = int(sidecar.logged["w1.out"])
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_descriptors_of_the_template_reach_no_worker(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    list_descriptors = (
        "paths = [f'/proc/self/fd/{n}' for n in os.listdir('/proc/self/fd')]\n"
        "print('\\n'.join(os.readlink(path) for path in paths if os.path.exists(path)))"
    )
    sidecar.score(worker, [does(list_descriptors)])
    targets = worker.printed().split("\n")
    assert sum(target.startswith("socket:") for target in targets) == 2, targets
    assert sum(target.endswith("/w1.out") for target in targets) == 2, targets
    assert "/dev/null" in targets
    in_child = "subprocess.run(['sh', '-c', 'ls -l /proc/$$/fd 2>/dev/null | grep -c socket'])"
    sidecar.score(worker, [does(in_child)], number=2)
    sidecar.until(lambda: sidecar.logged.get("w1.out") == b"0\n")


@pytest.mark.parametrize(
    ("prelude", "exit_code", "text"),
    [
        ("import sys; sys.version_info = (3, 8, 20); sys.version = '3.8.20 (main)'\n", 97, "is Python 3.8.20"),
        ("", 98, "/nowhere/s cannot be reached"),
    ],
)
def test_a_start_that_cannot_be_has_an_exit_code_of_its_own(prelude: str, exit_code: int, text: str) -> None:
    arguments = [sys.executable, "-c", prelude + BOOT, str(PYTHON_DIR), "/nowhere", "template", "0"]
    ended = subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert ended.returncode == exit_code
    assert text in ended.stderr
