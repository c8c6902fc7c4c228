"""The scratch folder of a run: its working directory and where its temporary files go, gone when it has ended."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress

# A shell's notes of where it was, and so of where the sidecar was started.
WORKING_DIRECTORY_NAMES = ("PWD", "OLDPWD")


def forget_working_directory() -> None:
    """Takes out of the environment where the sidecar runs; run code has no business there."""
    for name in WORKING_DIRECTORY_NAMES:
        os.environ.pop(name, None)


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
