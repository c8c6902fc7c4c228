"""The scratch folder of a run: its working directory and where its temporary files go, gone when it has ended."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection
from contextlib import suppress

# A shell's notes of where it was, and so of where the sidecar was started.
WORKING_DIRECTORY_NAMES = ("PWD", "OLDPWD")
# The field of /proc/self/stat that tells where the environment begins, counted behind the command's name.
ENV_START = 47


def forget_working_directory() -> None:
    """Takes out of the environment where the sidecar runs; run code has no business there.

    That are the shell's notes, and those of programs that start interpreters, which have the folder for their value.
    """
    here = os.getcwd()
    names = [name for name, value in os.environ.items() if name in WORKING_DIRECTORY_NAMES or value == here]
    for name in names:
        del os.environ[name]
    with suppress(OSError, ValueError):
        blank_initial(names)


def blank_initial(names: Collection[str]) -> None:
    """Blanks the values that /proc shows of this process's first environment. Raises `OSError` where it shows none."""
    with open("/proc/self/environ", "rb") as file:
        entries = file.read().split(b"\0")
    with open("/proc/self/stat", "rb") as file:
        stat = file.read()
    place = int(stat[stat.rindex(b")") + 2 :].split()[ENV_START])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        for entry in entries:
            name, _, value = entry.partition(b"=")
            if os.fsdecode(name) in names:
                memory.seek(place + len(name) + 1)
                memory.write(bytes(len(value)))
            place += len(entry) + 1


def enter_scratch(path: str) -> None:
    """Makes it this process's working directory and the place of its temporary files."""
    os.chdir(path)
    os.environ["TMPDIR"] = path
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        # What it has found while the file was loaded.
        vars(tempfile).update(tempdir=None)


def remove_tree(path: str) -> None:
    """Removes a folder with all that is in it, also what was made unreadable. Never raises for what cannot be."""
    with suppress(OSError):
        os.chmod(path, 0o700)
    for root, folders, _ in os.walk(path):
        for name in folders:
            folder = os.path.join(root, name)
            with suppress(OSError):
                if not os.path.islink(folder):
                    os.chmod(folder, 0o700)
    shutil.rmtree(path, ignore_errors=True)
