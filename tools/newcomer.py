"""Follow only the README in a clean environment, as a newcomer would, until the service decides.

``python tools/newcomer.py`` clones the last commit into an empty folder, makes a virtual environment there, types the
README's commands for the service, and says how long each step took. It fails above ten minutes. No compiled kernel is
taken over. tests/test_readme_service.py types the same commands with the installed package.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.readme_service import Service, commands_of_readme

LIMIT = 600.0  # seconds
OWN = ("PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR", "PIP_CONSTRAINT")  # what a newcomer does not have


def run(command: str, folder: Path, variables: dict[str, str]) -> None:
    """Type a command."""
    start = time.monotonic()
    subprocess.run(["bash", "-euc", command], cwd=folder, env=variables, check=True)  # noqa: S603, S607
    print(f"{time.monotonic() - start:6.1f} s  {command}")


def decided(folder: Path) -> Any:
    """The first decision of a service that was set up in an empty folder by the README alone."""
    checkout = folder / "driftsack"
    variables = {name: value for name, value in os.environ.items() if name not in OWN}
    variables["PATH"] = f"{checkout}/.venv/bin:{variables['PATH']}"
    run(f"git clone --quiet '{ROOT}' '{checkout}'", folder, variables)
    run("python3 -m venv .venv", checkout, variables)
    commands = commands_of_readme()
    run(commands.install, checkout, variables)
    start = time.monotonic()
    with Service(checkout / ".venv/bin/driftsack", folder, variables) as service:
        print(f"{time.monotonic() - start:6.1f} s  driftsack serve")
        start = time.monotonic()
        service.last_answer(commands.open, service.key)
        answer = service.last_answer(commands.ask, service.key)
        print(f"{time.monotonic() - start:6.1f} s  curl (open), curl (ask)")
    return answer


def main() -> int:
    """Be a newcomer; return the number of faults."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        answer = decided(Path(folder))
    took = time.monotonic() - start
    is_right = answer.get("decision") == 1 and answer.get("arm") in ("small", "large")
    print(f"{took:6.1f} s in all; {answer}")
    return (not is_right) + (took > LIMIT)


if __name__ == "__main__":
    sys.exit(main() > 0)
