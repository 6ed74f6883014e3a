"""Progress of long commands: a bar in a terminal, and a line now and then in a log."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from driftsack.cli import console


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a file gets to which stderr is redirected."""
    file = io.StringIO()
    monkeypatch.setattr(console, "messages", Console(file=file, markup=False, emoji=False, force_terminal=False))
    return file


def test_a_log_gets_a_line_every_half_minute(log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    with console.status_line("starting") as show:
        for k in range(100):
            seconds[0] += 1.0
            show(f"step {k} of 100")
    assert [line for line in log.getvalue().splitlines() if line.startswith("step")] == [
        "step 29 of 100",
        "step 59 of 100",
        "step 89 of 100",
    ]


def test_a_bar_in_a_log_says_how_far_it_is(log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "BETWEEN_LINES", 0.0)
    with console.progress_bar() as bar:
        show = console.single_line(bar)
        show("files", 2_500, 100_000)
        assert "files: 2,500 of 100,000" in log.getvalue().splitlines()


def test_a_short_command_and_a_terminal_get_no_lines(log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing before the first half minute; in a terminal the bar itself is enough."""
    with console.status_line("starting") as show:
        show("step")
    assert log.getvalue().strip() == ""
    terminal = io.StringIO()
    monkeypatch.setattr(console, "messages", Console(file=terminal, force_terminal=True, width=80))
    monkeypatch.setattr(console, "BETWEEN_LINES", 0.0)
    lines = console.LogLines()
    lines.show("step")
    assert terminal.getvalue() == ""
