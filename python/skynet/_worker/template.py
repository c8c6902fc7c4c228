"""The template: loads the user's file once, then only starts workers, signals them and reaps them."""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable
from typing import NoReturn

from skynet._worker import lifeline, messages
from skynet._worker.awaiting import import_asyncio
from skynet._worker.connection import Connection, decode_message
from skynet._worker.fork_safety import find_hazards, take_snapshot
from skynet._worker.frames import ProtocolError
from skynet._worker.janitor import Janitor
from skynet._worker.loading import LoadedFile, load_metric, load_run
from skynet._worker.messages import Configure
from skynet._worker.outbox import make_outbox
from skynet._worker.printing import Printer
from skynet._worker.reaping import children, kill_children, kill_group, reap, reap_ended
from skynet._worker.scratch import forget_working_directory, remove_tree

# Runs a forked worker: what it was started with and the loaded file. Never returns.
RunForked = Callable[[messages.Start, LoadedFile], NoReturn]


class Template:
    """Owns the workers: only this process forks, signals and reaps them."""

    def __init__(self, connection: Connection, folder: str, python_dir: str, printer: Printer) -> None:
        self._connection = connection
        self._folder = folder
        self._python_dir = python_dir
        self._printer = printer
        self._loaded: LoadedFile | None = None
        self._can_start = False
        self._is_for_runs = False
        # By worker number.
        self._pids: dict[int, int] = {}
        # Processes that remove what runs have left in their scratch folders.
        self._removers: set[int] = set()
        # What loading has started, which belongs to no run.
        self._helpers: set[int] = set()
        self._wake_reader, self._wake_writer = socket.socketpair()

    def run(self, configure: Configure, run_forked: RunForked) -> None:
        """Serves until the sidecar says `stop` or is gone; then no worker is left and the folder is removed."""
        # Before orphans are adopted: it is to be one, of somebody else.
        janitor = Janitor(self._folder) if configure.start_method == "fork" and sys.platform == "linux" else None
        lifeline.adopt_orphans()
        self._is_for_runs = configure.kind == "run"
        try:
            if configure.start_method == "fork":
                self._load(configure)
                if janitor is not None:
                    janitor.dismiss()
            else:
                self._can_start = True
            self._watch_signals()
            if self._can_start:
                self._connection.send_message(messages.ready())
            self._serve(run_forked)
        except ConnectionError:
            # The sidecar is gone.
            pass
        finally:
            self._leave()

    def _load(self, configure: Configure) -> None:
        # Only while it loads can a metric keep this process from noticing that the sidecar is gone.
        life = lifeline.Lifeline(self._folder, of_worker=False)
        before = take_snapshot()
        loaded = load_configured(configure)
        if loaded.report["is_async"]:
            import_asyncio(loaded.folder)
        hazards = find_hazards(before)
        life.close()
        self._helpers = children()
        self._loaded = loaded
        self._can_start = loaded.call is not None
        self._printer.flush()
        gc.collect()
        gc.freeze()
        self._connection.send_message(messages.loaded(loaded.report, hazards))

    def _watch_signals(self) -> None:
        """After loading, as a metric may have changed all of this."""
        self._metric_sigchld = signal.getsignal(signal.SIGCHLD)
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # A service manager sends it to every process, while the sidecar still lets running cases finish.
        self._metric_sigterm = signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda *_: None)

    def _serve(self, run_forked: RunForked) -> None:
        poll = select.poll()
        poll.register(self._connection.fileno(), select.POLLIN)
        poll.register(self._wake_reader.fileno(), select.POLLIN)
        # A start takes its time, and hundreds may stand in line: whatever has come meanwhile is looked at before each.
        waiting: deque[messages.Start | messages.Signal] = deque()
        while True:
            while (frame := self._connection.next_frame()) is not None:
                message = messages.parse(decode_message(frame))
                if isinstance(message, messages.Stop):
                    return
                if not isinstance(message, (messages.Start, messages.Signal)):
                    raise ProtocolError("a template is configured once")
                waiting.append(message)
            if waiting:
                self._obey(waiting.popleft(), run_forked)
            readable = {descriptor for descriptor, _ in poll.poll(0 if waiting else None)}
            if self._wake_reader.fileno() in readable:
                self._drain_wakeups()
                self._reap_ended()
            if self._connection.fileno() in readable and not self._connection.fill():
                return

    def _obey(self, message: messages.Start | messages.Signal, run_forked: RunForked) -> None:
        if isinstance(message, messages.Start):
            self._start(message, run_forked)
        else:
            self._signal(message)

    def _start(self, start: messages.Start, run_forked: RunForked) -> None:
        number = start.worker
        if not self._can_start:
            self._connection.send_message(messages.start_failed(number, "the file is not loaded"))
            return
        try:
            make_outbox(os.path.join(self._folder, f"w{number}.box"))
            os.mkfifo(os.path.join(self._folder, f"w{number}.out"), 0o600)
            if self._is_for_runs:
                os.mkdir(self._scratch(number), 0o700)
            pid = self._spawn(start) if self._loaded is None else self._fork(start, self._loaded, run_forked)
        except OSError as error:
            self._connection.send_message(
                messages.start_failed(number, f"worker {number} cannot be started: {error.strerror}")
            )
            return
        self._pids[number] = pid
        self._connection.send_message(messages.started(number, pid))

    def _fork(self, start: messages.Start, loaded: LoadedFile, run_forked: RunForked) -> int:
        pid = os.fork()
        if pid:
            try:
                # Both sides do this, so that neither runs before it is done.
                os.setpgid(pid, pid)
            except OSError:
                pass
            return pid
        try:
            self._forget_wakeups()
            signal.signal(signal.SIGCHLD, self._metric_sigchld)
            signal.signal(signal.SIGTERM, self._metric_sigterm)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            lifeline.lead_group()
            self._connection.forget()
            run_forked(start, loaded)
        finally:
            os._exit(1)

    def _spawn(self, start: messages.Start) -> int:
        boot = os.path.join(os.path.dirname(__file__), "boot.py")
        with open(boot, encoding="utf-8") as file:
            arguments = ["-c", file.read(), self._python_dir, self._folder, "worker", str(start.worker)]
        # Arguments and environments are for everybody to read.
        reader, writer = os.pipe()
        try:
            os.write(writer, start.secret.encode())
            return os.posix_spawn(
                sys.executable,
                [sys.executable, *arguments],
                os.environ,
                file_actions=((os.POSIX_SPAWN_DUP2, reader, 0),),
                setpgroup=0,
                setsigmask=(),
                setsigdef=(signal.SIGINT, signal.SIGCHLD),
            )
        finally:
            os.close(reader)
            os.close(writer)

    def _signal(self, message: messages.Signal) -> None:
        # A worker in the table was not reaped yet, so its id is its own.
        pid = self._pids.get(message.worker)
        if pid is None:
            return
        try:
            if message.group:
                os.killpg(pid, message.signal)
            else:
                os.kill(pid, message.signal)
        except OSError:
            # It has ended this moment; `ended` follows.
            pass

    def _drain_wakeups(self) -> None:
        try:
            while self._wake_reader.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _reap_ended(self) -> None:
        numbers = {pid: number for number, pid in self._pids.items()}
        for pid, exit_code, signal_number in reap_ended(numbers):
            self._removers.discard(pid)
            # Others than workers are what a worker left behind, adopted.
            if pid in numbers:
                del self._pids[numbers[pid]]
                self._connection.send_message(messages.ended(numbers[pid], pid, exit_code, signal_number))
                if self._is_for_runs:
                    self._end_run(numbers[pid])

    def _end_run(self, number: int) -> None:
        """Leaves nothing of a run that has ended: no process, no file."""
        # Runs that go on keep what they start below themselves, so the others are those of runs that have ended.
        kill_children({*self._pids.values(), *self._removers, *self._helpers})
        path = self._scratch(number)
        try:
            os.rmdir(path)
        except OSError:
            # Whatever the run has left there, removing it must not keep others from starting.
            self._remove_apart(path)

    def _remove_apart(self, path: str) -> None:
        pid = os.fork()
        if pid:
            self._removers.add(pid)
            return
        try:
            self._forget_wakeups()
            remove_tree(path)
        finally:
            os._exit(0)

    def _forget_wakeups(self) -> None:
        """In a fork: its signals are nothing to the template."""
        signal.set_wakeup_fd(-1)
        self._wake_reader.close()
        self._wake_writer.close()

    def _scratch(self, number: int) -> str:
        return os.path.join(self._folder, f"w{number}.dir")

    def _leave(self) -> None:
        """Leaves nothing behind: no worker, nothing that one started, no folder."""
        for pid in self._pids.values():
            kill_group(pid)
        for pid in self._pids.values():
            reap(pid)
        self._pids.clear()
        kill_children()
        remove_tree(self._folder)


def load_configured(configure: Configure) -> LoadedFile:
    """Loads what a process was told to."""
    if configure.kind == "run":
        forget_working_directory()
        return load_run(configure.file)
    return load_metric(configure.file)
