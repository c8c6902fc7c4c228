"""The call of a metric that is going on in this process, as far as the helpers need to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    class Models(Protocol):
        """Who asks models for a metric. A reply holds `answer` or `error`, as docs/worker-protocol.md tells."""

        def ask(self, question: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]: ...

        async def ask_aio(self, question: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]: ...


OUTSIDE = (
    "skynet.llm() works while skynet-scorer calls the metric only, which this is not; "
    "score with `skynet-scorer score`, or replace llm where you test the metric on its own"
)
WHILE_LOADING = (
    "skynet.llm() was called while the metric is being loaded, when there is no case that the call could count for; "
    "call it within score"
)
IN_RUN_CODE = (
    "skynet.llm() is for metrics; run code asks models with any OpenAI client, "
    "which finds its address in OPENAI_BASE_URL and its key in OPENAI_API_KEY"
)


class MetricCall:
    """The state that the worker sets around calls. A process makes one call at a time, so there is one of these.

    Threads that a metric starts belong to its call, so this is not kept by thread.
    """

    def __init__(self) -> None:
        self.is_active = False
        # What was measured of the run that produced the output: JSON text, read when a metric asks; empty: nothing.
        self.observation = ""
        self.models: Models | None = None
        # Why there are no models.
        self.no_models = OUTSIDE

    def begin(self, observation: str = "") -> None:
        """From here on the metric is being called; `observation` belongs to its case."""
        self.observation = observation
        self.is_active = True

    def end(self) -> None:
        """The metric is not being called any more."""
        self.is_active = False
        self.observation = ""


current = MetricCall()
