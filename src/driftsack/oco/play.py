"""``play``: an algorithm on a whole problem, and ``Play``, what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import number, of_type, whole
from driftsack.core.seeding import generator, trial_seeds
from driftsack.numerics.curves import curve_times
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.loop import Tally, aim, book, disturb, run, settle
from driftsack.oco.problem import Problem
from driftsack.oco.region import BY_PROGRAM
from driftsack.oco.state import State


class HasValue(Protocol):
    """An optimum: something with a value."""

    @property
    def value(self) -> float:
        """What it loses over the horizon."""


class Measures(NamedTuple):
    """Regret and violation in expectation; errors are standard errors, 0 for a single trial."""

    regret: float
    regret_error: float
    violation: float
    violation_error: float


@dataclass(frozen=True, eq=False)
class Play:
    """What n trials of an algorithm on a problem gave."""

    problem: Problem
    algorithm: Algorithm
    loss: Floats  # (n,) the sum of f_t(x_t)
    totals: Floats  # (n, d) the sum of g_t(x_t): above 0 is violated
    times: Ints  # (p,) up to 512 rounds
    loss_curve: Floats  # (n, p) losses up to each of ``times``
    total_curve: Floats  # (n, p, d) constraints up to each of ``times``
    mean_point: Floats  # (n, n variables) the average decision
    last_point: Floats  # (n, n variables) what would be played next
    prices: Floats  # (n, d) queues or multipliers at the end

    @property
    def trials(self) -> int:
        """The number n of trials."""
        return len(self.loss)

    @property
    def violation(self) -> Floats:
        r"""(n,) :math:`\mathrm{Reg}_2 = \sum_i (\sum_t g_{t,i}(x_t))^+`; with noise, look at its mean."""
        over: Floats = np.maximum(self.totals, 0.0).sum(axis=1)
        return over

    def regret(self, best: HasValue | float) -> Floats:
        r"""(n,) :math:`\mathrm{Reg}_1`: what each trial lost more than a benchmark."""
        return self.loss - number(getattr(best, "value", best), "the benchmark's value")

    def expected(self, best: HasValue | float) -> Measures:
        r"""The measures of the stochastic setting, estimated: means over the trials, with standard errors.

        :math:`\mathrm{Reg}_1 = E[\sum_t f_t(x_t)] - \mathrm{OPT}` against the optimum of the means, and
        :math:`\mathrm{Reg}_2 = \sum_i E[(\sum_t g_{t,i}(x_t))^+]` of what was drawn (the paper's last appendix).
        """
        regret, over = self.regret(best), self.violation
        root = np.sqrt(self.trials)
        spread = [float(part.std(ddof=1) / root) if self.trials > 1 else 0.0 for part in (regret, over)]
        return Measures(float(regret.mean()), spread[0], float(over.mean()), spread[1])

    def __str__(self) -> str:
        return (
            f"{self.algorithm} on {self.problem}, {self.trials} trials: loss {self.loss.mean():,.4g}, "
            f"violation {self.violation.mean():,.4g}"
        )


def play(algorithm: Algorithm, problem: Problem, trials: int = 1, seed: int = 0) -> Play:
    """Play ``trials`` trials; trial k depends on ``(seed, k)`` alone, and only through the noise."""
    of_type(problem, Problem, "problem")
    count = whole(trials, "trials", at_least=1)
    times = curve_times(problem.horizon)
    done: list[tuple[State, Tally]] = []
    for trial in range(count):
        state = algorithm.new_state(problem.domain, problem.horizon, problem.count)
        tally = new_tally(problem, times)
        rng = generator(trial_seeds(seed, trial)[0])
        if problem.tabled and problem.domain.region.kind != BY_PROGRAM:
            run_compiled(problem, state, tally, rng)
        else:
            run_in_python(problem, state, tally, rng)
        done.append((state, tally))
    curves = np.array([tally.curves for _, tally in done])
    return Play(
        problem=problem,
        algorithm=algorithm,
        loss=np.array([tally.sums[0] for _, tally in done]),
        totals=np.array([tally.sums[1:] for _, tally in done]),
        times=times,
        loss_curve=curves[:, :, 0],
        total_curve=curves[:, :, 1:],
        mean_point=np.array([tally.points for _, tally in done]) / problem.horizon,
        last_point=np.array([state.point for state, _ in done]),
        prices=np.array([state.prices for state, _ in done]),
    )


def new_tally(problem: Problem, times: Ints) -> Tally:
    """Nothing lost yet."""
    functions, variables = 1 + problem.count, problem.dimension
    return Tally(
        clock=np.zeros(1, dtype=np.int64),
        sums=np.zeros(functions),
        points=np.zeros(variables),
        times=times,
        curves=np.zeros((times.size, functions)),
        values=np.zeros(functions),
        gradients=np.zeros((functions, variables)),
    )


def run_compiled(problem: Problem, state: State, tally: Tally, rng: Generator) -> None:
    """All rounds in one call."""
    losses: Any = problem.losses
    rows = tuple(family.rows for family in problem.constraints)
    run(state, problem.domain.region, losses.rows, rows, tally, problem.noise, rng)


def run_in_python(problem: Problem, state: State, tally: Tally, rng: Generator) -> None:
    """Round by round: for callables, and for domains onto which a program projects."""
    for t in range(problem.horizon):
        tally.values[:], tally.gradients[:] = problem.evaluate(t, state.point)
        if problem.noise > 0.0:
            disturb(problem.noise, state.point, tally.values, tally.gradients, rng)
        book(tally, t, state.point)
        aim(state, tally.gradients)
        problem.domain.move_inside(state.target)
        settle(state, tally.values, tally.gradients)
