"""The global random generators of `random` and numpy."""

from __future__ import annotations

import random
import sys


def seed_anew() -> None:
    """Gives this process a random sequence that it shares with no other fork."""
    random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


def seed_with(seed: int) -> None:
    """Seeds both from a number of 64 bits; numpy only where something has imported it."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        # The attribute, as numpy 2 imports its `random` only when it is asked for.
        numpy.random.seed([seed & 0xFFFFFFFF, seed >> 32])
