"""The README is short, in the order in which it is read, and recommends what everything else recommends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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
    "## For practice",
    "## As a service",
    "## For research",
    "CITATION.cff",
)


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
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    assert len(README.splitlines()) <= 70
    assert 100 < len(prose.split()) <= 600
    assert disorder(README) == []
    assert disorder(README.replace("pip install", "install")) == ["pip install"]  # planted faults
    assert disorder("## For research\n" + README.replace("## For research", "")) == ["## For research"]


def test_the_quick_start_is_short_runs_as_it_is_and_has_real_units() -> None:
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block is not None
    assert 5 <= len([line for line in block[1].splitlines() if line]) <= 12
    assert ">>>" not in block[1]  # it can be pasted
    scope: dict[str, object] = {}
    exec(block[1], scope)
    assert isinstance(scope["learner"], ds.Learner)
    assert "ds.Adaptive()" in block[1]
    assert '"usd"' in block[1]


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
