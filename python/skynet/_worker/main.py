"""Where a template and a worker begin; see docs/worker-protocol.md, Starting."""

from __future__ import annotations

import faulthandler
import os
import sys
from typing import NoReturn

from skynet._worker import lifeline, messages
from skynet._worker.connection import Connection, decode_message
from skynet._worker.descriptors import LoggedDescriptors
from skynet._worker.exceptions import traceback_text
from skynet._worker.exiting import exit_in_order
from skynet._worker.frames import ProtocolError
from skynet._worker.loading import LoadedFile
from skynet._worker.messages import Configure, Start
from skynet._worker.outbox import open_outbox
from skynet._worker.printing import Printer
from skynet._worker.run_worker import RunWorker
from skynet._worker.seeding import seed_anew
from skynet._worker.template import Template, load_configured
from skynet._worker.worker import Worker

EXIT_NO_SIDECAR = 98
MOST_SECRET_BYTES = 1000


def main() -> None:
    """Reads the arguments `PYTHON_DIR FOLDER ROLE NUMBER` and plays the role until the sidecar ends it."""
    python_dir, folder, role, number = sys.argv[1:5]
    # Whatever the interpreter's side still needs comes through the package, not through the path.
    sys.path.remove(python_dir)
    sys.argv[:] = [""]
    if role == "template":
        run_template(python_dir, folder)
    else:
        run_spawned_worker(folder, int(number))


def run_template(python_dir: str, folder: str) -> None:
    lifeline.lead_group()
    connection = connect(folder)
    # Kept in this frame, which lasts as long as the template.
    fifo = lifeline.hold_template_fifo(folder)
    os.register_at_fork(after_in_child=fifo.close)
    logged = LoggedDescriptors(os.path.join(folder, "t.out"))
    printer = start_printing(connection)
    connection.send_message(messages.hello("template", 0))
    configure = receive_configure(connection)
    if configure is None:
        return
    logged.let_go()

    template_pid = os.getpid()

    def run_forked(start: Start, loaded: LoadedFile) -> NoReturn:
        run_forked_worker(folder, start, loaded, configure, printer, template_pid)

    Template(connection, folder, python_dir, printer).run(configure, run_forked)
    exit_in_order()


def run_forked_worker(
    folder: str, start: Start, loaded: LoadedFile, configure: Configure, printer: Printer, template_pid: int
) -> NoReturn:
    """A worker that has inherited the loaded file. Never returns into the template's code."""
    status = 1
    number = start.worker
    try:
        connection = connect(folder)
        printer.attach(connection.send_message, lambda: (0, None))
        connection.send_message(messages.hello("worker", number, start.secret))
        life = lifeline.Lifeline(folder, of_worker=True)
        lifeline.die_with_parent(template_pid)
        logged = LoggedDescriptors(worker_file(folder, number, "out"))
        seed_anew()
        work_until_told(connection, folder, number, loaded, configure, printer, logged)
        life.close()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except ConnectionError:
        # The sidecar is gone.
        pass
    except BaseException as error:
        os.write(2, traceback_text(error))
    finally:
        # What the template registered to run at exit is the template's.
        os._exit(status)


def run_spawned_worker(folder: str, number: int) -> None:
    """A worker with an interpreter of its own, which loads the file for itself."""
    parent = os.getppid()
    secret = os.read(0, MOST_SECRET_BYTES).decode()
    lifeline.lead_group()
    connection = connect(folder)
    life = lifeline.Lifeline(folder, of_worker=True)
    lifeline.die_with_parent(parent)
    logged = LoggedDescriptors(worker_file(folder, number, "out"))
    printer = start_printing(connection)
    connection.send_message(messages.hello("worker", number, secret))
    configure = receive_configure(connection)
    if configure is None:
        return
    loaded = load_configured(configure)
    printer.flush()
    connection.send_message(messages.loaded(loaded.report, []))
    if loaded.call is None:
        # Nothing can be done; the sidecar knows, and ends this.
        connection.receive()
    else:
        work_until_told(connection, folder, number, loaded, configure, printer, logged)
    life.close()
    exit_in_order()


def work_until_told(
    connection: Connection,
    folder: str,
    number: int,
    loaded: LoadedFile,
    configure: Configure,
    printer: Printer,
    logged: LoggedDescriptors,
) -> None:
    if loaded.call is None:
        raise RuntimeError("a worker was started for a file that has problems")
    outbox = open_outbox(worker_file(folder, number, "box"))
    limit = configure.max_row_bytes
    if configure.kind == "run":
        scratch = worker_file(folder, number, "dir")
        run_worker = RunWorker(connection, outbox, loaded.call, loaded.folder, scratch, limit, printer)
        run_worker.run(logged.let_go)
    else:
        Worker(connection, outbox, loaded.call, loaded.folder, limit, printer).run(logged.let_go)


def connect(folder: str) -> Connection:
    """Connects to the sidecar, or exits with 98."""
    try:
        return Connection.connect(folder)
    except OSError as error:
        sys.stderr.write(f"the sidecar's socket {folder}/s cannot be reached: {error}\n")
        sys.exit(EXIT_NO_SIDECAR)


def receive_configure(connection: Connection) -> Configure | None:
    """What the sidecar wants done, with its environment set; `None` where it is gone."""
    frame = connection.receive()
    if frame is None:
        return None
    message = messages.parse(decode_message(frame))
    if not isinstance(message, Configure):
        raise ProtocolError("the first message has to be configure")
    for name, value in message.environment.items():
        os.environ.setdefault(name, value)
    return message


def start_printing(connection: Connection) -> Printer:
    faulthandler.enable(2)
    printer = Printer(connection.send_message)
    printer.install()
    # A process that the metric forks has nothing to say to the sidecar, and a forked worker a connection of its own.
    os.register_at_fork(after_in_child=connection.close)
    os.register_at_fork(after_in_child=printer.use_descriptors)
    return printer


def worker_file(folder: str, number: int, ending: str) -> str:
    return os.path.join(folder, f"w{number}.{ending}")
