"""Follow only the README in a clean environment, as a newcomer would, until the service decides.

The last commit is cloned into an empty directory with a virtual environment of its own, and no compiled kernel is taken
over. tests/docs/test_readme_service.py types the same commands with the installed package.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT
from tests.support.readme_commands import Service, commands_of_readme

LIMIT = 600.0  # seconds
OWN = ("PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR", "PIP_CONSTRAINT")  # variables that a newcomer does not have


def run(command: str, directory: Path, variables: dict[str, str]) -> None:
    """Type a command, and print how long it took."""
    start = time.monotonic()
    subprocess.run(["bash", "-euc", command], cwd=directory, env=variables, check=True)  # noqa: S607
    print(f"{time.monotonic() - start:6.1f} s  {command}")


def decided(directory: Path) -> Any:
    """The first decision of a service that was set up in an empty directory by the README alone."""
    checkout = directory / "driftsack"
    variables = {name: value for name, value in os.environ.items() if name not in OWN}
    variables["PATH"] = f"{checkout}/.venv/bin:{variables['PATH']}"
    run(f"git clone --quiet '{ROOT}' '{checkout}'", directory, variables)
    run("python3 -m venv .venv", checkout, variables)
    commands = commands_of_readme()
    run(commands.install, checkout, variables)
    start = time.monotonic()
    with Service(checkout / ".venv/bin/driftsack", directory, variables) as service:
        print(f"{time.monotonic() - start:6.1f} s  driftsack serve")
        start = time.monotonic()
        service.last_answer(commands.open, service.key)
        answer = service.last_answer(commands.ask, service.key)
        print(f"{time.monotonic() - start:6.1f} s  curl (open), curl (ask)")
    return answer


def follow_readme() -> int:
    """Follow the README, print the time of each step, and return the number of faults."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        answer = decided(Path(directory))
    took = time.monotonic() - start
    is_right = answer.get("decision") == 1 and answer.get("arm") in ("small", "large")
    print(f"{took:6.1f} s in all; {answer}")
    return (not is_right) + (took > LIMIT)
