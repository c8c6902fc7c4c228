"""Helpers for a `metric.py` that skynet-scorer runs. Standard library only."""

from __future__ import annotations

from skynet.image import Image
from skynet.measurements import observation, service_cost
from skynet.model import llm
from skynet.not_available import NotAvailableError
from skynet.rewards import reward

__all__ = ["Image", "NotAvailableError", "llm", "observation", "reward", "service_cost"]
