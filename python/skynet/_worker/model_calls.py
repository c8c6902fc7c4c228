"""Asks models through the sidecar, for a metric: from any thread, and from coroutines."""

from __future__ import annotations

import itertools
import os
from _thread import start_new_thread
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from skynet._worker import messages
from skynet._worker.connection import Connection, hold_signals_back
from skynet._worker.frames import ProtocolError, encode_message
from skynet._worker.inbox import Inbox, Receive, Waiting
from skynet._worker.messages import Reply
from skynet.metric_call import MetricCall

if TYPE_CHECKING:
    import asyncio

# A frame that the system may not take in one piece, such as one with images.
LARGE_FRAME_BYTES = 1 << 16

GONE: Reply = {"error": {"message": "the sidecar is gone, and with it the way to the model; nothing can be done here"}}

FORKED = (
    "skynet.llm() was called in a process that the metric forked, which has no connection to the sidecar; "
    "call it in the metric's own process, in as many threads as you like"
)


class ModelCalls:
    """The worker's side of `skynet.llm`."""

    def __init__(
        self, connection: Connection, inbox: Inbox, where_in_hand: Callable[[], tuple[int, int | None]]
    ) -> None:
        self._connection = connection
        self._inbox = inbox
        self._where_in_hand = where_in_hand
        self._numbers = itertools.count(1)

    def serve(self, call: MetricCall) -> None:
        """From here on the metric can ask."""
        call.models = self

        def end_in_fork() -> None:
            call.models, call.no_models = None, FORKED
            self._inbox.end_in_fork()

        os.register_at_fork(after_in_child=end_in_fork)

    def ask(self, question: Mapping[str, object]) -> Reply:
        """Asks, and waits for the reply on this thread."""
        call = next(self._numbers)
        waiting = Waiting()
        replies: list[Reply] = []

        def receive(reply: Reply | None) -> None:
            replies.append(GONE if reply is None else reply)
            waiting.wake()

        try:
            self._send(call, question, receive)
            while not replies:
                waiting.sleep()
        finally:
            self._inbox.forget(call)
        return replies[0]

    async def ask_aio(self, question: Mapping[str, object]) -> Reply:
        """Asks, and lets the running loop do other things until the reply is there."""
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        call = next(self._numbers)

        def receive(reply: Reply | None) -> None:
            try:
                loop.call_soon_threadsafe(settle, future, GONE if reply is None else reply)
            except RuntimeError:
                # The loop is closed, and nobody waits any more.
                pass

        try:
            self._send(call, question, receive)
            return await future
        finally:
            self._inbox.forget(call)

    def _send(self, call: int, question: Mapping[str, object], receive: Receive) -> None:
        try:
            frame = encode_message(messages.model_call(call, *self._where_in_hand(), question))
        except ProtocolError as error:
            receive({"error": {"message": f"the call is too large: {error}; send fewer or smaller images"}})
            return
        self._inbox.expect(call, receive)
        if len(frame) > LARGE_FRAME_BYTES:
            # On a thread of its own no handler can cut it short, and no loop waits for it.
            start_new_thread(self._send_apart, (call, frame))
            return
        try:
            self._connection.send(frame)
        except TimeoutError:
            # The handler of an alarm has raised it.
            raise
        except OSError:
            self._inbox.give_up(call)

    def _send_apart(self, call: int, frame: bytes) -> None:
        hold_signals_back()
        try:
            self._connection.send(frame)
        except OSError:
            self._inbox.give_up(call)


def settle(future: asyncio.Future[Reply], reply: Reply) -> None:
    if not future.done():
        future.set_result(reply)
