"""Run the service by the commands of the README, in two shells."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from tests.support.paths import ROOT

README = ROOT / "README.md"


class Commands(NamedTuple):
    """The commands of the README: install, open a campaign, and ask."""

    install: str
    open: str
    ask: str


def commands_of_readme(text: str | None = None) -> Commands:
    """The commands of the README's section about the service."""
    block = re.search(r"```sh\n(pip install '\.\[service\]')\n(.*?)```", text or README.read_text(), re.DOTALL)
    assert block is not None, "expected a block that begins with pip install '.[service]' in the README"
    first, _, others = block[2].partition("driftsack serve")
    assert "driftsack demo" in first  # tests/service/demo/test_demo.py has it
    opened, asked = re.split(r"\n(?=curl [^\n]*/decisions)", others.partition("\n")[2])
    return Commands(block[1], opened, asked)


class Service:
    """``driftsack serve`` in an empty directory, on a free port, and a second shell.

    Args:
        command: The path of the installed command.
        directory: The directory of the store.
        variables: The environment variables; by default those of this process.

    Attributes:
        key: The key printed by the service.
    """

    def __init__(self, command: Path, directory: Path, variables: Mapping[str, str] | None = None) -> None:
        self._command, self._directory = command, directory
        self._variables = dict(os.environ if variables is None else variables)
        self.key = ""

    def __enter__(self) -> Service:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [self._command, "serve"],
            cwd=self._directory,
            env={**self._variables, "DRIFTSACK_PORT": str(self._port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.key = self._process.stdout.readline().strip()
        while "listening on" not in self._process.stderr.readline():
            assert self._process.poll() is None, "driftsack serve ended"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)

    def last_answer(self, commands: str, key: str) -> Any:
        """Run commands in the second shell; return the parsed output of the last one."""
        found = subprocess.run(
            [shutil.which("bash") or "sh", "-c", commands.replace("8787", str(self._port))],
            cwd=self._directory,
            env={**self._variables, "KEY": key},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return json.loads(found.stdout[found.stdout.rindex("}{") + 1 :] if "}{" in found.stdout else found.stdout)
