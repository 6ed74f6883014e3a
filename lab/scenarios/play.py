"""Play a rule on a scenario: deliver outcomes when they arrive, charge budgets exactly, never exceed one.

A served request is charged in full when it is served, although the rule hears of the costs only when the outcome
arrives, unless the trade knows the bill at once. A choice whose true cost would exceed a budget is refused: nothing is
charged or earned, and it is counted.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

import driftsack as ds
from driftsack.core.checks import Safe
from driftsack.core.decision import Decision
from lab.scenarios.scenario import NEVER, SKIP, UNITS, Brief, Floats, Ints, Request, Rule, Scenario

LOST: Final = 1
ARRIVED: Final = 0


class ScenarioPlay(NamedTuple):
    """What a rule did and earned."""

    choices: Ints  # (n,) served arms, SKIP if none
    refused: Ints  # (n,) refused arms, SKIP if none
    reward: float  # earned, minus the penalties for unserved musts
    unspent: Floats  # (d,) share of each budget
    skipped: int
    musts_unserved: int


def units(amounts: Floats) -> Ints:
    """Amounts as integers on the account's grid."""
    return np.asarray(np.rint(amounts * UNITS), dtype=np.int64)


def play(scenario: Scenario, rule: Rule) -> ScenarioPlay:
    """Play all requests of a scenario."""
    n = len(scenario)
    budget = units(scenario.brief.budget)
    left = budget.copy()
    choices, refused = np.full(n, SKIP), np.full(n, SKIP)
    events: list[tuple[int, int, int, Request]] = []  # due after a request, lost or arrived, index, request
    reward, musts = 0.0, 0
    first_request = {first: arm for arm, first in scenario.added.items()}
    for request in scenario.requests():
        t = request.index
        # What the rule learns before it chooses.
        deliver(scenario, rule, choices, events, t)
        if t in first_request:
            arm = first_request[t]
            rule.add(arm, scenario.arms[arm], scenario.cost_max[arm].copy())
        arm = rule.choose(request)
        if arm != SKIP and arm not in request.open:
            raise ValueError(f"request {t} may use arms {request.open}, got {arm}.")
        # Pay at once; a request that the budget does not cover is refused.
        if arm != SKIP:
            outcome = scenario.outcome(t, arm)
            costs = units(outcome.costs)
            if np.any(costs > left):
                refused[t] = arm
                rule.refused(request, arm)
            else:
                left -= costs
                reward += outcome.reward
                choices[t] = arm
                schedule(scenario, events, request, outcome.delay)
                if scenario.bills_at_once:
                    rule.billed(request, arm, outcome.costs)
        if choices[t] == SKIP and request.must:
            musts += 1
    skipped = int(np.sum((choices == SKIP) & (refused == SKIP)))
    return ScenarioPlay(choices, refused, reward - scenario.penalty * musts, left / budget, skipped, musts)


def schedule(scenario: Scenario, events: list[tuple[int, int, int, Request]], request: Request, delay: int) -> None:
    """Note when an outcome arrives and, if that is after the scenario's patience, when it counts as lost."""
    t = request.index
    if delay != NEVER:
        heapq.heappush(events, (t + delay, ARRIVED, t, request))
    if delay == NEVER or (scenario.patience and delay > scenario.patience):
        heapq.heappush(events, (t + scenario.patience, LOST, t, request))


def deliver(
    scenario: Scenario, rule: Rule, choices: Ints, events: list[tuple[int, int, int, Request]], now: int
) -> None:
    """Tell a rule everything that is due before a request, in order of arrival."""
    while events and events[0][0] < now:
        _, kind, t, request = heapq.heappop(events)
        arm = int(choices[t])
        if kind == LOST:
            rule.lost(request, arm)
        else:
            outcome = scenario.outcome(t, arm)
            rule.learn(request, arm, outcome.reward, outcome.costs)


class DriftsackRule(Rule):
    """A policy of driftsack through its public interface, as the documentation recommends.

    Reservations are statistical where bills themselves are late, and hard where they are known at once.
    """

    def __init__(
        self, scenario: Scenario, policy: ds.Policy | None = None, seed: int = 0, safe: Safe | None = None
    ) -> None:
        super().__init__(scenario.brief)
        if safe is None:
            safe = "statistical" if scenario.late_bills else True
        chosen = policy or (ds.Adaptive() if scenario.encoder is None else ds.LinearBwK())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a small budget next to cost_max is part of the scenario
            self.learner = chosen.start(scenario.problem, seed=seed, safe=safe)
        self._timed = scenario.expected is not None
        self._bills_at_once = scenario.bills_at_once
        self._lists = chosen.known_costs
        self._horizon = np.inf if self._timed else scenario.problem.horizon
        self._names = list(self.brief.names)
        self._decisions: dict[int, Decision] = {}

    def choose(self, request: Request) -> int:
        """Ask, with what is known of the request."""
        if self.learner.done and not (request.must and self.learner.round < self._horizon):
            return SKIP
        decision = self.learner.ask(
            open=[self._names[arm] for arm in request.open],
            caps=None if request.caps is None else self._by_arm(request.caps),
            at=request.time * 3600.0 if self._timed else None,
            context=request.context,
            must=request.must,
            costs=None if request.prices is None or not self._lists else self._by_arm(request.prices),
        )
        if decision.skipped:
            return SKIP
        self._decisions[request.index] = decision
        return int(decision.arm)

    def _by_arm(self, amounts: Floats) -> dict[str, dict[str, float]]:
        """Amounts (m, d) by resource and arm."""
        return {
            resource: {name: float(amounts[arm, i]) for arm, name in enumerate(self._names)}
            for i, resource in enumerate(self.brief.resources)
        }

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        """Tell; a bill above its reservation gives a warning, which is expected here."""
        self._tell(self._decisions.pop(request.index), reward, None if self._bills_at_once else costs)

    def billed(self, request: Request, arm: int, costs: Floats) -> None:
        """Tell the costs before the reward."""
        self._tell(self._decisions[request.index], None, costs)

    def _tell(self, decision: Decision, reward: float | None, costs: Floats | None) -> None:
        """Tell the parts of an outcome that are known."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.learner.tell(decision, reward, costs)

    def lost(self, request: Request, arm: int) -> None:
        """Forfeit, which charges what was reserved unless the costs were told; the outcome may still arrive."""
        self.learner.forfeit(self._decisions[request.index])

    def refused(self, request: Request, arm: int) -> None:
        """Cancel: nothing was bought."""
        self.learner.cancel(self._decisions.pop(request.index))

    def add(self, arm: int, name: str, cost_max: Floats) -> None:
        """Add an arm."""
        self.learner.add_arm(name, dict(zip(self.brief.resources, cost_max.tolist(), strict=True)))
        self._names.append(name)


def audit(scenario: Scenario, played: ScenarioPlay) -> list[str]:
    """Faults of an account, found by charging every choice again in order: [] if there are none."""
    faults = []
    left = units(scenario.brief.budget)
    for t, (arm, refusal) in enumerate(zip(played.choices.tolist(), played.refused.tolist(), strict=True)):
        if refusal != SKIP and np.all(units(scenario.costs[t, refusal]) <= left):
            faults.append(f"request {t}: refused although it fits")
        if arm == SKIP:
            continue
        if not scenario.is_open(t)[arm]:
            faults.append(f"request {t}: arm {arm} is closed")
        left -= units(scenario.costs[t, arm])
        if np.any(left < 0):
            faults.append(f"request {t}: a budget is exceeded")
    if np.any(left / units(scenario.brief.budget) != played.unspent):
        faults.append("what is left differs from the sum of the costs")
    return faults


def spliced(scenario: Scenario, other: Scenario, at: int) -> Scenario:
    """A scenario with another future: from request ``at`` on, everything but the times is that of the other one."""
    joined: dict[str, Any] = {}
    for name in ("rewards", "costs", "mean_rewards", "mean_costs", "delays", "open", "must", "prices", "caps"):
        before, after = getattr(scenario, name), getattr(other, name)
        joined[name] = None if before is None else np.concatenate([before[:at], after[at:]])
    if scenario.contexts is not None and other.contexts is not None:
        joined["contexts"] = [*scenario.contexts[:at], *other.contexts[at:]]
    return replace(scenario, **joined)


def first_peek(scenario: Scenario, other: Scenario, at: int, make: Callable[[Scenario], Rule]) -> int | None:
    """The first request before ``at`` at which another future changes a rule's choice; None for an honest rule."""
    one, two = play(scenario, make(scenario)), play(spliced(scenario, other, at), make(spliced(scenario, other, at)))
    differ = np.flatnonzero((one.choices != two.choices)[:at] | (one.refused != two.refused)[:at])
    return int(differ[0]) if differ.size else None


def hand_written(make: Callable[[Brief], Rule]) -> Callable[[Scenario], Rule]:
    """A rule that is made from the brief alone."""
    return lambda scenario: make(scenario.brief)
