"""What a simulated policy is told of its outcomes: when they arrive, and the maxima that it is given with the problem.

The policy's state is wrapped, so that the loop of a trial stays as it is. The loop charges every round at once and ends
the trial when a budget is exceeded; the policy has a ledger of its own, which is charged when an outcome arrives and
holds a reservation for every outcome that is pending, as that of a :class:`~driftsack.Learner` does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import number
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.admission import admit
from driftsack.game.ledger import Ledger, charge, open_ledger, release, reserve
from driftsack.game.nature import AnyInstance
from driftsack.game.protocol import choose as choose_base
from driftsack.game.protocol import learn as learn_base
from driftsack.game.records import Outcome, Round, Terms, new_outcome, new_terms, open_round, set_context
from driftsack.numerics.compiled import kernel

OneInstance = TypeVar("OneInstance", bound=AnyInstance)


class State(NamedTuple):
    """A policy's state, its ledger, and the outcomes of the last D + 1 rounds; a row is free if its arm is ``SKIP``."""

    base: Any
    ledger: Ledger
    terms: Terms
    loose: float  # the maxima that the policy is told, over the true ones
    safe: bool
    arm: Ints  # (D + 1,)
    probability: Floats  # (D + 1,)
    reward: Floats  # (D + 1,)
    costs: Floats  # (D + 1, d)
    contexts: Floats  # (D + 1, n)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Let the policy choose by what it knows; with ``safe``, skip if pending outcomes may use up a budget."""
    ledger, terms = state.ledger, state.terms
    if state.safe:
        admit(ledger, terms, round.t, state.safe)
    set_context(terms, round.context)
    arm: int = choose_base(state.base, open_round(round.t, ledger, terms), rng, mix, prices)
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Keep the outcome, and pass on the one that arrives now; the policy knows at once that it skipped a round."""
    t, late = outcome.t, state.arm.size
    if outcome.arm == SKIP:
        learn_base(state.base, outcome)
    else:
        keep(state, t % late, outcome)
    arrived = (t + 1) % late
    if state.arm[arrived] != SKIP:
        pass_on(state, arrived, t + 1 - late)


@kernel
def keep(state: State, row: int, outcome: Outcome) -> None:
    """Write an outcome, in units of the maxima that the policy is told, and reserve the highest cost of a round."""
    state.arm[row] = outcome.arm
    state.probability[row] = outcome.probability
    state.reward[row] = outcome.reward / state.loose
    for j in range(outcome.costs.size):
        state.costs[row, j] = outcome.costs[j] / state.loose
    for f in range(outcome.context.size):
        state.contexts[row, f] = outcome.context[f]
    reserve(state.ledger, state.terms.worst, outcome.arm)


@kernel
def pass_on(state: State, row: int, t: int) -> None:
    """Tell the policy the outcome of round ``t``, from 0, and charge it."""
    costs = state.costs[row]
    set_context(state.terms, state.contexts[row])
    learn_base(
        state.base, new_outcome(state.terms, t, state.arm[row], state.probability[row], state.reward[row], costs)
    )
    charge(state.ledger, costs)
    release(state.ledger, state.terms.worst, state.arm[row])
    state.arm[row] = SKIP


def new_feedback(base: Any, told: Problem, delay: int, loose: float, safe: bool) -> State:
    """Wrap the state of a policy that is told of its outcomes late, or given loose maxima.

    Args:
        base: The policy's state.
        told: The problem as the policy is given it.
        delay: An outcome arrives after the decision of the round that is so many rounds later.
        loose: The maxima of ``told`` over the true ones.
        safe: Whether a round is skipped unless every budget covers it and all pending outcomes, at their highest costs.

    Returns:
        The state.
    """
    rows = min(delay, told.horizon) + 1
    return State(
        base=base,
        ledger=open_ledger(told),
        terms=new_terms(told),
        loose=loose,
        safe=safe,
        arm=np.full(rows, SKIP, dtype=np.int64),
        probability=np.zeros(rows),
        reward=np.zeros(rows),
        costs=np.zeros((rows, told.resources)),
        contexts=np.zeros((rows, told.features)),
    )


def loosened(instance: OneInstance, loose: float) -> OneInstance:
    """Return an instance with larger maxima and the same means, as a policy sees it that is given loose maxima.

    Args:
        instance: The instance.
        loose: The factor on ``reward_max`` and ``cost_max``.

    Returns:
        The instance with these maxima. Outcomes drawn from it reach the larger maxima; those of ``simulate`` do not.

    >>> from driftsack.instances import example_2
    >>> loosened(example_2(), 10.0).problem.cost_max
    (10.0, 10.0)
    """
    if loose == 1.0:
        return instance
    problem = instance.problem
    most = tuple(cost * loose for cost in problem.cost_max)
    return replace(instance, problem=replace(problem, reward_max=problem.reward_max * loose, cost_max=most))


def looseness(value: Any, name: str = "loose") -> float:
    """Return ``value`` as a factor on the maxima, which is at least 1."""
    factor = number(value, name)
    if factor < 1.0:
        raise OutOfRangeError(
            f"{name} must be at least 1, got {factor:g}; maxima that are smaller than the true ones would be exceeded."
        )
    return factor
