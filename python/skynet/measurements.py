"""What was measured of the run that produced an output."""

from __future__ import annotations

from typing import NoReturn

from skynet.metric_call import current
from skynet.not_available import NotAvailableError


def observation() -> NoReturn:
    """The measurements of the run. Not available yet in this release: raises `NotAvailableError`."""
    raise _not_available("observation")


def service_cost() -> NoReturn:
    """What the run's model calls cost, in US dollars. Not available yet in this release: raises `NotAvailableError`."""
    raise _not_available("service_cost")


def _not_available(name: str) -> NotAvailableError:
    outside = "" if current.is_active else " (and it works within a call of the metric only, which this is not)"
    return NotAvailableError(
        f"skynet.{name}() is not available yet in this release of skynet-scorer{outside}; "
        "score without measured time and cost"
    )
