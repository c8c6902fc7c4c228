"""Removes the private folder, and what the metric has started, where the sidecar dies while the template loads it.

Busy with a metric's import, the template is killed by its lifeline and cannot clean up. So for that time a process of
its own watches, which is neither the template's child nor in its group.
"""

from __future__ import annotations

import os
import select

from skynet._worker.connection import connect
from skynet._worker.reaping import kill_marked
from skynet._worker.scratch import remove_tree

# The template has opened far fewer when the janitor starts.
MOST_DESCRIPTORS = 1024

# How long a dying sidecar may take to let go of its last connection.
SIDECAR_END_MS = 5_000


class Janitor:
    """Watches from its making on until `dismiss`. Linux only. Raises `OSError`."""

    def __init__(self, folder: str) -> None:
        life = connect(os.path.join(folder, "life"))
        reader, self._writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            # The child ends at once, so that nobody's `wait` meets the grandchild.
            try:
                if os.fork() == 0:
                    os.setsid()
                    _watch(folder, life.fileno(), reader)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        os.close(reader)
        life.close()

    def dismiss(self) -> None:
        """From here on the template itself notices that the sidecar is gone."""
        os.write(self._writer, b".")
        os.close(self._writer)


def _watch(folder: str, life: int, template: int) -> None:
    # The template's connection is among the others: the sidecar must see when that ends.
    low, high = sorted((life, template))
    for first, beyond in ((0, low), (low + 1, high), (high + 1, MOST_DESCRIPTORS)):
        os.closerange(first, beyond)
    poll = select.poll()
    poll.register(life, select.POLLIN)
    poll.register(template, select.POLLIN)
    ended = {descriptor for descriptor, _ in poll.poll()}
    if life not in ended:
        if os.read(template, 1):
            # Dismissed.
            return
        # The template is dead. It may have died with the sidecar, whose connections end one after the other.
        poll.unregister(template)
        ended = {descriptor for descriptor, _ in poll.poll(SIDECAR_END_MS)}
    if life in ended:
        kill_marked(os.path.basename(folder))
        remove_tree(folder)
