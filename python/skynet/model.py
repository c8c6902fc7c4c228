"""A model as a judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from skynet.image import Image
from skynet.not_available import NotAvailableError


def llm(prompt: str, input: str | None = None, images: Sequence[Image] | None = None) -> NoReturn:
    """Asks the metric model. Not available yet in this release: raises `NotAvailableError`."""
    del prompt, input, images
    raise NotAvailableError(
        "skynet.llm() is not available yet in this release of skynet-scorer; score without a model, "
        "or call one with a client library of your own"
    )
