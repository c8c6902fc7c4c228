"""Awaits what a metric returned, on a loop that the worker keeps between cases."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class Awaiter:
    """Keeps one event loop, so that sessions and connection pools of a metric outlive a case."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._loop: asyncio.AbstractEventLoop | None = None

    def settle(self, returned: object) -> object:
        """`returned` itself, or what comes of it where it is awaitable; raises what that raises."""
        return self._wait(returned) if inspect.isawaitable(returned) else returned

    def _wait(self, awaitable: Awaitable[object]) -> object:
        loop = self._loop
        if loop is None:
            loop = self._loop = import_asyncio(self._folder).new_event_loop()
        task = loop.create_task(_result_of(awaitable))
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                # Interrupted from outside, by a timeout's SIGINT: its `finally` blocks have their turn.
                task.cancel()
                loop.run_until_complete(_ended(task))
            raise


def import_asyncio(folder: str) -> ModuleType:
    """The standard library's `asyncio`, also where a file beside the metric has its name or that of a part."""
    if "asyncio" not in sys.modules:
        path = list(sys.path)
        sys.path[:] = [entry for entry in path if entry != folder]
        try:
            import asyncio
        finally:
            sys.path[:] = path
    import asyncio

    return asyncio


async def _result_of(awaitable: Awaitable[object]) -> object:
    return await awaitable


async def _ended(task: asyncio.Task[object]) -> None:
    import asyncio

    await asyncio.wait([task])
