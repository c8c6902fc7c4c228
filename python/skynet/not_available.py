"""The error of helpers that this release does not have yet."""

from __future__ import annotations


class NotAvailableError(RuntimeError):
    """A helper that exists by name only in this release; the text says which one."""
