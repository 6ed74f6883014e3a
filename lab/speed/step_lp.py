"""Speed of the step LP on recorded rounds of SW-UCB, compared with warm-started HiGHS and with ``linprog``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import highspy
import numpy as np
from scipy.optimize import linprog

from driftsack.core.arrays import Floats, Ints
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator
from driftsack.game.state_tree import programs
from driftsack.lp.fallback import load_program
from driftsack.lp.step import new_step_lp, step_lp
from driftsack.numerics.highs import USUAL, new_highs
from driftsack.numerics.simplex import PIVOTS, RESTARTS, Simplex
from driftsack.policies import SlidingWindowUCB
from lab.speed.timing import Progress, median_ratio, seconds
from tests.support.step_lp_replay import replay

SIZES: Final = ((2, 2), (10, 3), (100, 10), (1000, 10))
SCALES: Final = (1.0, 0.1)  # budgets rarely bind with the radius of the paper, but do with a tenth of it


class Recording(NamedTuple):
    """The step LPs of consecutive rounds of one SW-UCB learner: which columns changed, and to what.

    Attributes:
        rate: (d,) budget per round.
        starts: (rounds + 1,) the changes of round r are those from ``starts[r]`` to ``starts[r + 1]``.
        arms: (changes,) the column that changed.
        rewards: (changes,) its new objective coefficient.
        costs: (changes, d) its new constraint coefficients.
        width: Number of columns m.
    """

    rate: Floats
    starts: Ints
    arms: Ints
    rewards: Floats
    costs: Floats
    width: int


def record(arms: int, resources: int, scale: float, rounds: int) -> Recording:
    """Run SW-UCB on a random stationary instance (rate 0.3, Bernoulli) and record how its LP changes."""
    rng = generator(arms)
    horizon = 10 * rounds
    means = rng.random((resources + 1, arms))
    world = Instance.stationary(means[0], means[1:], horizon, budget=0.3 * horizon)
    policy = SlidingWindowUCB(windows=(max(rounds // 2, 2 * arms), max(rounds // 3, arms)), scale=scale)
    learner = policy.start(world.problem, seed=0)
    lp = next(programs(learner.state))
    data = np.vstack([lp.objective[:arms], lp.columns[:-1, :arms]])
    # Record which arms change from round to round, and their new columns.
    starts, changed, values = [0], [], []
    for _ in range(rounds):
        decision = learner.ask()
        new_data = np.vstack([lp.objective[:arms], lp.columns[:-1, :arms]])
        changed_arms = np.flatnonzero((new_data != data).any(axis=0))
        changed.append(changed_arms)
        values.append(new_data[:, changed_arms].T)
        starts.append(starts[-1] + changed_arms.size)
        data = new_data
        if not decision.skipped:
            outcome = (rng.random(resources + 1) < means[:, decision.arm]).astype(float)
            learner.tell(decision, reward=outcome[0], costs=outcome[1:])
    columns = np.concatenate(values)
    return Recording(
        world.problem.rate,
        np.array(starts),
        np.concatenate(changed),
        columns[:, 0].copy(),
        columns[:, 1:].copy(),
        arms,
    )


def by_simplex(tape: Recording, rounds: int, cold: bool) -> tuple[Floats, Simplex]:
    """Values of the first rounds by our simplex, and its state afterwards."""
    lp = new_step_lp(tape.width, tape.rate)
    values = np.zeros(rounds)
    failed = replay(lp, tape.starts, tape.arms, tape.rewards, tape.costs, cold, values)
    if failed:
        raise RuntimeError(f"{failed} of {rounds} recorded step LPs failed")
    return values, lp


def by_highspy(tape: Recording, rounds: int) -> Floats:
    """Values by one HiGHS model that keeps its basis; only the changed columns are edited."""
    solver = new_highs(USUAL)
    resources = tape.rate.size
    columns = np.ones((resources + 1, tape.width))
    objective = np.zeros(tape.width)
    first = slice(0, tape.starts[1])
    objective[tape.arms[first]] = tape.rewards[first]
    columns[:-1, tape.arms[first]] = tape.costs[first].T
    load_program(solver, objective, columns, np.append(tape.rate, 1.0))
    values = np.zeros(rounds)
    for r in range(rounds):
        for change in range(tape.starts[r], tape.starts[r + 1]) if r else ():
            arm = int(tape.arms[change])
            solver.changeColCost(arm, tape.rewards[change])
            for j in range(resources):
                solver.changeCoeff(j, arm, tape.costs[change, j])
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS did not solve recorded step LP {r}")
        values[r] = solver.getInfo().objective_function_value
    return values


def by_step_lp(tape: Recording, rounds: int) -> Floats:
    """Values by the public ``lp.step_lp``, from scratch each round."""
    return np.array([step_lp(rewards, costs, tape.rate).value for rewards, costs in full_programs(tape, rounds)])


def full_programs(tape: Recording, rounds: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield all rewards (m,) and costs (d, m) of each round."""
    rewards, costs = np.zeros(tape.width), np.zeros((tape.rate.size, tape.width))
    for r in range(rounds):
        part = slice(tape.starts[r], tape.starts[r + 1])
        rewards[tape.arms[part]] = tape.rewards[part]
        costs[:, tape.arms[part]] = tape.costs[part].T
        yield rewards, costs


def by_linprog(tape: Recording, rounds: int) -> Floats:
    """Values by ``scipy.optimize.linprog`` from scratch each round."""
    limits, ones = np.append(tape.rate, 1.0), np.ones(tape.width)
    return np.array(
        [
            -linprog(-rewards, A_ub=np.vstack([costs, ones]), b_ub=limits, method="highs").fun
            for rewards, costs in full_programs(tape, rounds)
        ]
    )


def step_lp_rows(quick: bool, progress: Progress) -> list[dict[str, float | str]]:
    """Compare our step LP, warm and cold, with warm HiGHS and ``linprog`` on the same recorded rounds."""
    rounds, repeats = (100, 3) if quick else (800, 5)
    rows: list[dict[str, float | str]] = []
    for arms, resources in SIZES:
        for scale in SCALES:
            progress(f"step LP at ({arms}, {resources}), scale {scale:g}")
            tape = record(arms, resources, scale, rounds)
            # Compare the results.
            values, lp = by_simplex(tape, rounds, cold=False)
            others = by_highspy(tape, rounds), by_linprog(tape, rounds)
            largest_difference = max(np.abs(values - other).max() for other in others)
            by_simplex(tape, rounds, cold=True)
            # Take turns, so that all solvers see the same load of the machine.
            warm, cold, public, highs, scipy = [], [], [], [], []
            for _ in range(repeats):
                warm.append(seconds(by_simplex, tape, rounds, False) / rounds)
                highs.append(seconds(by_highspy, tape, rounds) / rounds)
                cold.append(seconds(by_simplex, tape, rounds, True) / rounds)
                scipy.append(seconds(by_linprog, tape, rounds) / rounds)
                public.append(seconds(by_step_lp, tape, rounds) / rounds)
            rows.append(
                {
                    "m, d": f"{arms}, {resources}",
                    "scale": scale,
                    "highspy warm / ours warm": median_ratio(highs, warm),
                    "linprog / ours warm": median_ratio(scipy, warm),
                    "linprog / ours cold": median_ratio(scipy, cold),
                    "linprog / step_lp from Python": median_ratio(scipy, public),
                    "ours warm µs": 1e6 * min(warm),
                    "ours cold µs": 1e6 * min(cold),
                    "highspy warm µs": 1e6 * min(highs),
                    "linprog µs": 1e6 * min(scipy),
                    "pivots per round": int(lp.counts[PIVOTS]) / rounds,
                    "restarts per round": int(lp.counts[RESTARTS]) / rounds,
                    "largest difference": float(largest_difference),
                }
            )
    return rows
