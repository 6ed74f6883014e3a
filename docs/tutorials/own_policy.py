"""Write a policy: greedy by reward per share of the budget, with a little exploration."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

import driftsack as ds
from driftsack.authoring import Floats, Generator, Outcome, Round, draw, kernel
from driftsack.plot.style import LINES, THOUSANDS, new_figure


class State(NamedTuple):
    """The state of the learner; ``save`` stores its arrays."""

    pulls: Floats  # (m,) discounted number of outcomes of each arm
    rewards: Floats  # (m,) discounted sum of rewards
    costs: Floats  # (d, m) discounted sums of costs
    keep: float  # discount applied to old outcomes with each new one
    explore: float  # probability of choosing an arm uniformly at random


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Skip if spending is ahead of the pace; otherwise play the best arm, or explore."""
    mix[:] = 0.0
    for j in range(round.rate.size):
        if round.ledger.spent[j] > round.rate[j] * (round.t + 1):
            return ds.SKIP
    mix[:] = state.explore / mix.size
    mix[best(state, round.rate)] += 1.0 - state.explore
    return draw(mix, rng.random())


@kernel
def best(state: State, rate: Floats) -> int:
    """Return the arm with the highest reward per share of its scarcest budget; untried arms come first."""
    winner, record = 0, -1.0
    for arm in range(state.pulls.size):
        if state.pulls[arm] == 0.0:
            return arm
        share = 1e-3 * state.pulls[arm]  # a lower bound, which avoids division by zero
        for j in range(rate.size):
            share = max(share, state.costs[j, arm] / rate[j])
        if state.rewards[arm] / share > record:
            winner, record = arm, state.rewards[arm] / share
    return winner


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Discount the past outcomes of the arm and add the new one."""
    arm = outcome.arm
    if arm == ds.SKIP:
        return
    state.pulls[arm] = state.keep * state.pulls[arm] + 1.0
    state.rewards[arm] = state.keep * state.rewards[arm] + outcome.reward
    for j in range(outcome.costs.size):
        state.costs[j, arm] = state.keep * state.costs[j, arm] + outcome.costs[j]


@dataclass(frozen=True)
class Greedy(ds.Policy):
    """Greedy policy with discounted estimates.

    Attributes:
        keep: Discount applied to old outcomes with each new one.
        explore: Probability of choosing an arm uniformly at random.
    """

    keep: float = 0.99
    explore: float = 0.05

    def new_state(self, problem: ds.Problem) -> State:
        """Return a state without observations."""
        arms = np.zeros(problem.arms)
        return State(arms.copy(), arms.copy(), np.zeros((problem.resources, problem.arms)), self.keep, self.explore)


def main(directory: Path) -> None:
    """Compare the policy with two policies of the library on Example 1, then use it with ask and tell."""
    world = ds.instances.example_1(horizon=4_000)
    optimum = ds.benchmarks.lp_dynamic(world)
    window = ds.SlidingWindowUCB(windows=(800, 800), scale=0.1)
    policies = {"greedy": Greedy(), "sliding-window UCB": window, "naive UCB": ds.NaiveUCB(scale=0.1)}
    figure = new_figure(7, 3.4)
    axes = figure.subplots()
    for (name, policy), (colour, dash, _) in zip(policies.items(), LINES, strict=False):
        run = ds.simulate(world, policy, trials=100, seed=0)
        print(f"{name} earns {run.reward.mean():,.0f} of at most {optimum.value:,.0f}")
        axes.plot(run.times, run.curve.mean(axis=0), dash, color=colour, label=name)
    axes.set(xlabel="round", ylabel="cumulative reward", xlim=(0, world.horizon), ylim=(0, None))
    axes.xaxis.set_major_formatter(THOUSANDS)
    axes.yaxis.set_major_formatter(THOUSANDS)
    axes.legend(loc="upper left")
    figure.savefig(directory / "own_policy.png", dpi=130)

    learner = Greedy().start(world.problem, seed=0, safe=True)
    decision = learner.ask()
    learner.tell(decision, reward=1.0, costs=[0.5])
    print(f"ask and tell: arm {decision.arm}, {learner.remaining[0]:,.1f} of the budget left")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
