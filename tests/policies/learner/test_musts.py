"""Requests that must be served although others may be skipped, and fallback arms in order of preference."""

from __future__ import annotations

import copy
import pickle
from typing import Any, Literal

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import BudgetExhaustedError, SettingError
from tests.policies.test_policy_contract import LEARNERS, Recipe, built
from tests.support.constant_contexts import asked, contexts, with_features
from tests.support.forms import interpret_unless_recommended
from tests.support.learner_parts import terms_of

MOST = {"usd": {"small": 0.1, "large": 1.0}}


def problem(horizon: int = 120, budget: float = 6.0, **settings: Any) -> ds.Problem:
    return ds.Problem(horizon, ["small", "large"], {"usd": budget}, cost_max=MOST, **settings)


def told(learner: ds.Learner, decision: ds.Decision) -> None:
    """The worst outcome: the arm costs the most that it may."""
    if not decision.skipped:
        learner.tell(decision, 0.2 + 0.6 * decision.arm, [0.1, 1.0][decision.arm])


@pytest.mark.filterwarnings("ignore::driftsack.core.errors.LooseCostMaxWarning")
@LEARNERS
@pytest.mark.parametrize("safe", [True, False])
def test_no_policy_skips_a_request_that_must_be_served(
    recipe: Recipe, safe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third request, and all of the last ones, for which the budget is not enough."""
    interpret_unless_recommended(recipe, monkeypatch)
    policy = built(recipe, problem())
    learner = policy.start(with_features(policy, problem()), seed=1, safe=safe)
    while learner.round < 120:
        must = learner.round % 3 == 0 or learner.round > 80
        if learner.done and not must:
            learner.ask_many(1, must=True, contexts=contexts(learner, 1) if learner.problem.features else None)
            continue
        decision = asked(learner, must=must)
        if must:
            assert not decision.skipped
            assert decision.must
            assert decision.mix.sum() == pytest.approx(1.0)
            assert decision.mix[decision.arm] > 0.0
        told(learner, decision)


def test_a_must_is_served_by_an_arm_that_fits_and_otherwise_overspends_openly() -> None:
    learner = ds.Adaptive().start(problem(budget=1.15), seed=0, safe=True)
    for _ in range(11):
        decision = learner.ask(must=True, open=["small"])
        told(learner, decision)
    assert learner.remaining[0] == pytest.approx(0.05)
    assert learner.overruns.forced == 0
    assert learner.ask().skipped
    decision = learner.ask(must=True)
    assert learner.overruns.forced == 1
    assert learner.reserved[0] == pytest.approx(decision.reserved[0])
    told(learner, decision)
    assert learner.remaining[0] < 0.0
    assert learner.overruns.decisions == 0  # it cost what was reserved
    with pytest.raises(BudgetExhaustedError):
        learner.ask()
    assert learner.done
    assert not learner.ask(must=True).skipped
    assert learner.overruns.forced == 2
    again = ds.Learner.from_bytes(learner.to_bytes())
    assert again.overruns.forced == 2
    assert [pending.must for pending in again.pending] == [True]
    one, two = learner.ask(must=True), again.ask(must=True)
    assert (one.arm, one.mix.tolist()) == (two.arm, two.mix.tolist())


def test_what_fits_is_preferred() -> None:
    """The large arm earns more, but after the first requests no budget covers it."""
    learner = ds.Adaptive().start(problem(horizon=20, budget=1.9), seed=0, safe=True)
    told(learner, learner.ask(must=True, open=["large"]))
    names = set()
    for _ in range(9):
        decision = learner.ask(must=True)
        names.add(decision.name)
        told(learner, decision)
    assert names == {"small"}
    assert learner.overruns.forced == 0


def test_a_must_needs_an_arm() -> None:
    learner = ds.Adaptive().start(problem(), safe=True)
    before = learner.state_hash()
    with pytest.raises(SettingError, match=r"open must include one of \['small', 'large'\]"):
        learner.ask(must=True, open=[])
    with pytest.raises(SettingError, match="must"):
        learner.ask(must="yes")  # type: ignore[arg-type]
    assert learner.state_hash() == before
    assert learner.ask(open=[]).skipped


def test_batches_and_copies_show_which_requests_had_to_be_served() -> None:
    learner = ds.Adaptive().start(problem(), seed=0, safe=True)
    decisions = learner.ask_many(3, must=True)
    assert decisions.must
    assert decisions[1].must
    assert decisions[:2].must
    assert not decisions.skipped.any()
    assert not learner.ask_many(2).must
    for same in (pickle.loads(pickle.dumps(decisions)), copy.deepcopy(decisions)):
        assert same[0].must
    learner.tell_many(decisions, [0.5] * 3, [0.1] * 3)


def overspent(policy: ds.Policy, seed: int, forget: bool = False) -> float:
    """By how much 15% musts exceed the budget, in average costs, where the optional requests would use all of it."""
    world = ds.Problem(1_000, ["a", "b"], 100.0, cost_max=[[0.4, 0.8]])
    learner, rng = policy.start(world, seed=seed, safe=True), np.random.default_rng(seed)
    learner_musts = rng.random(1_000) < 0.15
    learner_musts[-150:] = rng.random(150) < 0.6  # more of them at the end than before
    for must in learner_musts.tolist():
        if learner.done and not must:
            continue
        decision = learner.ask(must=must)
        if forget:
            terms_of(learner).must_share[0] = 0.0
        if not decision.skipped:
            arm = decision.arm
            learner.tell(decision, float(rng.random() < (0.5, 0.9)[arm]), min(rng.exponential((0.2, 0.4)[arm]), 0.4))
    return float(learner.overruns.forced)


def test_the_plan_keeps_money_back_for_the_musts_to_come() -> None:
    kept = np.mean([overspent(ds.Adaptive(), seed) for seed in range(3)])
    assert kept < 25
    assert np.mean([overspent(ds.Adaptive(), seed, forget=True) for seed in range(3)]) > 2 * kept  # the planted fault


def test_without_musts_nothing_is_kept_back() -> None:
    learner = ds.Adaptive().start(problem(), seed=0)
    for _ in range(50):
        told(learner, learner.ask())
    assert terms_of(learner).must_share[0] == 0.0
    assert not learner.state.pacer.must_cost.any()


@pytest.mark.parametrize("pacing", ["two-speed", "remaining"])
def test_a_must_changes_nothing_where_every_request_is_answered(
    pacing: Literal["two-speed", "remaining", "fixed"],
) -> None:
    """With the planted fault, musts counted beside a fallback, the pace is wrong: 38% or 72% is spent by half-time."""

    def spent_by_half_time(count: bool) -> float:
        world = ds.Problem(2_000, ["a", "b"], 400.0, cost_max={"cost_0": {"a": 0.1, "b": 1.0}}, fallback="a")
        learner, rng = ds.Adaptive(pacing=pacing).start(world, seed=0), np.random.default_rng(0)
        for _ in range(1_000):
            decision = learner.ask(must=True)
            learner.tell(decision, float(rng.random() < (0.3, 0.8)[decision.arm]), (0.1, 0.6)[decision.arm])
            if count:
                learner._engine.terms.must_share[0] = 0.9
        return 1.0 - float(learner.remaining[0]) / 400.0

    assert abs(spent_by_half_time(count=False) - 0.5) < 0.05
    assert abs(spent_by_half_time(count=True) - 0.5) > 0.1


def test_a_fallback_that_is_closed_is_passed_over() -> None:
    listed = problem(fallback=["small", "large"], budget=20.0)
    assert (listed.fallback, listed.fallbacks) == (0, (0, 1))
    assert ds.Problem.from_dict(listed.to_dict()) == listed == pickle.loads(pickle.dumps(listed))
    assert "fallback=['small', 'large']" in repr(listed)
    learner = ds.Adaptive().start(listed, seed=0, safe=True)
    outage = learner.ask(open=["large"])
    assert outage.name == "large"
    assert outage.mix.sum() == pytest.approx(1.0)
    learner.retire_arm("small")
    assert learner.ask().name == "large"
    with pytest.raises(SettingError, match="fallback"):
        learner.retire_arm("large")
    with pytest.raises(SettingError, match="open must include one of"):
        learner.ask(open=[])
    with pytest.raises(SettingError, match="each of them once"):
        problem(fallback=["small", "small"])


def test_an_outage_of_the_only_fallback_is_answered_by_another_arm() -> None:
    learner = ds.Adaptive().start(problem(fallback="small", budget=20.0), seed=0, safe=True)
    for _ in range(30):
        decision = learner.ask(open=["large"])
        assert decision.skipped == (learner.remaining[0] - learner.reserved[0] < 0.0)
        told(learner, decision)
        if learner.remaining[0] < 1.0:
            break
    assert learner.remaining[0] >= 0.0
