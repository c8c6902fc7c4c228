"""Fixtures: metrics as files, the double of the sidecar, the contract's vectors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_sidecar import FakeSidecar, Peer

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("SKYNET_SHARED") or REPOSITORY.parent / "shared")

WriteMetric = Callable[..., Path]
StartWorker = Callable[..., "tuple[FakeSidecar, Peer]"]
StartRuns = Callable[..., FakeSidecar]


def contract_vectors(name: str) -> list[dict[str, object]]:
    """A file of vectors from the contract. While tests are collected there are none where `shared_folder` skips."""
    if is_shared_folder_missing() and "PYTEST_CURRENT_TEST" not in os.environ:
        return []
    with (shared_folder() / "contract" / name).open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def shared_folder() -> Path:
    """The specification: `SKYNET_SHARED`, or `shared` beside the repository. Skips the test where it is missing."""
    if is_shared_folder_missing():
        # It does not come with a clone. In CI it has to be there, and what needs it fails without.
        pytest.skip(f"there is no {SHARED}; set SKYNET_SHARED")
    return SHARED


def pytest_report_header() -> list[str]:
    return [f"left out: what needs the specification, which is not at {SHARED}"] if is_shared_folder_missing() else []


def is_shared_folder_missing() -> bool:
    return not SHARED.exists() and os.environ.get("SKYNET_ALL_TOOLS") != "1"


@pytest.fixture
def write_metric(tmp_path: Path) -> WriteMetric:
    """Writes a metric, and files beside it, into a folder of its own. Returns the metric's path."""

    def write(source: str, name: str = "metric.py", **beside: str) -> Path:
        folder = tmp_path / "metric"
        folder.mkdir(exist_ok=True)
        for stem, text in beside.items():
            (folder / f"{stem}.py").write_text(text, encoding="utf-8")
        path = folder / name
        path.write_text(source, encoding="utf-8")
        return path

    return write


@pytest.fixture
def start_sidecar() -> Iterator[Callable[..., FakeSidecar]]:
    """Starts doubles of the sidecar, which all end with the test."""
    sidecars: list[FakeSidecar] = []

    def start(**settings: Any) -> FakeSidecar:
        sidecars.append(FakeSidecar(**settings))
        return sidecars[-1]

    yield start
    for sidecar in sidecars:
        sidecar.__exit__(None)


@pytest.fixture
def start_worker(write_metric: WriteMetric, start_sidecar: Callable[..., FakeSidecar]) -> StartWorker:
    """Starts a worker for a metric given as source, by default a forked one."""

    def start(
        source: str, start_method: str = "fork", beside: dict[str, str] | None = None, **settings: object
    ) -> tuple[FakeSidecar, Peer]:
        sidecar = start_sidecar()
        sidecar.configure(write_metric(source, **(beside or {})), start_method, **settings)
        return sidecar, sidecar.start()

    return start


@pytest.fixture
def start_runs(write_metric: WriteMetric, start_sidecar: Callable[..., FakeSidecar]) -> StartRuns:
    """Starts a template for run code given as source, by default one that forks."""

    def start(
        source: str,
        start_method: str = "fork",
        environment: dict[str, str] | None = None,
        python: str = sys.executable,
        **settings: object,
    ) -> FakeSidecar:
        sidecar = start_sidecar(environment=environment, python=python)
        sidecar.configure(write_metric(source, "run.py"), start_method, kind="run", **settings)
        return sidecar

    return start


@pytest.fixture
def loads_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts back what loading a metric into this interpreter changes."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.startswith(("metric", "skynet_metric")) or name.endswith("sibling"):
            del sys.modules[name]


@pytest.fixture(params=["fork", "spawn"])
def start_method(request: pytest.FixtureRequest) -> str:
    return str(request.param)
