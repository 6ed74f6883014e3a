"""Who pastes the commands of docs/service.md on routing by kind has a campaign that decides by it, and its page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.dashboard_client import Visitor
from tests.support.live_service import serving
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "service.md").read_text()
LINES = 10


def commands(page: str) -> str:
    """The commands of the section."""
    section = page[page.index("## Routing requests by kind") :]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None
    assert len(block[1].splitlines()) <= LINES + 1, "expected ten commands and settings, and the end of the file"
    return block[1]


def run(text: str, directory: Path) -> tuple[list[dict[str, object]], str]:
    """Run commands against a service; return the JSON documents that they print, and the campaign's page."""
    with serving(str(directory / "s.db")) as live:
        port = live.url.rpartition(":")[2]
        given = text.replace("localhost:8787", f"127.0.0.1:{port}")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        variables = {**os.environ, "KEY": live.key, "PATH": path, "DRIFTSACK_URL": live.url}
        done = subprocess.run(
            ["sh", "-e", "-c", given.replace("curl ", "curl -sS ")],
            cwd=directory,
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        )
        printed = [json.loads(line) for line in re.findall(r"{.*?}(?={|$)", done.stdout, re.MULTILINE)]
        return printed, Visitor(live.url, live.key).get("/campaigns/chat").text


def test_the_commands_lead_to_the_dashboard(tmp_path: Path) -> None:
    printed, page = run(commands(PAGE), tmp_path)
    assert [answer["decision"] for answer in printed] == [1, 1]
    assert printed[0]["arm"] == "small"
    assert printed[1]["state"] == "told"
    assert "Requests by segment" in page
    assert "code" in page


def test_a_context_that_was_not_declared_is_noticed(tmp_path: Path) -> None:
    """The planted fault: the page declares another name than it sends."""
    printed, page = run(commands(PAGE).replace('"kind": "code"', '"sort": "code"'), tmp_path)
    assert [answer.get("decision") for answer in printed] != [1, 1]
    assert "urn:driftsack:invalid" in {answer.get("type") for answer in printed}
    assert "code" not in page
