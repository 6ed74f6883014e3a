r"""The fluid optimum with contexts: reward of the best plan that knows all means at every context.

.. math:: \max_x \sum_{k,c} n_{kc}\, \mu_{kc}^\top x_{kc} \quad
          \text{s.t. } \sum_{k,c} n_{kc}\, C_{kc} x_{kc} \le B,\; x_{kc} \in \Delta_m,

with :math:`n_{kc}` expected rounds of phase k at context c. Its dual is the dual of LP-Dynamic with a row per pair,

.. math:: \phi(q) = B^\top q + \sum_{k,c} n_{kc} \max\bigl(0, \max_i \, \mu_{kc,i} - q^\top C_{kc,\cdot,i}\bigr),

and is solved in the same way, over d prices only (:mod:`driftsack.benchmarks.lp_dynamic`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar, overload

import numpy as np

from driftsack.benchmarks.benchmark import Benchmark
from driftsack.benchmarks.lp_dynamic import solve_rows
from driftsack.benchmarks.with_floors import GivenRows
from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import of_type
from driftsack.core.contextual import ContextualInstance
from driftsack.core.errors import SettingError
from driftsack.core.names import Amounts
from driftsack.core.worlds import costs_in_units, in_units

Value_co = TypeVar("Value_co", covariant=True)


class RecordedContexts(Protocol[Value_co]):
    """A log with contexts, which estimates the value of context."""

    def value_of_context(self, budget: Amounts) -> Value_co:
        """Return the estimated value of context for a budget."""


class ContextValue(NamedTuple):
    """The value of context: the optimum with and without it.

    Attributes:
        with_context: The optimum of plans that see the contexts.
        without: The optimum of plans that know the drift but do not see the contexts.
    """

    with_context: Benchmark
    without: Benchmark

    @property
    def gain(self) -> float:
        """The difference of the two optima, in the problem's units."""
        return self.with_context.value - self.without.value

    @property
    def ratio(self) -> float:
        """The ratio of the optimum with contexts to the optimum without; 1 if the latter is 0."""
        return self.with_context.value / self.without.value if self.without.value > 0.0 else 1.0

    def __str__(self) -> str:
        return (
            f"with contexts {self.with_context.value:,.6g}, without {self.without.value:,.6g}: "
            f"{100.0 * (self.ratio - 1.0):+.1f}%"
        )


def lp_contextual(instance: ContextualInstance, tolerance: float = 1e-9, most_passes: int = 1000) -> Benchmark:
    """Solve the fluid problem with contexts to a certified relative gap.

    Args:
        instance: The instance. If its contexts are drawn, the value is for their distribution.
        tolerance: The relative gap at which to stop.
        most_passes: The maximum number of passes over the rows.

    Returns:
        The benchmark, with prices and plan; the rows of the plan are those of ``instance.pairs()``.

    >>> import driftsack as ds
    >>> world = ds.ContextualInstance.by_table(
    ...     np.eye(2), rewards=[[1.0, 0.0], [0.0, 1.0]], costs=[[[0.5, 0.5]]] * 2, budget=25, horizon=100
    ... )
    >>> best = lp_contextual(world)
    >>> round(best.value, 6), best.gap <= 1e-9, best.prices.round(6).tolist()
    (50.0, True, [2.0])
    """
    of_type(instance, ContextualInstance, "instance")
    phase, context, rounds = instance.pairs()
    return solve_rows(_rows(instance, phase, context, rounds), "LP-Contextual", tolerance, most_passes)


@overload
def value_of_context(instance: ContextualInstance, tolerance: float = 1e-9) -> ContextValue: ...


@overload
def value_of_context(instance: RecordedContexts[Value_co], *, budget: Amounts) -> Value_co: ...


def value_of_context(
    instance: ContextualInstance | RecordedContexts[Value_co], tolerance: float = 1e-9, budget: Amounts | None = None
) -> ContextValue | Value_co:
    """Compute the value of context: the optimum with contexts and the optimum without.

    Args:
        instance: The instance, or a log with contexts, for which the values are estimated.
        tolerance: The relative gap of both programs; unused for a log.
        budget: The budget for the rounds of a log; omit it for an instance, which has its own.

    Returns:
        Both benchmarks and their difference. For a log, the result of :meth:`driftsack.logs.Log.value_of_context`: both
        estimates and a 95% interval of their difference.

    >>> import driftsack as ds
    >>> world = ds.ContextualInstance.by_table(
    ...     np.eye(2), rewards=[[1.0, 0.0], [0.0, 1.0]], costs=[[[0.5, 0.5]]] * 2, budget=50, horizon=100
    ... )
    >>> print(value_of_context(world))
    with contexts 100, without 50: +100.0%
    """
    if not isinstance(instance, ContextualInstance):
        if not hasattr(instance, "value_of_context"):
            raise SettingError(f"instance must be a ContextualInstance or a log with contexts, got {instance!r:.80}.")
        if budget is None:
            raise SettingError("a log has no budget; pass budget=... for the rounds of the log.")
        return instance.value_of_context(budget)
    if budget is not None:
        raise SettingError("a ContextualInstance has its own budget; omit budget=..., or replace its problem.")
    # The same program with a row per (phase, context) pair, and with a row per phase.
    phase, context, rounds = instance.pairs()
    rows = _rows(instance, phase, context, rounds)
    found = solve_rows(rows, "LP-Contextual", tolerance, 1000)
    return ContextValue(found, solve_rows(_averaged(rows, phase), "LP without contexts", tolerance, 1000))


def _rows(instance: ContextualInstance, phase: Ints, context: Ints, rounds: Floats) -> GivenRows:
    """Return the rows of (phase, context) pairs."""
    problem = instance.problem
    rewards, costs = instance.means_at(phase, context)
    return GivenRows(problem, in_units(problem, rewards), costs_in_units(problem, costs), rounds)


def _averaged(rows: GivenRows, phase: Ints) -> GivenRows:
    """Return one row per phase, with means averaged over contexts; ``phase`` is sorted."""
    first = np.concatenate([[0], 1 + np.flatnonzero(np.diff(phase))])
    rounds = np.add.reduceat(rows.rounds, first)
    rewards = np.add.reduceat(rows.unit_rewards * rows.rounds[:, None], first) / rounds[:, None]
    costs = np.add.reduceat(rows.unit_costs * rows.rounds[:, None, None], first) / rounds[:, None, None]
    return GivenRows(rows.problem, rewards, costs, rounds)
