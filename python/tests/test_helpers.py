from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

import skynet
from skynet.metric_call import current


def test_every_promised_name_can_be_imported() -> None:
    assert skynet.__all__ == ["Image", "NotAvailableError", "llm", "observation", "reward", "service_cost"]
    assert all(hasattr(skynet, name) for name in skynet.__all__)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: skynet.llm("Answer PASS or FAIL.", input="x"), "llm()"),
        (lambda: skynet.Image(b""), "Image"),
        (skynet.observation, "observation()"),
        (skynet.service_cost, "service_cost()"),
    ],
)
def test_what_this_release_has_not_says_so(call: Callable[[], object], name: str) -> None:
    with pytest.raises(skynet.NotAvailableError) as raised:
        call()
    assert str(raised.value).startswith(f"skynet.{name} is not available yet in this release of skynet-scorer")


@pytest.mark.parametrize("helper", [skynet.observation, skynet.service_cost])
def test_measurements_say_where_they_can_be_asked_for(helper: Callable[[], object]) -> None:
    with pytest.raises(skynet.NotAvailableError, match="within a call of the metric only, which this is not"):
        helper()
    current.begin()
    try:
        with pytest.raises(skynet.NotAvailableError) as raised:
            helper()
    finally:
        current.end()
    assert "within a call" not in str(raised.value)


def test_the_package_needs_nothing_but_the_standard_library() -> None:
    code = "import sys, skynet; print(sorted({n.split('.')[0] for n in sys.modules} & {'numpy', 'asyncio', 'grpc'}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
