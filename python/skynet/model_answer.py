"""What comes of asking a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from skynet.usage import Usage, read_usage


class ModelText(str):
    """What a model said: a `str` that also tells which model it was, what it used and what it cost.

    `cost_usd` is the sidecar's exact decimal, rounded to the nearest float; `None`: not known, for the reason in
    `cost_not_known_reason`. `usage` is `None` where the provider told none.
    """

    usage: Usage | None = None
    cost_usd: float | None = None
    cost_not_known_reason: str = ""
    model: str = ""


class ModelError(Exception):
    """A model did not answer, or not as it should.

    `status`: the HTTP status, where there was a response. `provider_message`, `finish_reason`, `request_id`: what the
    provider told; may be empty. `text`: what the model said before it was cut; may be empty. `usage` and `cost_usd`
    (US dollars): of what was asked all the same; `None` where not known.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        provider_message: str = "",
        finish_reason: str = "",
        request_id: str = "",
        text: str = "",
        usage: Usage | None = None,
        cost_usd: float | None = None,
    ) -> None:
        super().__init__(message, status, provider_message, finish_reason, request_id, text, usage, cost_usd)
        self.message = message
        self.status = status
        self.provider_message = provider_message
        self.finish_reason = finish_reason
        self.request_id = request_id
        self.text = text
        self.usage = usage
        self.cost_usd = cost_usd

    def __str__(self) -> str:
        return self.message


def read_reply(reply: Mapping[str, Mapping[str, object]]) -> ModelText:
    """The text of an answer. Raises `ModelError` for an error."""
    error = reply.get("error")
    if error is not None:
        raise ModelError(
            message=_text(error, "message"),
            status=cast("int | None", error.get("status")),
            provider_message=_text(error, "provider_message"),
            finish_reason=_text(error, "finish_reason"),
            request_id=_text(error, "request_id"),
            text=_text(error, "text"),
            usage=read_usage(error.get("usage")),
            cost_usd=_dollars(error),
        )
    answer = reply["answer"]
    text = ModelText(_text(answer, "text"))
    text.usage = read_usage(answer.get("usage"))
    text.cost_usd = _dollars(answer)
    text.cost_not_known_reason = _text(answer, "cost_not_known_reason")
    text.model = _text(answer, "model")
    return text


def _text(reply: Mapping[str, object], name: str) -> str:
    return str(reply.get(name) or "")


def _dollars(reply: Mapping[str, object]) -> float | None:
    cost = reply.get("cost_usd")
    return float(cost) if isinstance(cost, str) else None
