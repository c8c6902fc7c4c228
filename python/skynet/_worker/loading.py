"""Loads `metric.py`, or `run.py`, as a real module, and tells what was found."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import time
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import NamedTuple

from skynet._worker.exceptions import (
    MESSAGE_BYTES,
    cut,
    exception_message,
    is_own_file,
    remember_source,
    traceback_text,
)
from skynet._worker.return_value import to_json
from skynet._worker.signature import SignatureError, read_run_signature, read_signature
from skynet.metric_call import IN_RUN_CODE, OUTSIDE, WHILE_LOADING, current
from skynet.reward_spec import parse_reward_spec

# By what is loaded: the step of the contract that tells of its function, the function's name, how to define it, and
# what reads its signature.
FUNCTIONS = {
    "metric": ("metric_function", "score", "def score(input, output, expected=None)", read_signature),
    "run": ("run_file", "run", "def run(artifact, input)", read_run_signature),
}

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"

SHOWN_FUNCTIONS = 5


class LoadedFile(NamedTuple):
    """A metric or run code as loaded. `call` is `None` where it has problems; `report` is what the sidecar is told."""

    folder: str
    call: Callable[..., object] | None
    report: dict[str, object]


def load_metric(path: str) -> LoadedFile:
    """Loads the metric at the absolute `path`. Never raises: what is wrong stands in the report's `problems`."""
    return _load(path, "metric")


def load_run(path: str) -> LoadedFile:
    """Loads the run code at the absolute `path`. Never raises: what is wrong stands in the report's `problems`."""
    return _load(path, "run")


def _load(path: str, kind: str) -> LoadedFile:
    began = time.monotonic_ns()
    pid = os.getpid()
    folder = os.path.dirname(path)
    problems: list[dict[str, str]] = []
    warnings: list[dict[str, str]] = []
    report: dict[str, object] = {
        "fingerprint": "",
        "file": os.path.basename(path),
        "problems": problems,
        "arguments": 0,
        "signature": "",
        "is_async": False,
        "warnings": warnings,
        "reward_spec_json": "",
        "reward_weights": None,
        "load_ms": 0.0,
    }
    current.no_models = WHILE_LOADING if kind == "metric" else IN_RUN_CODE
    module, source = _import_file(path, kind, problems)
    if kind == "metric":
        current.no_models = OUTSIDE
    report["fingerprint"] = _fingerprint(path, source, folder)
    call = None
    if module is not None:
        call = _read_function(module, kind, report, problems, warnings)
        if kind == "metric":
            _read_reward_spec(module, report, problems)
    if os.getpid() != pid:
        # Loading forked, and the child came out of the file's end too.
        os._exit(0)
    report["load_ms"] = (time.monotonic_ns() - began) / 1e6
    return LoadedFile(folder, None if problems else call, report)


def module_name(path: str, kind: str) -> str:
    """The file's stem, or a name of our own where that would take the place of another module."""
    name = re.sub(r"\W", "_", os.path.splitext(os.path.basename(path))[0])
    standard: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())
    taken = name in sys.modules or name in sys.builtin_module_names or name in standard
    return f"skynet_{kind}_{name}" if taken else name


def _import_file(path: str, kind: str, problems: list[dict[str, str]]) -> tuple[ModuleType | None, bytes]:
    folder = os.path.dirname(path)
    source = b""
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        message = f"{os.path.basename(path)} cannot be read: {error.strerror}; give the path of a readable Python file"
        problems.append(_problem(f"{kind}_file", message))
        return None, source
    remember_source(path, source)
    # Everything of the standard library that a worker needs is imported by now, so a neighbour called json.py
    # takes no one's place.
    sys.path.insert(0, folder)
    sys.argv[:] = [path]
    name = module_name(path, kind)
    try:
        code = compile(source, path, "exec", dont_inherit=True)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None:
            # A file whose name does not end in .py has no loader of its own.
            module = ModuleType(name)
            module.__file__ = path
        else:
            module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        exec(code, module.__dict__)
    except BaseException as error:
        sys.modules.pop(name, None)
        message = exception_message(error, folder)
        if issubclass(type(error), ModuleNotFoundError):
            message += f"; install it for the Python that loads the file ({VERSION}), or name another one with --python"
        problems.append(_problem(f"{kind}_file", message, traceback_text(error).decode()))
        return None, source
    return module, source


def _read_function(
    module: ModuleType,
    kind: str,
    report: dict[str, object],
    problems: list[dict[str, str]],
    warnings: list[dict[str, str]],
) -> Callable[..., object] | None:
    step, name, example, read = FUNCTIONS[kind]
    try:
        signature = read(getattr(module, name)) if hasattr(module, name) else None
    except SignatureError as error:
        problems.append(_problem(step, str(error)))
        return None
    except Exception as error:
        # A `__getattr__`, a `__signature__` of the user's own.
        folder = os.path.dirname(str(getattr(module, "__file__", "")))
        problems.append(_problem(step, exception_message(error, folder), traceback_text(error).decode()))
        return None
    if signature is None:
        there = _functions_there(module)
        problems.append(
            _problem(step, f"{report['file']} defines no function called {name}{there}; define `{example}`")
        )
        return None
    report["arguments"] = signature.arguments
    report["signature"] = signature.text
    report["is_async"] = signature.is_async
    warnings.extend({"step": step, "message": message} for message in signature.warnings)
    return signature.call


def _read_reward_spec(module: ModuleType, report: dict[str, object], problems: list[dict[str, str]]) -> None:
    if "REWARD_SPEC" not in vars(module):
        return
    try:
        spec = parse_reward_spec(module.REWARD_SPEC)
    except ValueError as error:
        problems.append(_problem("reward_spec", f"ValueError: {error}"))
        return
    report["reward_spec_json"] = to_json(module.REWARD_SPEC)
    report["reward_weights"] = {"accuracy": spec.accuracy_weight, "speed": spec.speed_weight, "cost": spec.cost_weight}


def _fingerprint(path: str, source: bytes, folder: str) -> str:
    """A hash over the bytes that were compiled and the modules that came from the same folder."""
    digest = hashlib.sha256(source)
    own = {
        file
        for module in list(sys.modules.values())
        for file in [_file_of(module)]
        if isinstance(file, str) and file != path and is_own_file(file, folder)
    }
    for file in sorted(own):
        try:
            with open(file, "rb") as opened:
                content = opened.read()
        except OSError:
            content = b""
        name = os.fsencode(os.path.relpath(file, folder))
        digest.update(b"%d %s %d " % (len(name), name, len(content)))
        digest.update(content)
    return digest.hexdigest()


def _file_of(module: object) -> object:
    """The file that a module came from. One that loads itself lazily may do, or raise, anything when it is asked."""
    try:
        fields: object = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return None
    return fields.get("__file__") if isinstance(fields, dict) else None


def _problem(step: str, message: str, trace: str = "") -> dict[str, str]:
    return {"step": step, "message": cut(message, MESSAGE_BYTES), "traceback": trace}


def _functions_there(module: ModuleType) -> str:
    """The functions that a file does define, as the error names them that misses one."""
    names = [
        name
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__ and not name.startswith("_")
    ]
    if not names:
        return ""
    more = f" and {len(names) - SHOWN_FUNCTIONS} more" if len(names) > SHOWN_FUNCTIONS else ""
    return f", only {', '.join(names[:SHOWN_FUNCTIONS])}{more}"
