r"""The auditor: a policy that runs SW-UCB in the compiled loop and compares its bounds with the true means.

Before round t it computes, for all arms and resources, the factor on the radii that the bounds would need to cover the
means (Lemma 2 says that 1 is enough),

.. math:: \mathrm{UCB}_{t,i} + \sum_{s=1 \vee (t-w_1)}^{t-1} \|\mu_s - \mu_{s+1}\|_\infty \ge \mu_{t,i}, \qquad
          \mathrm{LCB}_{t,j,i} - \sum_{s=1 \vee (t-w_2)}^{t-1} \|C_{s,j} - C_{s+1,j}\|_\infty \le C_{t,j,i},

and after it keeps the largest :math:`|\sum_{s \le t} (r_s - \mathrm{UCB}_s^\top x_s)|` and, for each resource,
:math:`|\sum_{s \le t} (c_{s,j} - \mathrm{LCB}_{s,j}^\top x_s)|` so far (Lemma 3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import frozen
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import open_ledger
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round, new_terms
from driftsack.game.state_tree import copy_state
from driftsack.game.trial import Randomness, new_tally, run_trial
from driftsack.game.world import world_of
from driftsack.numerics.compiled import kernel
from driftsack.policies import sliding_window_ucb as ucb


class State(NamedTuple):
    """The state of SW-UCB, the true means and the auditor's sums."""

    base: ucb.State
    rewards: Floats  # (K, m)
    costs: Floats  # (K, d, m)
    phase: Phase  # (T,)
    drift: Floats  # (T, 1 + d) total change of rewards and of each resource's costs within the window before round t
    needed: Floats  # (1,) the largest factor on a radius that a bound needed to cover so far
    sums: Floats  # (1 + d,) of r - UCB x, and of c - LCB x
    farthest: Floats  # (1 + d,) their largest absolute values so far
    forgotten: float  # 1 for the trivial competitor, whose estimates are all 0; otherwise 0
    estimates: Floats  # (m, 1 + d) before the round


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Choose as SW-UCB does, and compare its bounds with the means."""
    t = round.t
    for i in range(mix.size):
        state.estimates[i, 0] = ucb.estimated_reward(state.base, i)
        for j in range(prices.size):
            state.estimates[i, 1 + j] = ucb.estimated_cost(state.base, j, i)
    arm = ucb.choose(state.base, round, rng, mix, prices)
    if arm == STUCK:
        return STUCK
    row = state.phase[t]
    for i in range(mix.size):
        estimate = state.estimates[i, 0]
        radius = ucb.planned_reward(state.base, i) - estimate
        estimate *= 1.0 - state.forgotten
        need_factor(state, state.rewards[row, i] - state.drift[t, 0] - estimate, radius)
        bound = estimate + radius
        state.sums[0] -= bound * mix[i]
        for j in range(prices.size):
            estimate = state.estimates[i, 1 + j]
            radius = estimate - ucb.planned_cost(state.base, j, i)
            estimate *= 1.0 - state.forgotten
            need_factor(state, estimate - state.drift[t, 1 + j] - state.costs[row, j, i], radius)
            bound = estimate - radius
            state.sums[1 + j] -= bound * mix[i]
    return arm


@kernel
def need_factor(state: State, distance: float, radius: float) -> None:
    """Record the factor on a radius that a distance needs."""
    if distance > 0.0:
        state.needed[0] = max(state.needed[0], distance / radius if radius > 0.0 else np.inf)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Learn as SW-UCB does, and update the sums."""
    ucb.learn(state.base, outcome)
    state.sums[0] += outcome.reward
    for j in range(outcome.costs.size):
        state.sums[1 + j] += outcome.costs[j]
    for k in range(state.sums.size):
        state.farthest[k] = max(state.farthest[k], abs(state.sums[k]))


class TrialAudit(NamedTuple):
    """The result of one trial."""

    needed: float  # the least factor on the radii with which all bounds of all rounds would have covered
    farthest: Floats  # (1 + d,)
    stopping_time: int


def audit(
    instance: Instance, policy: ucb.SlidingWindowUCB, trials: int, seed: int, returns_zero: bool = False
) -> list[TrialAudit]:
    """Simulate the policy and audit every trial; ``returns_zero`` audits the competitor whose estimates are all 0."""
    fresh = State(
        policy.new_state(instance.problem),
        frozen(instance.unit_rewards),
        frozen(instance.unit_costs),
        instance.phase,
        frozen(window_drift(instance, policy.window_lengths(instance.problem))),
        np.zeros(1),
        np.zeros(1 + instance.resources),
        np.zeros(1 + instance.resources),
        float(returns_zero),
        np.zeros((instance.arms, 1 + instance.resources)),
    )
    problem, world, terms = instance.problem, world_of(instance), new_terms(instance.problem)
    audits = []
    for trial in range(trials):
        nature, learner = (generator(part) for part in trial_seeds(seed, trial))
        state = copy_state(fresh)
        tally = new_tally(problem, np.array([problem.horizon]), np.zeros(1))
        run_trial(state, open_ledger(problem), terms, world, tally, Randomness(nature, learner))
        audits.append(TrialAudit(float(state.needed[0]), state.farthest, int(tally.stopping_time[0])))
    return audits


def window_drift(instance: Instance, windows: tuple[int, int]) -> Floats:
    """(T, 1 + d) sums of one-round changes over the window that ends before each round."""
    rewards, costs = instance.unit_rewards[instance.phase], instance.unit_costs[instance.phase]
    steps = np.zeros((instance.horizon, 1 + instance.resources))  # from round t - 1 to round t, at t
    steps[1:, 0] = np.abs(np.diff(rewards, axis=0)).max(axis=1)
    steps[1:, 1:] = np.abs(np.diff(costs, axis=0)).max(axis=2)
    total = np.cumsum(steps, axis=0)
    drift = total.copy()
    for k in range(drift.shape[1]):
        window = windows[0] if k == 0 else windows[1]
        if window < instance.horizon:
            drift[window:, k] -= total[:-window, k]
    return drift
