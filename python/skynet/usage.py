"""What model calls used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast


class Usage(NamedTuple):
    """Tokens as the provider counted them. Cached ones are part of the prompt's, reasoning ones of the completion's."""

    prompt_tokens: int
    cached_prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    calls: int = 1


def read_usage(value: object) -> Usage | None:
    """Usage as the sidecar tells it; `None` where it is not known."""
    return Usage(**cast("Mapping[str, int]", value)) if isinstance(value, Mapping) else None
