"""What the sidecar measured of the run that produced an output."""

from __future__ import annotations

from typing import NamedTuple

from skynet.metric_call import current
from skynet.usage import Usage, read_usage

NO_OBSERVATION = "no observation belongs to this case"


class Observation(NamedTuple):
    """Measurements of a run: its wall time in milliseconds, and what its model calls cost, in US dollars, and used.

    `None`: not measured, for the reason beside it; so is everything where no observation belongs to the case.
    """

    run_ms: float | None = None
    cost_usd: float | None = None
    usage: Usage | None = None
    id: str = ""
    run_not_measured_reason: str = NO_OBSERVATION
    cost_not_measured_reason: str = NO_OBSERVATION


def observation() -> Observation:
    """The measurements of the run that produced this output. Raises `RuntimeError` outside a call of the metric."""
    if not current.is_active:
        raise _outside("observation")
    return measured()


def service_cost() -> float | None:
    """What the run's model calls cost, in US dollars; `None` where that was not measured.

    Raises `RuntimeError` outside a call of the metric.
    """
    if not current.is_active:
        raise _outside("service_cost")
    return measured().cost_usd


def measured() -> Observation:
    """What was measured for the case in hand; nothing outside a call."""
    if not current.observation:
        return Observation()
    # Where there is an observation there is a worker, which has it; importing it here would take most of the time that
    # `from skynet import llm` may take.
    import json

    found = json.loads(current.observation)
    return Observation(
        run_ms=found["run_ms"],
        cost_usd=found["cost_usd"],
        usage=read_usage(found["usage"]),
        id=found["id"],
        run_not_measured_reason=found["run_not_measured_reason"],
        cost_not_measured_reason=found["cost_not_measured_reason"],
    )


def _outside(name: str) -> RuntimeError:
    return RuntimeError(
        f"skynet.{name}() works while skynet-scorer calls the metric only, which this is not; call it within score"
    )
