"""Delayed feedback and loose maxima in simulations.

A wrapper around the policy's state delays the outcomes, so the loop of a trial does not change. The loop charges every
round at once and ends the trial when a budget is exceeded. The policy has its own ledger, which is charged when an
outcome arrives and holds a reservation for every pending outcome, like the ledger of a :class:`~driftsack.Learner`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import number, whole
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.admission import admit
from driftsack.game.floors import note_answer
from driftsack.game.ledger import Ledger, charge, open_ledger, release, reserve
from driftsack.game.nature import AnyInstance
from driftsack.game.protocol import choose as choose_base
from driftsack.game.protocol import learn as learn_base
from driftsack.game.records import Outcome, Round, Terms, new_outcome, new_terms, note_delay, open_round, set_context
from driftsack.numerics.compiled import kernel

OneInstance = TypeVar("OneInstance", bound=AnyInstance)


@dataclass(frozen=True)
class Feedback:
    """How a simulated policy is told its outcomes.

    Attributes:
        delay: The number of rounds by which outcomes are late: that of round t is told after the decision of round
            t + ``delay``. The trial still ends in the round whose costs exceed a budget.
        loose: Factor by which the ``reward_max`` and ``cost_max`` that the policy is told exceed the true maxima. The
            outcomes stay the same.
    """

    delay: int = 0
    loose: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", whole(self.delay, "delay", at_least=0))
        object.__setattr__(self, "loose", number(self.loose, "loose"))
        if self.loose < 1.0:
            raise OutOfRangeError(
                f"loose must be at least 1, got {self.loose:g}; maxima that are smaller than the true ones would be "
                "exceeded."
            )


class State(NamedTuple):
    """A policy's state, its ledger, and the outcomes of the last D + 1 rounds; a row is free if its arm is ``SKIP``."""

    base: Any
    ledger: Ledger
    terms: Terms
    loose: float  # ratio of the maxima that the policy is given to the true ones
    safe: bool
    arm: Ints  # (D + 1,)
    probability: Floats  # (D + 1,)
    reward: Floats  # (D + 1,)
    costs: Floats  # (D + 1, d)
    contexts: Floats  # (D + 1, n)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Let the policy choose by its own ledger; with ``safe``, skip if pending outcomes may exhaust a budget."""
    ledger, terms = state.ledger, state.terms
    if state.safe:
        admit(ledger, terms, round.t, state.safe)
    set_context(terms, round.context)
    arm: int = choose_base(state.base, open_round(round.t, ledger, terms), rng, mix, prices)
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Store the outcome and pass on the one that arrives now; skipped rounds are passed on at once."""
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
    """Store an outcome, normalised by the maxima that the policy is given, and reserve the maximum cost of a round."""
    state.arm[row] = outcome.arm
    state.probability[row] = outcome.probability
    state.reward[row] = outcome.reward / state.loose
    for j in range(outcome.costs.size):
        state.costs[row, j] = outcome.costs[j] / state.loose
    for f in range(outcome.context.size):
        state.contexts[row, f] = outcome.context[f]
    reserve(state.ledger, state.terms.worst, outcome.arm)
    state.terms.pending[outcome.arm] += 1.0
    state.terms.unpaid[outcome.arm] += 1.0


@kernel
def pass_on(state: State, row: int, t: int) -> None:
    """Pass the outcome of round ``t`` (from 0) to the policy, and replace its reservation by its costs."""
    costs = state.costs[row]
    state.terms.pending[state.arm[row]] -= 1.0
    state.terms.unpaid[state.arm[row]] -= 1.0
    note_delay(state.terms, state.arm.size - 1)
    note_answer(state.terms.floors, state.arm[row], state.reward[row])
    set_context(state.terms, state.contexts[row])
    learn_base(
        state.base, new_outcome(state.terms, t, state.arm[row], state.probability[row], state.reward[row], costs)
    )
    charge(state.ledger, costs)
    release(state.ledger, state.terms.worst, state.arm[row])
    state.arm[row] = SKIP


def new_feedback(base: Any, told: Problem, delay: int, loose: float, safe: bool) -> State:
    """Wrap the state of a policy with delayed feedback or loose maxima.

    Outcomes arrive after ``delay`` rounds, and the maxima of the problem ``told`` are ``loose`` times the true ones.
    With ``safe``, rounds are skipped unless every budget covers the maximum costs of the round and of all pending ones.
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
    """Return the instance with ``reward_max`` and ``cost_max`` multiplied by ``loose``, and the same means.

    Outcomes drawn from it reach the larger maxima; those of ``simulate`` do not.

    >>> from driftsack.instances import example_2
    >>> loosened(example_2(), 10.0).problem.cost_max
    (10.0, 10.0)
    """
    if loose == 1.0:
        return instance
    problem = instance.problem
    most = tuple(cost * loose for cost in problem.cost_max)
    return replace(instance, problem=replace(problem, reward_max=problem.reward_max * loose, cost_max=most))
