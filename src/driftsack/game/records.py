"""The two records of the kernel protocol: what a policy sees before a round, and what it learns after it.

A policy reads the fields that it needs. A field can be added to a record without changing any policy, because drivers
and wrappers build records only through the functions of this file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Floats
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.numerics.compiled import kernel


class Terms(NamedTuple):
    """What every round of a game offers, unless a driver changes it.

    Attributes:
        rate: (d,) average spending allowed per round: b = B/T.
        open: (m,) arms that may be chosen.
        cost_most: (d, m) the most that each arm may cost.
        context: (n,) features of the round; empty without contexts.
    """

    rate: Floats
    open: Bools
    cost_most: Floats
    context: Floats


class Round(NamedTuple):
    """The information that a policy may use when it chooses.

    Attributes:
        t: The round, from 0.
        ledger: Budgets, spending and reservations.
        rate: (d,) average spending allowed in this round: b = B/T, or the rate of a spending plan.
        open: (m,) arms that may be chosen.
        cost_most: (d, m) the most that each arm may cost.
        context: (n,) features of the round; empty without contexts.
    """

    t: int
    ledger: Ledger
    rate: Floats
    open: Bools
    cost_most: Floats
    context: Floats


class Outcome(NamedTuple):
    """The feedback that a policy learns from; a skipped round has the arm ``SKIP`` and zeros.

    Attributes:
        t: The round that it belongs to, from 0.
        arm: The arm, or ``SKIP``.
        probability: The probability of the arm when it was chosen.
        reward: The reward in [0, 1].
        costs: (d,) the costs in [0, 1].
        context: (n,) features of that round.
    """

    t: int
    arm: int
    probability: float
    reward: float
    costs: Floats
    context: Floats


def new_terms(problem: Problem) -> Terms:
    """The terms of a problem: every arm is open and may cost ``cost_max``, and rounds have no context."""
    return Terms(
        rate=np.array(problem.rate),
        open=np.ones(problem.arms, dtype=np.bool_),
        cost_most=np.ones((problem.resources, problem.arms)),
        context=np.zeros(0),
    )


@kernel
def open_round(t: int, ledger: Ledger, terms: Terms) -> Round:
    """The record of round ``t``."""
    return Round(t, ledger, terms.rate, terms.open, terms.cost_most, terms.context)


@kernel
def new_outcome(terms: Terms, t: int, arm: int, probability: float, reward: float, costs: Floats) -> Outcome:
    """The record of the outcome of round ``t``."""
    return Outcome(t, arm, probability, reward, costs, terms.context)


@kernel
def with_rate(round: Round, rate: Floats) -> Round:
    """The same round at another rate, with which a wrapper paces its base.

    Args:
        round: The round.
        rate: (d,) the other rate.

    Returns:
        The changed record.
    """
    return Round(round.t, round.ledger, rate, round.open, round.cost_most, round.context)


@kernel
def with_account(round: Round, t: int, account: Ledger) -> Round:
    """The same round with the clock and the ledger of a wrapper.

    Args:
        round: The round.
        t: The round on the wrapper's clock, from 0.
        account: The wrapper's ledger.

    Returns:
        The changed record.
    """
    return Round(t, account, round.rate, round.open, round.cost_most, round.context)


@kernel
def with_time(outcome: Outcome, t: int) -> Outcome:
    """The same outcome with the clock of a wrapper.

    Args:
        outcome: The outcome.
        t: The round on the wrapper's clock, from 0.

    Returns:
        The changed record.
    """
    return Outcome(t, outcome.arm, outcome.probability, outcome.reward, outcome.costs, outcome.context)
