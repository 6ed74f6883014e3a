"""The problems with contexts, in a short form: the bars hold, and a policy that ignores contexts misses them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driftsack.benchmarks import lp_contextual
from driftsack.policies import Adaptive
from lab import context_problems
from lab.__main__ import app
from lab.context_problems import KINDS, Size, hand_share, kind_row
from lab.contexts import Row
from lab.speed.timing import Progress

SHORT = Size(worlds=2, horizon=4_000)


def quiet(text: str) -> None:
    assert text


@pytest.mark.parametrize("name", ["linear", "hours of the day"])
def test_a_kind_of_problems_has_a_bar_that_a_weak_policy_misses(name: str) -> None:
    kind = KINDS[name]._replace(bar=0.8)
    row = kind_row(name, kind, SHORT, 0, quiet)
    assert row["holds"] == "yes"
    assert row["weak"] < 0.8 <= row["share"]
    assert 0.9 < row["spent"] <= 1.0
    blind = kind_row(name, kind._replace(policy=Adaptive()), SHORT, 0, quiet)  # the planted fault
    assert blind["holds"] == "no"


def test_every_kind_can_be_made_and_has_an_optimum() -> None:
    for name, kind in KINDS.items():
        world = kind.make(500, 1)
        best = lp_contextual(world, tolerance=1e-3).value
        assert 0.0 < best <= 500, name
        assert lp_contextual(kind.make(500, 1), tolerance=1e-3).value == best  # from its seed only


def test_the_rule_by_hand_learns() -> None:
    world = KINDS["linear"].make(4_000, 0)
    assert 0.75 < hand_share(world, 0) / lp_contextual(world, tolerance=1e-3).value < 1.05


@dataclass
class Asked:
    """What the command asked for."""

    quick: bool = False
    seed: int = -1


@pytest.mark.parametrize(("holds", "code"), [("yes", 0), ("no", 1)])
def test_the_command_writes_its_page_and_fails_if_a_bar_is_missed(
    holds: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()

    def measure(quick: bool, seed: int, progress: Progress) -> list[Row]:
        progress("measuring")
        asked.quick, asked.seed = quick, seed
        return [{"problem": "linear", "share": 0.95, "holds": holds}]

    monkeypatch.setattr(context_problems, "problem_rows", measure)
    page = tmp_path / "page.md"
    command = ["context-problems", "--quick", "--seed", "4", "--markdown", str(page), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == code
    assert asked == Asked(True, 4)
    assert json.loads(result.stdout)["rows"][0]["share"] == 0.95
    assert "| linear | 0.95 |" in page.read_text()
