"""A policy of your own: greedy by reward per share of budget, with a little exploration."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.game.ledger import Ledger
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.plot.style import LINES, THOUSANDS, new_figure


class State(NamedTuple):
    """All that changes as the learner plays; arrays only, which ``save`` keeps."""

    pulls: Floats  # (m,) how often each arm was told, fading
    rewards: Floats  # (m,) their sum, fading
    costs: Floats  # (d, m)
    keep: float  # what is left of an old outcome after one more
    explore: float


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:  # noqa: ARG001
    """Skip when spending is ahead of the pace; else the best reward per share of budget, or any arm."""
    mix[:] = 0.0
    for j in range(ledger.budget.size):
        if ledger.spent[j] > ledger.rate[j] * (t + 1):
            return ds.SKIP
    mix[:] = state.explore / mix.size
    mix[best(state, ledger)] += 1.0 - state.explore
    return draw(mix, rng.random())


@kernel
def best(state: State, ledger: Ledger) -> int:
    """The arm with the most reward for the share of its scarcest budget; an arm never told comes first."""
    winner, record = 0, -1.0
    for arm in range(state.pulls.size):
        if state.pulls[arm] == 0.0:
            return arm
        share = 1e-3 * state.pulls[arm]  # nothing is free of cost altogether
        for j in range(ledger.rate.size):
            share = max(share, state.costs[j, arm] / ledger.rate[j])
        if state.rewards[arm] / share > record:
            winner, record = arm, state.rewards[arm] / share
    return winner


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:  # noqa: ARG001
    """Let the arm's past fade and add the outcome."""
    if arm == ds.SKIP:
        return
    state.pulls[arm] = state.keep * state.pulls[arm] + 1.0
    state.rewards[arm] = state.keep * state.rewards[arm] + reward
    for j in range(costs.size):
        state.costs[j, arm] = state.keep * state.costs[j, arm] + costs[j]


@dataclass(frozen=True)
class Greedy(ds.Policy):
    """Recipe: how much of an outcome is kept after one more, and the share of exploration."""

    keep: float = 0.99
    explore: float = 0.05

    def new_state(self, problem: ds.Problem) -> State:
        """Nothing known."""
        arms = np.zeros(problem.arms)
        return State(arms.copy(), arms.copy(), np.zeros((problem.resources, problem.arms)), self.keep, self.explore)


def main(folder: Path) -> None:
    """Play it against two policies of the library on Example 1, and by ask and tell."""
    world = ds.instances.example_1(horizon=4_000)
    optimum = ds.benchmarks.lp_dynamic(world)
    window = ds.SlidingWindowUCB(windows=(800, 800), scale=0.1)
    recipes = {"greedy": Greedy(), "sliding-window UCB": window, "naive UCB": ds.NaiveUCB(scale=0.1)}
    figure = new_figure(7, 3.4)
    axes = figure.subplots()
    for (name, policy), (colour, dash, _) in zip(recipes.items(), LINES, strict=False):
        run = ds.simulate(world, policy, trials=100, seed=0)
        print(f"{name} earns {run.reward.mean():,.0f} of at most {optimum.value:,.0f}")
        axes.plot(run.times, run.curve.mean(axis=0), dash, color=colour, label=name)
    axes.set(xlabel="round", ylabel="reward so far", xlim=(0, world.horizon), ylim=(0, None))
    axes.xaxis.set_major_formatter(THOUSANDS)
    axes.yaxis.set_major_formatter(THOUSANDS)
    axes.legend(loc="upper left")
    figure.savefig(folder / "own_policy.png", dpi=130)

    learner = Greedy().start(world.problem, seed=0, safe=True)
    decision = learner.ask()
    learner.tell(decision, reward=1.0, costs=[0.5])
    print(f"by ask and tell: arm {decision.arm}, then {learner.remaining[0]:,.1f} left")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
