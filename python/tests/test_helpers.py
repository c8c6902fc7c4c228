from __future__ import annotations

import subprocess
import sys

import skynet


def test_every_promised_name_can_be_imported() -> None:
    assert all(hasattr(skynet, name) for name in skynet.__all__)


def test_the_package_needs_nothing_but_the_standard_library() -> None:
    code = "import sys, skynet; print(sorted({n.split('.')[0] for n in sys.modules} & {'numpy', 'asyncio', 'grpc'}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
