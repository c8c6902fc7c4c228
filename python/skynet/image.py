"""Images for model calls."""

from __future__ import annotations

from typing import NoReturn

from skynet.not_available import NotAvailableError


class Image:
    """An image to show a model. Not available yet in this release: making one raises `NotAvailableError`."""

    def __new__(cls, *_arguments: object, **_keywords: object) -> NoReturn:
        raise NotAvailableError("skynet.Image is not available yet in this release of skynet-scorer; pass text only")
