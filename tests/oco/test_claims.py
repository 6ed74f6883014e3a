"""Verdicts on section 4, and the command that shows them."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from driftsack import paper
from driftsack.cli import app
from driftsack.paper import oco as work
from driftsack.paper import oco_claims
from driftsack.sweeps.growth import Slope
from driftsack.verify import STATEMENTS
from driftsack.verify.statement import CONSISTENT, WEAK


def test_claims_can_fail() -> None:
    assert oco_claims.within(Slope(0.52, 0.01))
    assert oco_claims.within(None)
    assert not oco_claims.within(Slope(0.75, 0.02))
    horizons, spread = np.array([10**3, 10**4, 10**5, 10**6]), np.array([[0.98], [1.0], [1.02]])

    def exponent(means: list[float]) -> Slope | None:
        values = spread * np.array(means)
        return work.Study("made", horizons, values, values, values).exponent(values)

    late = exponent([-5.0, 10.0, 100.0, 1_000.0])  # starting below 0 must not hide linear growth
    assert late is not None
    assert late.value == pytest.approx(1.0)
    assert not oco_claims.within(late)
    assert exponent([5.0, 3.0, -1.0, -100.0]) is None
    for family in ("linear", "quadratic", "norm"):
        sample = work.random_instances(count=10, seed=4, family=family)
        assert sample.least >= -2 * sample.gap - 1e-8
        assert 0.0 < sample.largest_share <= 1.0


@pytest.mark.slow
def test_reproduce_oco_writes_figure_table_and_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = functools.partial(paper.reproduce_oco, horizons=(500, 2_000, 8_000), draws=2, random=6)
    monkeypatch.setattr(paper, "reproduce_oco", quick)
    result = CliRunner().invoke(app, ["reproduce", "--oco", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    verdicts = {claim["claim"]: claim["verdict"] for claim in document["claims"]}
    assert verdicts["Proposition 2: 0 ≤ OPT′ − OPT ≤ q̄W"] == "holds"
    assert verdicts["Algorithm 2: the printed parameters give Theorem 3"] == "false as printed"
    expected = {statement.name: statement.expected for statement in STATEMENTS}
    for claim in document["claims"]:  # the words of ``driftsack verify``, which also knows the power
        wanted = expected[claim["check"]]
        assert claim["verdict"] == (CONSISTENT if wanted is WEAK else wanted), claim
    assert len(document["table"]) == 18
    assert {path.name for path in tmp_path.iterdir()} == {"oco.png", "oco.svg", "oco.pdf", "oco.csv"}
    svg = (tmp_path / "oco.svg").read_text()
    for label in ("Reg1", "Reg2", "rounds T", "closed form as printed", "job scheduling"):
        assert label in svg
    shown = CliRunner().invoke(app, ["reproduce", "--oco", "--out", str(tmp_path)])
    assert "Theorem 3: Reg2" in shown.stdout
