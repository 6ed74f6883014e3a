"""Who follows only the commands of the README has a service that decides. The installation itself is not repeated."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()


class Shells(NamedTuple):
    """The two shells of the README: what is typed in the second one, and the key that the first one printed."""

    commands: str
    key: str
    folder: Path

    def last_answer(self, commands: str, key: str) -> Any:
        """What the last command prints."""
        shell = shutil.which("bash") or "sh"
        found = subprocess.run(
            [shell, "-c", commands],
            cwd=self.folder,
            env={**os.environ, "KEY": key},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return json.loads(found.stdout[found.stdout.rindex("}{") + 1 :] if "}{" in found.stdout else found.stdout)


@pytest.fixture
def shells(tmp_path: Path) -> Iterator[Shells]:
    """``driftsack serve`` as the README has it, in an empty folder and on a port that is free."""
    block = re.search(r"```sh\npip install '\.\[service\]'\n(.*?)```", README, re.DOTALL)
    assert block is not None
    first, _, commands = block[1].partition("driftsack serve")
    assert "driftsack demo" in first  # tests/test_demo.py has it
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = Path(sys.executable).parent / "driftsack"
    process = subprocess.Popen(
        [command, "serve"],
        cwd=tmp_path,
        env={**os.environ, "DRIFTSACK_PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        key = process.stdout.readline().strip()
        while "listening on" not in process.stderr.readline():
            assert process.poll() is None
        yield Shells(commands.partition("\n")[2].replace("8787", str(port)), key, tmp_path)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_the_service_of_the_readme_decides(shells: Shells) -> None:
    opened, asked = re.split(r"\n(?=curl [^\n]*/decisions)", shells.commands)
    assert shells.last_answer(asked, shells.key)["status"] == 404  # who opens no campaign gets no decision
    assert shells.last_answer(shells.commands, shells.key + "0")["status"] == 401  # nor does who mistypes the key
    assert shells.last_answer(opened, shells.key)["state"] == "active"
    found = shells.last_answer(asked, shells.key)
    assert found["decision"] == 1
    assert found["arm"] in ("small", "large")
    assert float(found["reserved"]["usd"]) == 0.08
