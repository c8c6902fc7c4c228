"""The call of a metric that is going on in this process, as far as the helpers need to know of it."""

from __future__ import annotations

from typing import NamedTuple

NO_OBSERVATION = "no observation belongs to this case"


class Observation(NamedTuple):
    """What the sidecar measured of the run that produced an output. `None`: not measured, for the reason beside it."""

    run_ms: float | None = None
    run_not_measured_reason: str = NO_OBSERVATION
    cost_usd: float | None = None
    cost_not_measured_reason: str = NO_OBSERVATION


class MetricCall:
    """The state that the worker sets around calls. A process makes one call at a time, so there is one of these.

    Threads that a metric starts belong to its call, so this is not kept by thread.
    """

    def __init__(self) -> None:
        self.is_active = False
        self.observation: Observation | None = None

    def begin(self, observation: Observation | None = None) -> None:
        """From here on the metric is being called; `observation` belongs to its case."""
        self.observation = observation
        self.is_active = True

    def end(self) -> None:
        self.is_active = False
        self.observation = None


current = MetricCall()
