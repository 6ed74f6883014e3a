"""The MCP server, over standard input and output, with the client of the official package."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from typer.testing import CliRunner

from driftsack.cli import app
from tests.support.live_service import Live, serving

TOOLS = {"what_is_left", "why", "ask", "tell"}


def server_of(live: Live, campaign: str = "chat") -> Any:
    environment = {**os.environ, "DRIFTSACK_URL": live.url, "DRIFTSACK_KEY": live.key}
    return stdio_client(
        StdioServerParameters(command=sys.executable, args=["-m", "driftsack", "mcp", campaign], env=environment)
    )


async def called(client: Any, name: str, **arguments: Any) -> Any:
    """Call a tool, and return its structured answer."""
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def wrong(client: Any, name: str, **arguments: Any) -> str:
    """Call a tool that fails, and return what it says."""
    answer = await client.call_tool(name, arguments)
    assert answer.is_error
    return str(answer.content[0].text)


@pytest.mark.slow
def test_an_assistant_asks_and_tells(tmp_path: Path) -> None:
    async def talk(live: Live) -> None:
        async with Client(server_of(live)) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == TOOLS
            assert all(tool.description for tool in tools)
            # Ask, tell the parts of the outcome, and see them charged.
            asked = await called(client, "ask", caps={"usd": "0.05"}, arms=["a"])
            assert (asked["skipped"], asked["arm"], asked["reserved"]) == (False, "a", {"usd": "0.05"})
            assert (await called(client, "what_is_left"))["pending"] == 1
            await called(client, "tell", id=asked["id"], costs={"usd": "0.02"})
            for _ in range(2):
                assert await called(client, "tell", id=asked["id"], reward=1) == {"told": True}
            left = await called(client, "what_is_left")
            assert (left["pending"], left["told"], left["reward"]) == (0, 1, 1.0)
            assert left["budgets"][0]["spent"] == "0.02"
            assert (await called(client, "why", decision=1))["arm"] == "a"
            # What is wrong is said.
            assert "already" in await wrong(client, "tell", id=asked["id"], reward=0)
            assert "id must be one" in await wrong(client, "tell", id="other/1/x", reward=0)
            assert "decision" in await wrong(client, "why", decision=99)
            assert "arms are" in await wrong(client, "ask", arms=["z"])
            # A campaign that is used up gives an answer.

            assert await called(client, "ask") == {"skipped": True, "reason": "horizon"}

    with serving(str(tmp_path / "s.db")) as live:
        live.open("chat", arms=["a", "b"], budget={"usd": "0.1"}, cost_max={"usd": "0.06"}, fallback="a", horizon=1)
        asyncio.run(talk(live))


def test_a_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRIFTSACK_KEY", raising=False)
    done = CliRunner().invoke(app, ["mcp", "chat"])
    assert done.exit_code != 0
    assert "DRIFTSACK_KEY" in done.output
