"""Helpers for a `metric.py` that skynet-scorer runs. Standard library only."""

from __future__ import annotations

from skynet.image import Image
from skynet.measurements import Observation, observation, service_cost
from skynet.model import llm
from skynet.model_answer import ModelError, ModelText
from skynet.rewards import reward
from skynet.usage import Usage

__all__ = [
    "Image",
    "ModelError",
    "ModelText",
    "Observation",
    "Usage",
    "llm",
    "observation",
    "reward",
    "service_cost",
]
