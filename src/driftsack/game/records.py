"""The two records of the kernel protocol: what a policy sees before a round, and what it learns after it.

A policy reads the fields that it needs. A field can be added to a record without changing any policy, because drivers
and wrappers build records only through the functions of this file.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.expected_costs import CostRecord, new_cost_record
from driftsack.game.floors import FloorAccount, new_floor_account
from driftsack.game.ledger import Ledger, worst_units
from driftsack.game.listed_costs import ListedCosts, new_listed_costs
from driftsack.numerics.compiled import kernel

MUST_SERVE: Final = 100.0
"""The cost of skipping a round that must be answered: far above every reward, which is at most 1."""


LOOSE_RATE: Final = 1e9
"""The rate of a resource without a budget, in units of ``cost_max``: above the cost of every round."""


DELAYS: Final = 200.0
"""Effective number of outcomes in the running mean of the delays."""


MUSTS: Final = 1000.0
"""Effective number of rounds in the running share of requests that must be served."""

MUSTS_PRIOR: Final = 20.0
"""Weight of the prior share of 0, in rounds."""


class Terms(NamedTuple):
    """The terms of every round of a game, unless a driver changes them.

    Attributes:
        rate: (d,) average spending allowed per round: b = B/T.
        end: (1,) the round, from 0, at which the horizon is expected to end: T, unless it is revised.
        offered: (m,) arms that the driver does not withhold.
        open: (m,) arms that may be chosen: those offered that every budget can pay for.
        version: (1,) a number that changes whenever ``open`` does.
        skip_cost: (1,) what it costs to skip a round, in normalised reward: 0, or ``MUST_SERVE``.
        fallback: (k,) the arms that answer a request if the policy skips it, in order of preference; one ``SKIP``
            without them.
        fallback_worst: (d,) the maximum cost of the first one in a later round, in grid units; 0 without one.
        cost_most: (d, m) the maximum cost of each arm.
        worst: (d, m) the same in grid units, which is reserved; -1 if it is not known.
        context: (n,) features of the round; empty without contexts.
        pending: (m,) decisions of the present season for each arm whose outcomes have not arrived.
        delay: (2,) the running mean of the delays of outcomes, in rounds, and the number of outcomes behind it.
        unpaid: (m,) the pending decisions whose costs have not arrived either.
        must: (1,) whether this request must be served although others may be skipped.
        must_share: (1,) the running share of such requests.
        costs: the costs of each arm so far, from which ``safe="statistical"`` reserves.
        prices: The costs that are listed for this request.
        floors: What counts towards each floor so far.
    """

    rate: Floats
    end: Floats
    offered: Bools
    open: Bools
    version: Ints
    skip_cost: Floats
    fallback: Ints
    fallback_worst: Ints
    cost_most: Floats
    worst: Ints
    context: Floats
    pending: Floats
    delay: Floats
    unpaid: Floats
    must: Bools
    must_share: Floats
    costs: CostRecord
    prices: ListedCosts
    floors: FloorAccount


class Round(NamedTuple):
    """The information that a policy may use when it chooses.

    Attributes:
        t: The round, from 0. It may exceed the horizon that the policy was started with.
        rounds_left: The number of remaining rounds, including this one, at least 1; it may be an estimate.
        ledger: Budgets, spending and reservations.
        rate: (d,) average spending allowed in this round: b = B/T, or the rate of a spending plan.
        open: (m,) arms that may be chosen.
        version: A number that changes whenever ``open`` does, from one round of the learner to the next.
        skip_cost: The cost of skipping the round, in normalised reward. A policy with a linear program adds it to the
            reward of every arm; see :func:`usual_skip_cost`.
        cost_most: (d, m) the maximum cost of each arm.
        context: (n,) features of the round; empty without contexts.
        pending: (m,) decisions for each arm whose outcomes have not arrived, or only in part.
        delay: The running mean of the delays of outcomes, in rounds.
        unpaid: (m,) the pending decisions whose costs have not arrived, and are not yet part of the spending.
        must: Whether this request must be served although others may be skipped.
        must_share: The share of such requests; 0 if there was none.
        margin: (d,) the amount reserved in excess of the expected costs of these decisions, in units of ``cost_max``; 0
            unless ``safe`` is ``"statistical"``. A pacer does not plan to spend it.
        listed: Whether costs are relative to a list, so that a policy has to plan with its estimates times ``factors``.
        factors: (d, m) the factors on the estimated costs of this request; 1 without a list.
        usual_factors: (d, m) the factors of a request without a list, which are also assumed for pending decisions.
        swing: The mean absolute change of the logarithm of the factors from one request to the next.
        floors: The floors, and what counts towards each of them so far; see :mod:`driftsack.game.floors`.
    """

    t: int
    rounds_left: float
    ledger: Ledger
    rate: Floats
    open: Bools
    version: int
    skip_cost: float
    cost_most: Floats
    context: Floats
    pending: Floats
    delay: float
    unpaid: Floats
    must: bool
    must_share: float
    margin: Floats
    listed: bool
    factors: Floats
    usual_factors: Floats
    swing: float
    floors: FloorAccount


class Outcome(NamedTuple):
    """The feedback that a policy learns from; a skipped round has the arm ``SKIP`` and zeros.

    Attributes:
        t: The round that it belongs to, from 0.
        arm: The arm, or ``SKIP``.
        probability: The probability of the arm when it was chosen.
        reward: The reward in [0, 1].
        costs: (d,) the costs in [0, 1]; relative to the list, if there was one.
        context: (n,) features of that round.
    """

    t: int
    arm: int
    probability: float
    reward: float
    costs: Floats
    context: Floats


def new_terms(problem: Problem) -> Terms:
    """The terms of a problem: every arm is offered and may cost ``cost_max``, and the context is 0."""
    arms, listed = problem.arms, problem.fallbacks
    worst = worst_units(problem)
    return Terms(
        rate=np.where(np.isinf(problem.budget), LOOSE_RATE, problem.rate),
        end=np.array([float(problem.horizon)]),
        offered=np.ones(arms, dtype=np.bool_),
        open=np.ones(arms, dtype=np.bool_),
        version=np.zeros(1, dtype=np.int64),
        skip_cost=np.array([MUST_SERVE if listed or problem.floor else 0.0]),
        fallback=np.array(listed or (SKIP,)),
        fallback_worst=worst[:, listed[0]].copy() if listed else np.zeros(problem.resources, dtype=np.int64),
        cost_most=problem.cost_max_by_arm / np.asarray(problem.cost_max)[:, None],
        worst=worst,
        context=np.zeros(problem.features),
        pending=np.zeros(arms),
        delay=np.zeros(2),
        unpaid=np.zeros(arms),
        must=np.zeros(1, dtype=np.bool_),
        must_share=np.zeros(1),
        costs=new_cost_record(problem),
        prices=new_listed_costs(problem),
        floors=new_floor_account(problem),
    )


@kernel
def open_round(t: int, ledger: Ledger, terms: Terms) -> Round:
    """The record of round ``t``."""
    return Round(
        t,
        max(terms.end[0] - t, 1.0),
        ledger,
        terms.rate,
        terms.open,
        terms.version[0],
        MUST_SERVE if terms.must[0] else terms.skip_cost[0],
        terms.cost_most,
        terms.context,
        terms.pending,
        terms.delay[0],
        terms.unpaid,
        terms.must[0] and terms.skip_cost[0] == 0.0,
        terms.must_share[0],
        terms.costs.margin,
        terms.prices.active[0],
        terms.prices.factors,
        terms.prices.usual,
        terms.prices.swing[0],
        terms.floors,
    )


@kernel
def usual_skip_cost(round: Round) -> float:
    """The cost of skipping other rounds than this one, which may be one of the few that must be served."""
    return 0.0 if round.must else round.skip_cost


@kernel
def note_request(terms: Terms, t: int) -> None:
    """Update the running share of requests that must be served with the request of round ``t``.

    If every request must be answered, none of them is an exception for which money is held back.
    """
    if terms.skip_cost[0] > 0.0:
        return
    if terms.must[0] or terms.must_share[0] > 0.0:
        seen = min(t + MUSTS_PRIOR, MUSTS)
        terms.must_share[0] += ((1.0 if terms.must[0] else 0.0) - terms.must_share[0]) / seen


@kernel
def note_delay(terms: Terms, rounds: int) -> None:
    """Update the running mean of the delays with an outcome that arrived ``rounds`` after its decision.

    Args:
        terms: The terms; ``delay`` is written.
        rounds: The rounds that began after the decision's own.
    """
    terms.delay[1] = min(terms.delay[1] + 1.0, DELAYS)
    terms.delay[0] += (rounds - terms.delay[0]) / terms.delay[1]


@kernel
def share_to_come(round: Round) -> float:
    """The share of the pending outcomes that are expected to arrive: less than 1 if some never do.

    With a mean delay D, about D outcomes are pending if every round has one; those in excess of 2 D are assumed lost.

    Args:
        round: The round.

    Returns:
        A factor in [0, 1] on ``round.pending``.
    """
    return share_of_late(round.pending, round.delay)


@kernel
def share_to_pay(round: Round) -> float:
    """The share of the missing costs that are expected to arrive; see :func:`share_to_come`.

    Args:
        round: The round.

    Returns:
        A factor in [0, 1] on ``round.unpaid``.
    """
    return share_of_late(round.unpaid, round.delay)


@kernel
def share_of_late(counts: Floats, delay: float) -> float:
    """The share of late decisions, ``counts`` (m,) by arm, whose outcomes are expected to arrive, at a mean delay."""
    total = 0.0
    for i in range(counts.size):
        total += counts[i]
    return min(1.0, 2.0 * delay / total) if total > 0.0 else 0.0


@kernel
def set_rate(terms: Terms, ledger: Ledger, t: int) -> None:
    """Spread the remaining budgets evenly over the remaining rounds at round ``t``.

    Args:
        terms: The terms; ``rate`` is written.
        ledger: The ledger.
        t: The round, from 0.
    """
    rounds = max(terms.end[0] - t, 1.0)
    for j in range(terms.rate.size):
        terms.rate[j] = max(ledger.budget[j] - ledger.spent[j], 0.0) / rounds


@kernel
def new_outcome(terms: Terms, t: int, arm: int, probability: float, reward: float, costs: Floats) -> Outcome:
    """The record of the outcome of round ``t``; of an earlier one, if its context is set again."""
    return Outcome(t, arm, probability, reward, costs, terms.context)


@kernel
def set_context(terms: Terms, context: Floats) -> None:
    """Write the context of a round."""
    for f in range(context.size):
        terms.context[f] = context[f]


@kernel
def with_rate(round: Round, rate: Floats) -> Round:
    """The same round at another rate, with which a wrapper paces its base.

    Args:
        round: The round.
        rate: (d,) the other rate.

    Returns:
        The changed record.
    """
    return changed(round, round.t, round.rounds_left, round.ledger, rate)


@kernel
def with_account(round: Round, t: int, rounds_left: float, account: Ledger) -> Round:
    """The same round with the clock and the ledger of a wrapper.

    Args:
        round: The round.
        t: The round on the wrapper's clock, from 0.
        rounds_left: The rounds left on the wrapper's clock.
        account: The wrapper's ledger.

    Returns:
        The changed record.
    """
    return changed(round, t, rounds_left, account, round.rate)


@kernel
def changed(round: Round, t: int, rounds_left: float, ledger: Ledger, rate: Floats) -> Round:
    """The same round with another clock, ledger and rate; compiled records have no ``_replace``."""
    return Round(
        t,
        rounds_left,
        ledger,
        rate,
        round.open,
        round.version,
        round.skip_cost,
        round.cost_most,
        round.context,
        round.pending,
        round.delay,
        round.unpaid,
        round.must,
        round.must_share,
        round.margin,
        round.listed,
        round.factors,
        round.usual_factors,
        round.swing,
        round.floors,
    )


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
