"""A model as a judge."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING

from skynet.image import image_urls
from skynet.metric_call import current
from skynet.model_answer import ModelText, read_reply
from skynet.real_number import named_number, positive_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import SupportsIndex

    from skynet.image import ImageSource
    from skynet.metric_call import Models


class ModelFunction:
    """`llm(prompt, input=None, images=None, *, …)`: asks the metric model, else the reflection model.

    With `input`, `prompt` is the system message and `input` the user message; alone, `prompt` is the user message.
    `images` go with the user message: bytes, a path, an http(s) or data URL, a PIL image, a `skynet.Image`, or a list
    of these. `model` asks another model; `temperature`, `max_tokens` and `response_format` (a dict, as in OpenAI's
    chat completions) go to the provider as they are, and nothing is sent that is not set: what the model refuses by
    name is left out. `timeout` is in seconds, retries included, and never outlasts the case's own time, which counts
    without it. Any number of calls may go on at once, in threads and coroutines.

    Returns the answer, never empty: a `ModelText`, which is a `str` with `usage`, `cost_usd` and `model`.

    Raises `ModelError` where the model does not answer, `TypeError` and `ValueError` for arguments that cannot be
    sent, `OSError` for an image that cannot be read, `RuntimeError` outside a metric that skynet-scorer runs.
    """

    def __call__(
        self,
        prompt: str,
        input: str | None = None,
        images: ImageSource | Sequence[ImageSource] | None = None,
        *,
        model: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        response_format: Mapping[str, object] | None = None,
        timeout: float | None = None,
    ) -> ModelText:
        models = _models()
        messages = _messages(prompt, input, images)
        return read_reply(models.ask(_question(messages, model, temperature, max_tokens, response_format, timeout)))

    async def aio(
        self,
        prompt: str,
        input: str | None = None,
        images: ImageSource | Sequence[ImageSource] | None = None,
        *,
        model: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        response_format: Mapping[str, object] | None = None,
        timeout: float | None = None,
    ) -> ModelText:
        """The same for `async def score`: other coroutines go on while the model thinks. Same parameters and errors."""
        models = _models()
        messages = _messages(prompt, input, images)
        question = _question(messages, model, temperature, max_tokens, response_format, timeout)
        return read_reply(await models.ask_aio(question))

    def __repr__(self) -> str:
        return "<function skynet.llm>"


def _models() -> Models:
    if current.models is None:
        raise RuntimeError(current.no_models)
    return current.models


def _messages(
    prompt: str, input: str | None, images: ImageSource | Sequence[ImageSource] | None
) -> list[dict[str, object]]:
    _check_text("prompt", prompt)
    if input is not None:
        _check_text("input", input)
    text = prompt if input is None else input
    urls = image_urls(images)
    content: object = text
    if urls:
        shown = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        content = [{"type": "text", "text": text}, *shown]
    user: dict[str, object] = {"role": "user", "content": content}
    return [user] if input is None else [{"role": "system", "content": prompt}, user]


def _question(
    messages: list[dict[str, object]],
    model: str | None,
    temperature: float | None,
    max_tokens: int | None,
    response_format: Mapping[str, object] | None,
    timeout: float | None,
) -> dict[str, object]:
    if model is not None:
        _check_text("model", model)
    return {
        "messages": messages,
        "model": model,
        "temperature": None if temperature is None else named_number("temperature", temperature),
        "max_tokens": None if max_tokens is None else _count("max_tokens", max_tokens),
        "response_format": None if response_format is None else _json_object("response_format", response_format),
        "timeout_ms": None if timeout is None else positive_number("timeout", timeout) * 1000,
    }


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        advice = ", such as json.dumps of it" if isinstance(value, (dict, list)) else ""
        raise TypeError(f"{name} must be a str, not {type(value).__name__}; give text{advice}")


def _count(name: str, value: SupportsIndex) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if count < 1:
        raise ValueError(f"{name} is {count}; it must be 1 or more")
    return count


def _json_object(name: str, value: object) -> object:
    """A copy that holds nothing but JSON."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict as in OpenAI's chat completions, not {type(value).__name__}")
    # Few calls need it, and importing it takes longer than all the rest.
    import json

    try:
        return json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} cannot be sent as JSON: {error}") from None


llm = ModelFunction()
