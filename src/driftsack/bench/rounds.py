"""Speed, side by side: every figure is a ratio of two things measured in turns, in one process, on one thread.

Machines are noisy, so each pair is measured in alternation several times and the median of the ratios is
reported. Nothing here is a timed test; ``docs/benchmarks.md`` keeps what one machine gave.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import highspy
import numpy as np
from scipy.optimize import linprog

from driftsack.bench.plain_python import PlainSlidingWindowUCB
from driftsack.core.arrays import Floats, Ints
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator
from driftsack.game.state import programs
from driftsack.instances import example_2
from driftsack.lp.fallback import load_program
from driftsack.lp.step import new_step_lp, step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.highs import USUAL, new_highs
from driftsack.numerics.simplex import PIVOTS, RESTARTS, Simplex, column_changed, solve, to_slack_basis
from driftsack.policies import Policy, SlidingWindowUCB
from driftsack.simulation import simulate

SIZES: Final = ((2, 2), (10, 3), (100, 10), (1000, 10))
SCALES: Final = (1.0, 0.1)  # the printed radius, under which budgets hardly bind; and one under which they do


class Recording(NamedTuple):
    """The step LPs of consecutive rounds of one SW-UCB learner: which columns changed, and to what."""

    rate: Floats  # (d,)
    starts: Ints  # (rounds + 1,) round r changed entries starts[r] to starts[r + 1]
    arms: Ints  # (changes,)
    rewards: Floats  # (changes,)
    costs: Floats  # (changes, d)
    width: int  # arms m


def record(arms: int, resources: int, scale: float, rounds: int) -> Recording:
    """Play a random stationary world (rate 0.3, Bernoulli) and write down how the learner's LP changes."""
    rng = generator(arms)
    horizon = 10 * rounds
    means = rng.random((resources + 1, arms))
    world = Instance.stationary(means[0], means[1:], horizon, budget=0.3 * horizon)
    policy = SlidingWindowUCB(windows=(max(rounds // 2, 2 * arms), max(rounds // 3, arms)), scale=scale)
    learner = policy.start(world.problem, seed=0)
    lp = next(programs(learner._state))  # noqa: SLF001  (the bench looks inside)
    data = np.vstack([lp.objective[:arms], lp.columns[:-1, :arms]])
    starts, changed, values = [0], [], []
    for _ in range(rounds):
        decision = learner.ask()
        now = np.vstack([lp.objective[:arms], lp.columns[:-1, :arms]])
        moved = np.flatnonzero((now != data).any(axis=0))
        changed.append(moved)
        values.append(now[:, moved].T)
        starts.append(starts[-1] + moved.size)
        data = now
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


@kernel
def replay(lp: Simplex, starts: Ints, arms: Ints, rewards: Floats, costs: Floats, cold: bool, values: Floats) -> int:
    """Solve a recording as the simulator's loop does; returns how many solves were not optimal."""
    failed = 0
    for r in range(values.size):
        for change in range(starts[r], starts[r + 1]):
            arm = arms[change]
            lp.objective[arm] = rewards[change]
            for j in range(costs.shape[1]):
                lp.columns[j, arm] = costs[change, j]
            column_changed(lp, arm)
        if cold:
            to_slack_basis(lp)
        failed += solve(lp)
        value = 0.0
        for arm in range(lp.solution.size):
            value += lp.objective[arm] * lp.solution[arm]
        values[r] = value
    return failed


def ours(tape: Recording, rounds: int, cold: bool) -> tuple[Floats, Simplex]:
    """Values of the first rounds by our simplex."""
    lp = new_step_lp(tape.width, tape.rate)
    values = np.zeros(rounds)
    failed = replay(lp, tape.starts, tape.arms, tape.rewards, tape.costs, cold, values)
    if failed:
        raise RuntimeError(f"{failed} of {rounds} recorded step LPs failed")
    return values, lp


def by_highspy(tape: Recording, rounds: int) -> Floats:
    """Values by one HiGHS model that is kept warm; only the changed columns are edited."""
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
    """Values by ``lp.step_lp`` as people call it from Python, from scratch each round."""
    return np.array([step_lp(gains, uses, tape.rate).value for gains, uses in written_out(tape, rounds)])


def written_out(tape: Recording, rounds: int) -> Iterator[tuple[Floats, Floats]]:
    """The rewards (m,) and costs (d, m) of each round."""
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
            -linprog(-gains, A_ub=np.vstack([uses, ones]), b_ub=limits, method="highs").fun
            for gains, uses in written_out(tape, rounds)
        ]
    )


def seconds(work: Callable[..., object], *arguments: object) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begun


def step_lp_rows(quick: bool, said: Callable[[str], None]) -> list[dict[str, float | str]]:
    """Our step LP, warm and cold, against warm highspy and linprog on the same recorded rounds."""
    rounds, repeats = (100, 3) if quick else (800, 5)
    rows: list[dict[str, float | str]] = []
    for arms, resources in SIZES:
        for scale in SCALES:
            said(f"step LP at ({arms}, {resources}), scale {scale:g}")
            tape = record(arms, resources, scale, rounds)
            mine, lp = ours(tape, rounds, cold=False)
            theirs, scipys = by_highspy(tape, rounds), by_linprog(tape, rounds)
            worst = max(np.abs(mine - theirs).max(), np.abs(mine - scipys).max())
            ours(tape, rounds, cold=True)
            warm, cold, face, highs, scipy = [], [], [], [], []
            for _ in range(repeats):
                warm.append(seconds(ours, tape, rounds, False) / rounds)
                highs.append(seconds(by_highspy, tape, rounds) / rounds)
                cold.append(seconds(ours, tape, rounds, True) / rounds)
                scipy.append(seconds(by_linprog, tape, rounds) / rounds)
                face.append(seconds(by_step_lp, tape, rounds) / rounds)
            rows.append(
                {
                    "m, d": f"{arms}, {resources}",
                    "scale": scale,
                    "highspy warm / ours warm": ratio(highs, warm),
                    "linprog / ours warm": ratio(scipy, warm),
                    "linprog / ours cold": ratio(scipy, cold),
                    "linprog / step_lp from Python": ratio(scipy, face),
                    "ours warm µs": 1e6 * min(warm),
                    "ours cold µs": 1e6 * min(cold),
                    "highspy warm µs": 1e6 * min(highs),
                    "linprog µs": 1e6 * min(scipy),
                    "pivots a round": int(lp.counts[PIVOTS]) / rounds,
                    "restarts a round": int(lp.counts[RESTARTS]) / rounds,
                    "largest difference": float(worst),
                }
            )
    return rows


def ratio(slow: list[float], fast: list[float]) -> float:
    """Median of the ratios of neighbouring measurements."""
    return statistics.median(s / f for s, f in zip(slow, fast, strict=True))


def round_rows(quick: bool, said: Callable[[str], None]) -> list[dict[str, float | str]]:
    """A whole simulated SW-UCB round on Example 2 against a plain Python loop that calls linprog."""
    said("a simulated round at (2, 2)")
    short, repeats = (200, 3) if quick else (1000, 5)
    world, small = example_2(), example_2(horizon=short)
    policy, plain = (
        SlidingWindowUCB(variation=(0.5, 1.0)),
        PlainSlidingWindowUCB(windows=(short // 4, short // 4)),
    )
    fast, slow = [], []
    for _ in range(repeats + 1):
        fast.append(round_seconds(world, policy, trials=10))
        slow.append(round_seconds(small, plain, trials=1))
    return [
        {
            "m, d": "2, 2",
            "Python + linprog / ours": ratio(slow[1:], fast[1:]),
            "ours ns": 1e9 * min(fast),
            "Python + linprog ns": 1e9 * min(slow),
        }
    ]


def round_seconds(world: Instance, policy: Policy | PlainSlidingWindowUCB, trials: int) -> float:
    """Wall time a round, everything included, on one thread."""
    begun = time.perf_counter()
    run = simulate(world, policy, trials=trials, seed=0, threads=1)
    return (time.perf_counter() - begun) / int(np.minimum(run.stopping_time, world.horizon).sum())


def growth_rows(quick: bool, said: Callable[[str], None]) -> list[dict[str, float | str]]:
    """How the cost of a round grows with m, d, the window and T, each against a shared base in turns."""
    base = {"m": 10, "d": 3, "window": 1_000, "T": 100_000}
    steps = {
        "m": (2, 100, 1_000),
        "d": (1, 10, 30),
        "window": (100, 10_000, 99_000),
        "T": (10_000, 1_000_000),
    }
    repeats = 3 if quick else 7
    if quick:
        base["T"], steps["T"], steps["window"] = 20_000, (2_000, 200_000), (100, 10_000)
    rows: list[dict[str, float | str]] = []
    for name, values in steps.items():
        for value in values:
            said(f"growth with {name}: {value:,}")
            sizes = {**base, name: value}
            mine, start = sized(**sizes), sized(**base)
            cost, reference = [], []
            for _ in range(repeats + 1):
                cost.append(round_seconds(*mine, trials=1))
                reference.append(round_seconds(*start, trials=1))
            rows.append(
                {
                    "what grows": name,
                    "from": base[name],
                    "to": value,
                    "cost of a round, ratio": ratio(cost[1:], reference[1:]),
                    "ns a round": 1e9 * min(cost),
                }
            )
    return rows


def sized(m: int, d: int, window: int, T: int) -> tuple[Instance, SlidingWindowUCB]:  # noqa: N803
    """A random stationary world in which the budgets bind and last, and a windowed policy of the given sizes."""
    means = generator(1).random((d + 1, m))
    world = Instance.stationary(means[0], means[1:], T, budget=0.3 * T)
    return world, SlidingWindowUCB(windows=(window, window), scale=0.1, budget_rule="remaining")
