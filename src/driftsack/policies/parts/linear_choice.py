r"""Thompson sampling on a bank of linear models at replayed prices, with revisits and a cap on expensive probes.

*Draws.* :math:`\tilde y_{ik} \sim \mathcal N(\hat y_{ik}, (z\, \mathrm{sd}_{ik})^2)`. With probability :math:`1 - v_i
e^{-h \tau_i}` an arm that was not chosen for :math:`\tau_i` rounds is assumed to have changed, and the draw has the
standard deviation of a single outcome. The hazard :math:`h = (1 + \text{changes})/(2000 + m t)` is that of
:class:`~driftsack.Adaptive`. While n outcomes of an arm are pending that are expected to arrive, draws are narrower by
:math:`\sqrt{w/(w + n)}` with w the number of its observations plus 1: otherwise the same uncertainty would be explored
again in every round until the first outcome arrives. The arm with the largest :math:`\tilde y_{i0} - q^\top \tilde
y_{i,1..d}` is chosen, or none if that is negative.

*Expensive probes.* A choice that differs from the best arm by the estimates without noise is a probe. It is expensive
if its extra cost exceeds the budget of two rounds and the cost of two average pulls: where budgets are scarce, every
pull costs the budget of many rounds. The average pull is the spending of this season over all observations, so that the
rule is stricter after a warm start or in a new season, when less is left to learn. Expensive probes may use up to 1% of
the planned spending so far. Where spending is behind an even plan, a probe may also use 5% of the difference: a budget
that is not used otherwise is no reason not to learn, and an arm that was underestimated at first is found again.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.bounds import within
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round, share_to_come
from driftsack.game.two_speed import best_response
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.policies.parts.kept_rounds import LARGEST_DRAW
from driftsack.policies.parts.linear_bank import (
    LARGEST_ESTIMATE,
    LinearBank,
    estimate,
    list_estimates,
    mean_reward,
    new_bank,
    observe_context,
)
from driftsack.policies.parts.open_arms import uniform_over_open
from driftsack.policies.parts.replayed_price import (
    ReplayedPrice,
    correct_prices,
    keep_round,
    new_replayed_price,
    note_choice,
    note_costs,
    note_fresh,
    show_prices,
)
from driftsack.policies.parts.run_length import PRIOR_ROUNDS

EXPENSIVE: Final = 2.0  # in budgets of a round, or in average pulls if these cost more
IDLE_SHARE: Final = 0.05  # of the budget that is behind plan, for one expensive probe
PATIENCE: Final = 100  # rounds after which an arm whose first outcome is missing is tried again


class LinearChoice(NamedTuple):
    """The belief, the prices and the current draws."""

    bank: LinearBank
    price: ReplayedPrice
    drawn: Annotated[Floats, within(-LARGEST_DRAW, LARGEST_DRAW)]  # (m, 1 + d)
    probes: Annotated[Floats, within(0.0, LARGEST_ESTIMATE)]  # (1,) what expensive probes have cost, in rounds' budgets
    exploration: float  # z
    probe_share: float


def new_choice(
    problem: Problem, size: int, exploration: float, probe_share: float, forgetting: float | None
) -> LinearChoice:
    """Create the state without observations; ``size`` is the encoded context dimension."""
    bank = new_bank(problem, size, forgetting)
    return LinearChoice(
        bank=bank,
        price=new_replayed_price(problem, size, bank.unit),
        drawn=np.zeros((problem.arms, 1 + problem.resources)),
        probes=np.zeros(1),
        exploration=exploration,
        probe_share=probe_share,
    )


@kernel
def choose_at(choice: LinearChoice, round: Round, x: Floats, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Choose an arm, or skip, at a context with vector ``x``."""
    bank = choice.bank
    # Untried arms come first; before the first outcome of any arm, choose uniformly.
    arm = untried(bank, round)
    if arm == SKIP and bank.overall[0] == 0.0:
        show_prices(choice.price, prices)
        uniform_over_open(round, mix)
        return draw(mix, rng.random())
    # Draw outcomes, correct the prices when it is due, and take the best response.
    if arm == SKIP:
        estimate(bank, x)
        list_estimates(bank, round)
        draw_outcomes(choice, round, rng)
        steps = keep_round(choice.price, bank, round, x, bank.mean, choice.drawn)
        if steps > 0:
            correct_prices(choice.price, bank, round, mean_reward(bank), steps)
        note_fresh(choice.price, round, choice.drawn)
        wanted = best_response(choice.drawn, choice.price.price, round)
        arm = affordable_probe(choice, round, wanted)
        note_choice(choice.price, choice.drawn, wanted, arm)
    show_prices(choice.price, prices)
    for i in range(mix.size):
        mix[i] = 0.0
    if arm != SKIP:
        mix[arm] = 1.0
        bank.last[arm] = round.t
    return arm


@kernel
def untried(bank: LinearBank, round: Round) -> int:
    """Return an open arm without observations that was not chosen recently; ``SKIP`` if there is none."""
    for i in range(bank.pulls.size):
        waits = bank.last[i] >= 0 and round.t - bank.last[i] < PATIENCE
        if bank.pulls[i] == 0.0 and round.open[i] and not waits:
            return i
    return SKIP


@kernel
def draw_outcomes(choice: LinearChoice, round: Round, rng: Generator) -> None:
    """Draw the outcomes of every arm; an arm that waits for its first outcome gets 0, so that it is not chosen."""
    bank, share = choice.bank, share_to_come(round)
    hazard = (1.0 + bank.changes[0]) / (PRIOR_ROUNDS + bank.pulls.size * round.t)
    for i in range(bank.pulls.size):
        stale = rng.random() < 1.0 - bank.trust[i] * math.exp(-hazard * (round.t - bank.last[i]))
        narrow = math.sqrt((bank.pulls[i] + 1.0) / (bank.pulls[i] + 1.0 + share * round.pending[i]))
        for k in range(choice.drawn.shape[1]):
            sd = choice.exploration * bank.sd[i, k]
            if stale:
                sd = math.sqrt(bank.noise[i, k]) * (round.factors[k - 1, i] if k > 0 else 1.0)
            value = bank.mean[i, k] + narrow * sd * rng.standard_normal()
            if bank.pulls[i] == 0.0:
                value = 0.0
            choice.drawn[i, k] = max(value, 0.0) if k > 0 else value


@kernel
def affordable_probe(choice: LinearChoice, round: Round, arm: int) -> int:
    """Return the drawn arm, or the best arm without noise if the drawn one is a probe beyond the probe budget."""
    bank = choice.bank
    usual = best_response(bank.mean, choice.price.price, round)
    if arm in (usual, SKIP):
        return arm
    # Extra cost of the probe, in budgets of a round and in average pulls; and the budget that is idle.
    extra, relative, idle, ledger = 0.0, 0.0, np.inf, round.ledger
    for j in range(bank.unit.size):
        more = bank.mean[arm, 1 + j] - (bank.mean[usual, 1 + j] if usual != SKIP else 0.0)
        pull = ledger.spent[j] / (bank.unit[j] * max(bank.overall[0], 1.0))
        extra, relative = max(extra, more), max(relative, more / max(pull, 1.0))
        planned = ledger.budget[j] * round.t / (round.t + round.rounds_left)
        idle = min(idle, (planned - ledger.spent[j]) / bank.unit[j])
    if relative <= EXPENSIVE or extra < IDLE_SHARE * idle:
        return arm
    if choice.probes[0] + extra > choice.probe_share * round.t:
        return usual
    choice.probes[0] += extra
    return arm


@kernel
def learn_at(choice: LinearChoice, outcome: Outcome, x: Floats) -> None:
    """Learn the outcome of an arm at a context with vector ``x``."""
    if outcome.arm != SKIP:
        observe_context(choice.bank, outcome, x)
        note_costs(choice.price, choice.bank.outcome, choice.bank.overall[0])
