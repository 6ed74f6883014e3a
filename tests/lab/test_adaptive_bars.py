"""The comparison of versions of Adaptive: its problems, its bars, and the planted competitors that must miss them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from driftsack.core.errors import SettingError
from lab.__main__ import app
from lab.adaptive import bars, play
from lab.adaptive.bars import Row, bill_rows, compared, row_of
from lab.adaptive.bills import OnSchedule, skips
from lab.adaptive.problems import ONE_WAY, PERSISTENCE, SECTIONS, SHORT, WHOLE, one_way, persistent
from lab.speed.timing import Progress


def quiet(text: str) -> None:
    assert text


@pytest.mark.parametrize("section", ["families", "persistent", "one-way"])
def test_a_seed_determines_the_problems(section: str) -> None:
    one, again, other = (list(SECTIONS[section](seed, SHORT)) for seed in (1, 1, 2))
    assert [play.group for play in one] == [play.group for play in again]
    for a, b in zip(one, again, strict=True):
        np.testing.assert_array_equal(a.world.rewards, b.world.rewards)
        np.testing.assert_array_equal(a.world.costs, b.world.costs)
    assert any(a.world.rewards.tobytes() != b.world.rewards.tobytes() for a, b in zip(one, other, strict=True))


def test_the_problems_are_what_their_names_say() -> None:
    """Persistent noise has its autocorrelation, and rewards or costs change by their factors in the middle third."""
    for problem in persistent(0, SHORT):
        rewards = problem.world.rewards[problem.world.phase][: SHORT.horizon // 2]
        centred = rewards - rewards.mean(axis=0)
        memory = (centred[1:] * centred[:-1]).sum() / (centred**2).sum()
        expected = next(one for one in PERSISTENCE if f"φ = {one:g}," in problem.group)
        assert abs(memory - expected) < 0.15
    for problem in one_way(0, SHORT):
        factors = ONE_WAY[problem.group.removesuffix(" for good")]
        np.testing.assert_allclose(problem.world.rewards[1], factors[0] * problem.world.rewards[0])
        np.testing.assert_allclose(problem.world.costs[1], factors[1] * problem.world.costs[0])
        change = int(np.argmax(problem.world.phase > 0))
        assert SHORT.horizon / 3 <= change <= 2 * SHORT.horizon / 3


def test_a_difference_holds_unless_it_is_surely_below_the_bar() -> None:
    assert row_of("level", np.array([-0.1, 0.1, 0.0]))["holds"] == "yes"
    assert row_of("uncertain", np.array([-3.0, 2.0, -1.0]))["holds"] == "yes"
    assert row_of("worse", np.array([-3.0, -2.0, -1.0]))["holds"] == "no"
    good, bad = {"a group": [100.0, 90.0]}, {"a group": [70.0, 60.0]}
    assert [row["holds"] for row in compared("s", good, good, bad)] == ["yes", "yes"]
    assert [row["holds"] for row in compared("s", bad, good, good)] == ["no", "no"]  # the planted one is not worse


def test_the_planted_competitors_earn_less_and_lose_outcomes_too() -> None:
    """Far too much exploration loses over 5% on changes for good; a run with lost outcomes stays within its budget."""
    mine, planted = (play.rewards("one-way", "short", 0, player) for player in ("adaptive", "planted"))
    assert sum(sum(one) for one in planted.values()) < 0.95 * sum(sum(one) for one in mine.values())
    lossy = next(one for one in SECTIONS["families"](0, SHORT) if one.lost > 0.0)
    assert play.with_losses(lossy, play.PLAYERS["adaptive"], 0) > 0.0


def test_an_absurd_bill_stops_the_planted_competitor_only() -> None:
    rows = bill_rows(2, 0, quiet)
    assert {row["holds"] for row in rows if row["figure"].startswith("planted")} == {"yes"}
    assert skips(OnSchedule(0), 0, 0.5, 30) > 400
    assert skips(OnSchedule(0), 0, 0.0, 30) < 100


@pytest.mark.parametrize(("seen", "code"), [(0.0, 0), (-3.0, 1)])
def test_the_command_writes_its_page_and_fails_if_a_bar_is_missed(
    seen: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(other: Path, size: str, seed: int, progress: Progress) -> list[Row]:
        progress("measuring")
        assert (size, seed) == ("quick", 3)
        return [row_of("a group", np.full(2, seen))]

    monkeypatch.setattr(bars, "adaptive_rows", measure)
    page = tmp_path / "page.md"
    command = ["adaptive", str(tmp_path), "--quick", "--seed", "3", "--markdown", str(page), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == code
    assert json.loads(result.stdout)["rows"][0]["seen"] == seen
    assert "| a group |" in page.read_text()


def test_a_directory_without_the_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="must contain the package driftsack"):
        bars.adaptive_rows(tmp_path, "short", 0, quiet)
    assert WHOLE.runs == 24
