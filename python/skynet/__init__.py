"""Helpers for a `metric.py` that skynet-scorer runs. Standard library only.

- `llm(prompt, input=None, …)` asks a model as a judge, through the sidecar, which holds the key: a `ModelText`, or a
  `ModelError`; `await llm.aio(…)` for `async def score`. `Image` is an image to show it.
- `observation()` and `service_cost()` give what the sidecar measured of the run that produced the output: time in
  milliseconds, cost in US dollars, tokens (`Usage`); `None` is what was not measured.
- `reward(REWARD_SPEC, accuracy, feedback)` blends accuracy with both into what `score` returns.

They work while skynet-scorer calls the metric; elsewhere all but `reward` raise `RuntimeError`.
"""

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
