"""The call of a metric that is going on in this process, as far as the helpers need to know of it."""

from __future__ import annotations


class MetricCall:
    """The state that the worker sets around calls. A process makes one call at a time, so there is one of these.

    Threads that a metric starts belong to its call, so this is not kept by thread.
    """

    def __init__(self) -> None:
        self.is_active = False
        # What was measured of the run that produced the output: JSON text, read when a metric asks; empty: nothing.
        self.observation = ""

    def begin(self, observation: str = "") -> None:
        """From here on the metric is being called; `observation` belongs to its case."""
        self.observation = observation
        self.is_active = True

    def end(self) -> None:
        self.is_active = False
        self.observation = ""


current = MetricCall()
