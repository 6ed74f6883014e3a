"""Make the figures of how-adaptive-decides.md; run it as ``python docs/how_adaptive_decides.py [DIRECTORY]``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import driftsack as ds
from driftsack.core.arrays import Floats, Ints
from driftsack.plot import Pacing, belief_figure, pacing_figure, revisits_figure
from driftsack.policies.parts.run_length import PRIOR_ROUNDS

DIRECTORY = Path(__file__).parent / "figures"
ONE_ARM = (0.25, 0.8, 0.35, 0.85)  # mean rewards of the first environment, each for a quarter of the rounds
BELIEF_SEED, REVISITS_SEED, PACING_SEED = 3, 2, 12
TRIALS, DPI = 40, 130
MOST = 0.8
RICH, POOR = 0.8, 0.4  # mean rewards of the third environment


class Trace(NamedTuple):
    """One trial of Adaptive; row t is what holds after round t + 1."""

    arms: Ints  # (T,) the decisions
    spent: Floats  # (T, d) what was charged in each round
    remaining: Floats  # (T, d) remaining budgets
    ages: Floats  # (T, m, K) pulls of each run of the belief
    weights: Floats  # (T, m, K) their weights; 0 for a run that is not in use
    estimates: Floats  # (T, m, 1 + d) rewards and costs
    hazard: Floats  # (T,) estimated probability that an arm changes in a round
    long_run: Floats  # (T, d) long-run price: reward per unit of the resource
    pace: Floats  # (T, d) even pace: remaining budget over remaining rounds


def record(world: ds.Instance, policy: ds.Adaptive, seed: int = 0) -> Trace:
    """Play one trial by ask and tell and record the state of the policy after each round.

    Args:
        world: An instance with the units reward_max = cost_max = 1 and Bernoulli outcomes.
        policy: The policy.
        seed: Seed of the outcomes and of the learner.

    Returns:
        The trace, in the problem's units.
    """
    learner, nature = policy.start(world.problem, seed=seed, safe=True), np.random.default_rng(seed)
    rows = []
    for t in range(world.horizon):
        row = world.phase[t]
        before = learner.remaining
        decision = learner.ask()
        if not decision.skipped:
            means = np.array([world.rewards[row, decision.arm], *world.costs[row, :, decision.arm]])
            reward, *costs = (nature.random(means.size) < means).astype(float)
            learner.tell(decision, reward, costs)
        rows.append((decision.arm, before - learner.remaining, learner.remaining, *inside(learner)))
    return Trace(*(np.array(column) for column in zip(*rows, strict=True)))


def inside(learner: ds.Learner) -> tuple[Any, ...]:
    """Read the fields of Trace from ``ages`` on from a learner; nothing else depends on the names in its state."""
    belief, pacer = learner.state.belief, learner.state.pacer
    live = np.arange(belief.weights.shape[1]) < belief.live[:, None]
    weights, ages = np.where(live, belief.weights, 0.0), np.where(live, belief.counts, 0.0)
    units = np.array([1.0, *pacer.unit])  # costs are kept in units of the budget rate
    estimates = belief.mean * units
    hazard = (1.0 + belief.changes[0]) / (PRIOR_ROUNDS + len(ages) * (learner.round + 1.0))
    pace = pacer.pace * pacer.unit
    return ages, weights, estimates, hazard, pacer.price / pacer.unit, pace


def changing_arm(horizon: int = 2_000) -> ds.Instance:
    """One arm that changes three times, and more budget than can be spent."""
    rewards, lengths = [[mean] for mean in ONE_ARM], [horizon // len(ONE_ARM)] * len(ONE_ARM)
    return ds.Instance.piecewise(rewards, [[[0.5]]] * len(ONE_ARM), lengths, 2.0 * horizon)


def unseen_improvement(horizon: int = 6_000) -> ds.Instance:
    """Three arms with the same cost; the last one improves from 0.3 to 0.8 halfway, when it is hardly ever pulled."""
    rewards = [[0.5, 0.4, 0.3], [0.5, 0.4, 0.8]]
    return ds.Instance.piecewise(rewards, [[[0.5] * 3]] * 2, [horizon // 2] * 2, 2.0 * horizon)


def rich_and_poor_times(horizon: int = 8_000) -> ds.Instance:
    """Two arms, one cheap and one expensive; rewards are high and low in turn, and a round may spend 0.25."""
    level = np.array([POOR, RICH] * 4)
    rewards = level[:, None] * [0.6, 1.0]
    return ds.Instance.piecewise(rewards, [[[0.4, 0.8]]] * 8, [horizon // 8] * 8, 0.25 * horizon)


def present_price(trace: Trace, every: int = 10) -> Floats:
    """Return the price of the first resource in the step LP on the estimates at the even pace, (T,), in steps."""
    solved = [
        ds.lp.step_lp(one[:, 0], one[:, 1:].T, pace)
        for one, pace in zip(trace.estimates[::every], trace.pace[::every], strict=True)
    ]
    return np.repeat([one.prices[0] for one in solved], every)[: len(trace.pace)]


def recognition(trace: Trace, change: int) -> int | None:
    """Return the pulls until the mean age of the first arm is a tenth of that before a round; None if over 200."""
    ages = (trace.weights[:, 0] * trace.ages[:, 0]).sum(axis=1)
    young = np.flatnonzero(ages[change : change + 200] < 0.1 * ages[change - 1])
    return int(young[0]) + 1 if young.size else None


def visit_gaps(trace: Trace, arm: int, first: int, last: int) -> Floats:
    """Return the gaps between the visits to an arm from round ``first`` to ``last``, in units of sqrt(1/h)."""
    pulled = np.flatnonzero(trace.arms[:last] == arm)
    gaps = np.diff(pulled)
    visits = (gaps > 1) & (pulled[1:] >= first)
    relative: Floats = gaps[visits] * np.sqrt(trace.hazard[pulled[1:][visits]])
    return relative


def found_after(arms: Ints, arm: int, change: int) -> int | None:
    """Return the rounds after a change until an arm has over 80% of the pulls of 50 rounds; None for never."""
    share = np.convolve(arms[change:] == arm, np.full(50, 0.02), mode="valid")
    return int(np.argmax(share > MOST)) if (share > MOST).any() else None


def relative_spending(trace: Trace, world: ds.Instance) -> Floats:
    """Return the spending in each phase of an environment, relative to the even pace, (K,)."""
    times = [world.phase == k for k in range(len(world.rewards))]
    return np.array([trace.spent[one].sum() / trace.pace[one].sum() for one in times])


def share_of_optimum(world: ds.Instance, policy: ds.Policy) -> float:
    """Return the mean share of LP-Dynamic that a policy earns."""
    return float(
        ds.simulate(world, policy, trials=TRIALS, seed=0).reward.mean() / ds.benchmarks.lp_dynamic(world).value
    )


def main(directory: Path) -> None:
    """Record a trial in each environment, draw it, and print what the page quotes."""
    world = changing_arm()
    trace = record(world, ds.Adaptive(), seed=BELIEF_SEED)
    truth = world.rewards[world.phase, 0]
    belief = belief_figure(truth, trace.estimates[:, 0, 0], trace.ages[:, 0], trace.weights[:, 0])
    belief.savefig(directory / "adaptive_belief.png", dpi=DPI)
    pulls = ", ".join(str(recognition(trace, change)) for change in (500, 1_000, 1_500))
    print(f"belief: changes recognised after {pulls} pulls")

    world = unseen_improvement()
    trace = record(world, ds.Adaptive(), seed=REVISITS_SEED)
    best = world.rewards.argmax(axis=1)[world.phase]
    revisits = revisits_figure(trace.arms, best, np.sqrt(1.0 / trace.hazard), ("arm A", "arm B", "arm C"))
    revisits.savefig(directory / "adaptive_revisits.png", dpi=DPI)
    gaps = np.median(np.concatenate([visit_gaps(trace, arm, 100, 3_000) for arm in (1, 2)]))
    print(f"revisits: median gap {gaps:.1f} times the square root of 1/h")
    print(f"revisits: improved arm found after {found_after(trace.arms, 2, 3_000):,} rounds")
    run = ds.simulate(world, ds.Adaptive(), trials=TRIALS, seed=0)
    late = (run.pulls - run.pulls_first_half)[:, 2] / 3_000
    print(f"revisits: its share of the second half in {TRIALS} trials: {late.min():.0%} to {late.max():.0%}")

    world = rich_and_poor_times()
    trace = record(world, ds.Adaptive(), seed=PACING_SEED)
    left = trace.remaining[:, 0] / world.problem.budget[0]
    pacing = Pacing(trace.spent[:, 0], trace.pace[:, 0], trace.long_run[:, 0], present_price(trace), left)
    pacing_figure(pacing, world.phase % 2 == 1).savefig(directory / "adaptive_pacing.png", dpi=DPI)
    relative = relative_spending(trace, world)
    for name, first in (("poor", 0), ("rich", 1)):
        print(
            f"pacing: spent in {name} times, relative to the even pace: "
            + ", ".join(f"{x:.1f}" for x in relative[first::2])
        )
    for policy in (ds.Adaptive(), ds.Adaptive(pacing="remaining")):
        print(f"pacing: {policy.pacing} earns {share_of_optimum(world, policy):.0%} of the optimum")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DIRECTORY)
