"""``play``: run an algorithm on a whole problem; ``Play``: the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import number, of_type, whole
from driftsack.core.seeding import generator, trial_seeds
from driftsack.core.statistics import standard_error
from driftsack.numerics.curves import curve_times
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.loop import PlayTotals, add_noise, finish_round, gradient_step, play_rounds, record_round
from driftsack.oco.problem import ConvexProblem
from driftsack.oco.region import NOT_COMPILED
from driftsack.oco.state import State


class HasLoss(Protocol):
    """Anything with a value, such as an :class:`~driftsack.oco.Optimum`."""

    @property
    def value(self) -> float:
        """The loss over the horizon."""


class RegretEstimate(NamedTuple):
    r"""Estimates of the expected regret and the expected violation."""

    regret: float  # the mean of :math:`\mathrm{Reg}_1` over the trials
    regret_error: float  # its standard error; 0 for a single trial
    violation: float  # the mean of :math:`\mathrm{Reg}_2` over the trials
    violation_error: float  # its standard error; 0 for a single trial


@dataclass(frozen=True, eq=False)
class Play:
    """The results of one or more trials of an algorithm on a problem with n variables and d constraints.

    Attributes:
        problem: The problem.
        algorithm: The algorithm's settings.
        loss: (trials,) the sum of f_t(x_t) over the rounds.
        totals: (trials, d) the sum of g_t(x_t) over the rounds; positive values are violations.
        hard_totals: (trials, d) the sum of (g_t(x_t))⁺ over the rounds.
        times: (p,) the rounds after which the curves are recorded, at most 512.
        loss_curve: (trials, p) the sum of the losses up to each of ``times``.
        total_curve: (trials, p, d) the sums of the constraints up to each of ``times``.
        mean_point: (trials, n) the average decision.
        last_point: (trials, n) the decision of the round after the last one.
        prices: (trials, d) the virtual queues or multipliers at the end.
    """

    problem: ConvexProblem
    algorithm: Algorithm
    loss: Floats
    totals: Floats
    hard_totals: Floats
    times: Ints
    loss_curve: Floats
    total_curve: Floats
    mean_point: Floats
    last_point: Floats
    prices: Floats

    @property
    def trials(self) -> int:
        """The number of trials."""
        return len(self.loss)

    @property
    def violation(self) -> Floats:
        r"""(trials,) the violation :math:`\mathrm{Reg}_2 = \sum_i (\sum_t g_{t,i}(x_t))^+` of each trial."""
        violation: Floats = np.maximum(self.totals, 0.0).sum(axis=1)
        return violation

    @property
    def hard_violation(self) -> Floats:
        r"""(trials,) the hard violation :math:`\sum_i \sum_t (g_{t,i}(x_t))^+`, in which slack pays for nothing."""
        violation: Floats = self.hard_totals.sum(axis=1)
        return violation

    def regret(self, best: HasLoss | float) -> Floats:
        r"""Compute the regret :math:`\mathrm{Reg}_1` against a benchmark.

        Args:
            best: The benchmark: an optimum of this problem, or its value.

        Returns:
            (trials,) the loss of each trial minus the benchmark's.
        """
        return self.loss - number(getattr(best, "value", best), "the benchmark's value")

    def expected(self, best: HasLoss | float) -> RegretEstimate:
        r"""Estimate the measures of the stochastic setting by their means over the trials.

        These are :math:`\mathrm{Reg}_1 = E[\sum_t f_t(x_t)] - \mathrm{OPT}` against the optimum of the means, and
        :math:`\mathrm{Reg}_2 = \sum_i E[(\sum_t g_{t,i}(x_t))^+]` of the observed constraints (the paper's last
        appendix).

        Args:
            best: The benchmark: an optimum of this problem, or its value.

        Returns:
            The means, with standard errors.
        """
        regret, violation = self.regret(best), self.violation
        return RegretEstimate(
            float(regret.mean()), standard_error(regret), float(violation.mean()), standard_error(violation)
        )

    def __str__(self) -> str:
        return (
            f"{self.algorithm} on {self.problem}, {self.trials} trials: loss {self.loss.mean():,.4g}, "
            f"violation {self.violation.mean():,.4g}"
        )


def play(algorithm: Algorithm, problem: ConvexProblem, trials: int = 1, seed: int = 0) -> Play:
    """Run an algorithm on all rounds of a problem; in compiled code if its functions are arrays.

    Args:
        algorithm: The algorithm's settings.
        problem: The problem.
        trials: The number of trials. They differ only if the problem has noise.
        seed: The seed of the noise. Trial k depends on ``(seed, k)`` only.
    """
    # Check the arguments.
    of_type(problem, ConvexProblem, "problem")
    count = whole(trials, "trials", at_least=1)
    times = curve_times(problem.horizon)
    finished: list[tuple[State, PlayTotals]] = []
    for trial in range(count):
        state = algorithm.new_state(problem.domain, problem.horizon, problem.count)
        tally = new_tally(problem, times)
        rng = generator(trial_seeds(seed, trial)[0])
        if problem.tabled and problem.domain.region.kind != NOT_COMPILED:
            play_compiled(problem, state, tally, rng)
        else:
            play_in_python(problem, state, tally, rng)
        finished.append((state, tally))

    # Collect the results of all trials.
    curves = np.array([tally.curves for _, tally in finished])
    return Play(
        problem=problem,
        algorithm=algorithm,
        loss=np.array([tally.sums[0] for _, tally in finished]),
        totals=np.array([tally.sums[1:] for _, tally in finished]),
        hard_totals=np.array([tally.hard for _, tally in finished]),
        times=times,
        loss_curve=curves[:, :, 0],
        total_curve=curves[:, :, 1:],
        mean_point=np.array([tally.point_sum for _, tally in finished]) / problem.horizon,
        last_point=np.array([state.point for state, _ in finished]),
        prices=np.array([state.prices for state, _ in finished]),
    )


def new_tally(problem: ConvexProblem, times: Ints) -> PlayTotals:
    """Create the sums before the first round."""
    functions, variables = 1 + problem.count, problem.dimension
    return PlayTotals(
        curve_points=np.zeros(1, dtype=np.int64),
        sums=np.zeros(functions),
        hard=np.zeros(problem.count),
        point_sum=np.zeros(variables),
        times=times,
        curves=np.zeros((times.size, functions)),
        values=np.zeros(functions),
        gradients=np.zeros((functions, variables)),
    )


def play_compiled(problem: ConvexProblem, state: State, tally: PlayTotals, rng: Generator) -> None:
    """Play all rounds in one call of a kernel."""
    losses: Any = problem.losses
    rows = tuple(family.rows for family in problem.constraints)
    play_rounds(state, problem.domain.region, losses.rows, rows, tally, problem.noise, rng)


def play_in_python(problem: ConvexProblem, state: State, tally: PlayTotals, rng: Generator) -> None:
    """Play round by round, for Python functions and for domains without a compiled projection."""
    for t in range(problem.horizon):
        tally.values[:], tally.gradients[:] = problem.evaluate(t, state.point)
        if problem.noise > 0.0:
            add_noise(problem.noise, state.point, tally.values, tally.gradients, rng)
        record_round(tally, t, state.point)
        gradient_step(state, tally.values, tally.gradients)
        problem.domain.move_inside(state.target)
        finish_round(state, tally.values, tally.gradients)
