"""The answer of the page: the present rule beside the recommended policy, what to do, and a warm learner."""

from __future__ import annotations

import datetime as dt
import html
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import driftsack as ds
from driftsack.advice import own_rule as own_rule_module
from driftsack.advice.fit import Fit
from driftsack.advice.warm_start import half_life, taught
from driftsack.core.text import percent
from driftsack.measures.drift_kind import DriftKind

ROUNDS = 1_200  # half an hour each: 25 days
REWARDS, PRICES = {"small": 0.3, "large": 0.9}, {"small": 0.1, "large": 0.2}


def log_of_a_rule(share: float = 0.5) -> pl.DataFrame:
    """A log without noise, of a rule that plays the large arm in a share of the rounds."""
    rng = np.random.default_rng(0)
    arms = np.where(rng.random(ROUNDS) < share, "large", "small").tolist()
    start = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    times = [(start + dt.timedelta(minutes=30 * t)).isoformat() for t in range(ROUNDS)]
    columns = {"ts": times, "arm": arms, "answers": [REWARDS[a] for a in arms], "usd": [PRICES[a] for a in arms]}
    return pl.DataFrame(columns)


def advised(frame: pl.DataFrame, budget: float = 120.0, horizon: int | None = None) -> ds.Advice:
    columns = {"time": "ts", "reward": "answers"}
    return ds.advise(frame, budget, horizon, columns=columns, resources=["usd"], plans=False, worlds=2, trials=1)


@pytest.fixture(scope="module")
def advice() -> ds.Advice:
    return advised(log_of_a_rule())


def test_the_answer_compares_with_the_present_rule_a_day(advice: ds.Advice) -> None:
    """48 rounds a day; $120 pays for the large arm in half of the rounds, which is better than the small arm."""
    answers, dollars = log_of_a_rule().select("answers", "usd").sum().row(0)
    assert f"Your present rule earned {answers / 25:.3g} answers a day for ${dollars / 25:.2f}" in advice.answer
    own = advice.own_rule
    assert own is not None
    assert own.enough is not None
    assert own.covered == pytest.approx(120 / dollars)
    # An efficient policy earns 4.5 answers per dollar, so it needs this part of what the present rule spent.
    share = advice.expected / advice.worth.best
    assert own.enough == pytest.approx(answers / (4.5 * share) / dollars, abs=2e-3)
    assert f"or the same as now for ${(1 - own.enough) * dollars / 25:.2f} a day less" in advice.answer
    low, high = (float(one) for one in re.findall(r"interval ([\d.]+) to ([\d.]+)", advice.answer)[0])
    assert 0.999 * low <= advice.expected / 25 <= 1.001 * high  # printed with three digits


def test_a_rule_that_cannot_be_beaten_is_not_said_to_be() -> None:
    """With the best arm only, nothing is saved, unless a policy could earn more than the optimum."""
    log = ds.logs.survey(log_of_a_rule(1.0), columns={"time": "ts", "reward": "answers"}, resources=["usd"])
    world = ds.Instance.stationary(
        [0.9], [[0.2]], ROUNDS, 240, "deterministic", arm_names=["large"], resource_names=["usd"]
    )
    best = own_rule_module.own_rule(log, world, efficiency=0.97)
    assert best is not None
    assert best.enough is None
    too_good = own_rule_module.own_rule(log, world, efficiency=1.3)
    assert too_good is not None
    assert too_good.enough == pytest.approx(1 / 1.3, abs=2e-3)


def test_the_page_begins_with_the_answer_and_three_actions(advice: ds.Advice, tmp_path: Path) -> None:
    page = html.unescape(advice.html())
    lead, what, why = (page.index(part) for part in (f'<p class="lead">{advice.answer}', "What to do", "<h2>Why"))
    assert lead < what < why < page.index(advice.summary[:60])
    assert page[what:why].count("<li>") == len(advice.actions) == 3
    assert "color: #444" not in re.findall(r"p\.lead {[^}]*}", page)[0]
    assert "If you can spend more, add usd: one more dollar would earn about 4.5 more answers." in advice.actions
    assert "$120.00" in page  # budgets have units
    now, with_policy = page.index("<td>28.2 answers</td>"), page.index("<td>at most $4.80</td>")
    assert page.index("your present rule") < now < with_policy < what
    assert str(advice).startswith(advice.answer)


def test_changes_have_dates_and_gains_and_no_plan_is_advised_that_is_not_recommended() -> None:
    frame = log_of_a_rule()
    later = pl.int_range(ROUNDS) >= ROUNDS // 2
    dear = frame.with_columns(usd=pl.when(later).then(pl.col("usd") * 4).otherwise(pl.col("usd")))
    found = advised(dear)
    assert found.kind is DriftKind.WHEN
    assert re.search(r"Drift detected around 1[34] March 2024 \(round [56]\d\d\)", found.summary)
    timing, tracking = found.worth.timing, max(found.worth.tracking, 0.0)
    which, when = (percent(gain if gain > 0.0005 else 0.0) for gain in (tracking, timing))
    assert f"which arm is best is worth {which} of the optimum, choosing when to spend {when}." in found.actions[1]
    assert "plan the spending" not in str(found)
    assert "spend unevenly" in found.actions[1]


def test_the_learner_has_learnt_the_log_and_its_first_mix_is_stated(advice: ds.Advice, tmp_path: Path) -> None:
    advice.save(tmp_path / "advice.learner")
    loaded = ds.Learner.load(tmp_path / "advice.learner")
    assert (loaded.round, loaded.remaining.tolist()) == (0, [120.0])  # the past costs nothing
    mix = dict(zip(loaded.problem.arm_names, loaded.ask().mix.tolist(), strict=True))
    assert mix == pytest.approx(advice.first_mix)
    assert mix["large"] > 0.3  # a cold learner cannot prefer an arm
    assert mix["small"] < 0.05
    assert f"has learnt 1,200 rounds of the log, and its first mix is large {mix['large']:.0%}" in advice.actions[0]
    assert advice.actions[0].split("first mix is ")[1] in html.unescape(advice.html()).split("Its first mix: ")[1]


def test_a_table_is_learnt_in_turns_and_old_rounds_count_less() -> None:
    rows = {"time": [1, 2, 3], "reward:a": [1, 2, 3], "cost:a": [1, 1, 1], "reward:b": [4, 5, 6], "cost:b": [2, 2, 2]}
    part = taught(ds.logs.read(pl.DataFrame(rows)))
    assert (part.arm.tolist(), part.reward.tolist(), part.costs[:, 0].tolist()) == ([0, 1, 0], [1, 5, 3], [1, 2, 1])
    changes = np.array([200, 700])
    assert half_life(Fit(changes, np.zeros((3, 2, 2)), "beta", np.ones(2)), rows=1_000) == 150.0
    assert half_life(Fit(changes[:0], np.zeros((1, 2, 2)), "beta", np.ones(2)), rows=1_000) is None


def test_a_warm_learner_earns_more_at_once() -> None:
    """Five arms, one of which is good: in its first 100 rounds the cold learner has to find it, the warm one knows."""
    world = ds.Instance.stationary([0.2, 0.2, 0.2, 0.2, 0.8], [[0.5] * 5], 300, 150)
    found = ds.advise(ds.gather(world, seed=1), budget=150, plans=False, worlds=1, trials=1)
    earned = {"warm": 0, "cold": 0}
    for seed in range(5):
        for name, learner in (("warm", found.start(seed)), ("cold", found.policy.start(found.problem, seed))):
            for _ in range(100):
                decision = learner.ask()
                if not decision.skipped:
                    learner.tell(decision, float(decision.arm == 4), [0.5])
                    earned[name] += decision.arm == 4
    assert earned["warm"] > 1.05 * earned["cold"]
