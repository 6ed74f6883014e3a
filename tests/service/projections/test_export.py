"""Exports of the service are logs that the library reads, evaluates and advises on, with two budgets."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import driftsack as ds
from driftsack.cli import app
from driftsack.core.decision import SKIP
from driftsack.core.errors import LogError, NamesError
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.book import deltas
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.projections import export
from driftsack.service.projections.export import as_csv
from driftsack.service.runtime.recovery import encode_config
from driftsack.service.store.interface import Owner
from driftsack.service.store.sqlite import SQLiteStore
from tests.support.campaigns import START, small

ROUNDS = 400
TWO: dict[str, Any] = {
    "arms": ["small", "medium", "large"],
    "budget": {"usd": "12", "seconds": "60"},
    "cost_max": {"usd": "0.1", "seconds": "1"},
    "horizon": ROUNDS,
}


def played(path: Path, policy: str = "ThompsonBwK", probability: float | None = None) -> None:
    """Write the journal of a campaign; ``probability`` replaces the last one, as an earlier release wrote it."""
    now, rng = Now(START, 0), np.random.default_rng(0)
    campaign = Campaign.open(small(**TWO, policy={"policy": policy}), now)
    for _ in range(ROUNDS):
        asked = campaign.handle(ms.Ask(), now)
        if not asked.skipped:
            arm = TWO["arms"].index(asked.arm)
            costs: dict[str, str | int] = {"usd": f"{0.01 + 0.04 * arm:.2f}", "seconds": f"{0.3 - 0.1 * arm:.1f}"}
            campaign.handle(ms.Tell(float(rng.random() < 0.4 + 0.2 * arm), costs), now, number=asked.decision)
    events = campaign.take()
    if probability is not None:
        [*_, last] = [event for event in events if isinstance(event, journal.Asked) and event.arm != SKIP]
        last.probability = probability
    body, book = journal.encode(events), campaign.book
    segment = journal.Segment(
        "chat", 1, book.seq, book.at, 1, deltas({}, book.accounts), body, journal.chained(journal.START, body)
    )
    with closing(SQLiteStore(path)) as store:
        store.create(segment, encode_config(campaign.config), Owner("test"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("export") / "s.db"
    played(path)
    return str(path)


def exported(path: str | Path) -> str:
    with closing(SQLiteStore(path, read_only=True)) as opened:
        return as_csv(opened, "chat")


def test_propensities_are_probabilities(store: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(exported(store))
    log = ds.logs.read(tmp_path / "log.csv")
    assert log.propensity is not None
    assert log.propensity.max() <= 1.0
    assert log.propensity.max() > 0.99  # some plans have one arm, where rounding showed


@pytest.mark.parametrize("planted", [False, True])
def test_rounding_errors_in_an_old_journal_are_clipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The planted fault is to write them as they are, which the reader of logs refuses."""
    played(tmp_path / "old.db", "UniformRandom", 1.0000000000000007)
    if planted:
        monkeypatch.setattr(export, "min", lambda one, _: one, raising=False)
    (tmp_path / "log.csv").write_text(exported(tmp_path / "old.db"))
    if planted:
        with pytest.raises(LogError):
            ds.logs.read(tmp_path / "log.csv")
    else:
        assert ds.logs.read(tmp_path / "log.csv").propensity.max() == 1.0  # type: ignore[union-attr]


def test_what_if_answers(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    played(tmp_path / "old.db", "UniformRandom", 1.0000000000000007)
    command = ["campaign", "what-if", "chat", "--policy", "UniformRandom", "--trials", "2", "--store", path, "--json"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["rounds"] > 100


@pytest.mark.slow
def test_advice_on_an_export(store: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(exported(store))
    log = ds.logs.read(tmp_path / "log.csv")
    advice = ds.advise(log, budget=[12.0, 60.0], trials=2)
    assert advice.policy is not None


def test_an_export_is_read_with_the_names_of_the_campaign(store: str, tmp_path: Path) -> None:
    """Budgets may be called usd as in the campaign, and a learner of its resources learns the log as it is."""
    (tmp_path / "log.csv").write_text(exported(store))
    log = ds.logs.read(tmp_path / "log.csv", cost_max={"seconds": 1.0, "usd": 0.1})
    assert (log.resources, log.cost_max) == (("cost_usd", "cost_seconds"), (0.1, 1.0))
    with pytest.raises(NamesError, match="'eur' unknown"):
        ds.logs.read(tmp_path / "log.csv", cost_max={"seconds": 1.0, "eur": 0.1})
    problem = ds.Problem(100, TWO["arms"], {"seconds": 50, "usd": 2}, cost_max={"usd": 0.1, "seconds": 1})
    learner = ds.NaiveUCB().start(problem)
    assert learner.teach(log) == len(log)
