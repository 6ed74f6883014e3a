"""The README is short, in the order in which it is read, and recommends what everything else recommends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

import driftsack as ds
from driftsack.advice.candidates import candidates
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()
ORDER = (
    "# driftsack",
    "**driftsack decides",
    "docs/figures/budget.png",
    "pip install",
    "ds.Adaptive().start",
    "make reproduce",
    "make test",
    "## Why not just",
    "## For practice",
    "## For research",
    "docs/figures/figure_1b.png",
    "CITATION.cff",
)
RIVALS = ("ParetoBandit", "river", "MABWiser", "Vowpal Wabbit", "LiteLLM", "ε-greedy")


def disorder(text: str) -> list[str]:
    """List the marks that are missing or out of order."""
    found, place = [], 0
    for mark in ORDER:
        at = text.find(mark, place)
        if at < 0:
            found.append(mark)
        else:
            place = at
    return found


def test_the_order() -> None:
    assert len(README.splitlines()) <= 120
    assert disorder(README) == []
    assert disorder(README.replace("pip install", "install")) == ["pip install"]  # planted faults
    assert disorder("## For research\n" + README.replace("## For research", "")) == ["## For research"]


def test_the_quick_start_has_ten_lines_and_real_units() -> None:
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block is not None
    code = [line for line in block[1].splitlines() if line.startswith((">>>", "..."))]
    assert len(code) <= 10
    assert "ds.Adaptive()" in block[1]
    assert '"usd"' in block[1]


@pytest.mark.parametrize("rival", RIVALS)
def test_every_rival_has_its_line_and_its_measurement(rival: str) -> None:
    """Figures of the README are those of the page, which quotes what docs/comparison/measure.py printed."""
    page = (ROOT / "docs" / "comparison.md").read_text()
    line = next(row for row in README.splitlines() if row.startswith(f"| {rival}"))
    figures = re.findall(r"\b0\.\d{3}\b", line)
    assert len(figures) >= 2
    assert [figure for figure in figures if f"| {figure} ±" not in page] == []


def test_one_policy_is_recommended_everywhere() -> None:
    pages = [README, *((ROOT / "docs" / name).read_text() for name in ("choose.md", "quickstart.md"))]
    for text in pages:
        policies = re.findall(r"\b(?:ds\.)?([A-Z]\w+)\(", text)
        first = next(name for name in policies if hasattr(ds, name) and name not in ("Problem", "Learner"))
        assert first == "Adaptive"
    problem = ds.Problem(horizon=1_000, arms=2, budget=[100.0])
    assert candidates(problem)[0].policy == ds.Adaptive()
    named = re.findall(r"`(\w+)`", (ROOT / "docs" / "policies.md").read_text())
    assert next(name for name in named if hasattr(ds.policies, name)) == "Adaptive"


def test_the_picture_can_be_drawn_again(tmp_path: Path) -> None:
    script = ROOT / "docs" / "comparison" / "budget_figure.py"
    done = subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True, text=True)
    assert imread(tmp_path / "budget.png").shape == imread(ROOT / "docs" / "figures" / "budget.png").shape
    good = {name: float(count.replace(",", "")) for name, count in re.findall(r"(.+): ([\d,]+) good", done.stdout)}
    assert good["Adaptive"] > 1.3 * max(count for name, count in good.items() if name != "Adaptive")
    assert "out of money after a third" in README
    spent = re.search(r"ε-greedy on quality: .*request ([\d,]+)", done.stdout)
    assert spent is not None
    assert abs(float(spent[1].replace(",", "")) - 10_000 / 3) < 300
