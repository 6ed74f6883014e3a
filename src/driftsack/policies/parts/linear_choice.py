r"""Thompson sampling on a bank of linear models at replayed prices, with revisits and a cap on expensive probes.

*Draws.* :math:`\tilde y_{ik} \sim \mathcal N(\hat y_{ik}, (z\, \mathrm{sd}_{ik})^2)`; with probability
:math:`1 - v_i e^{-h \tau_i}` for an arm that was not chosen for :math:`\tau_i` rounds and may have changed, with
the standard deviation of a single outcome. The hazard :math:`h = (1 + \text{changes})/(2000 + m t)` is that of
:class:`~driftsack.Adaptive`. The arm with the largest :math:`\tilde y_{i0} - q^\top \tilde y_{i,1..d}` is chosen, or
none if that is negative.

*Expensive probes.* A choice that differs from that of the estimates without noise is a probe. It is expensive if it
costs more than two rounds' budgets more than that, and more than two average pulls, since where budgets are scarce
every pull costs many rounds' budgets; with segments four, since each of them needs probes of its own. The average is
the spending of this season over all observations, so that the rule is stricter after a warm start or in a new season,
when less is left to learn. Expensive probes may use up to 1% of what the rounds so far were meant to spend.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import Ranges
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.policies.parts.linear_bank import (
    LARGEST_ESTIMATE,
    LinearBank,
    estimate,
    mean_reward,
    new_bank,
    observe_context,
)
from driftsack.policies.parts.open_arms import uniform_over_open
from driftsack.policies.parts.replayed_price import (
    LARGEST_DRAW,
    ReplayedPrice,
    keep_round,
    new_replayed_price,
    replay,
    show_prices,
    solve_price,
)
from driftsack.policies.parts.run_length import PRIOR_ROUNDS
from driftsack.policies.parts.two_speed import best_response

EXPENSIVE: Final = 2.0  # rounds' budgets, or average pulls where these cost more
PATIENCE: Final = 100  # rounds after which an arm without an outcome is tried again


class LinearChoice(NamedTuple):
    """The belief, the prices and the present draws."""

    bank: LinearBank
    price: ReplayedPrice
    drawn: Floats  # (m, 1 + d)
    probes: Floats  # (1,) what expensive probes have cost, in rounds' budgets
    exploration: float  # z
    probe_share: float
    expensive: float  # rounds' budgets, or average pulls

    def ranges(self, rounds: int) -> Ranges:  # noqa: ARG002
        """What the fields may hold after some rounds."""
        return {"probes": (0.0, LARGEST_ESTIMATE), "drawn": (-LARGEST_DRAW, LARGEST_DRAW)}


def new_choice(
    problem: Problem,
    size: int,
    exploration: float,
    probe_share: float,
    forgetting: float | None,
    expensive: float = EXPENSIVE,
) -> LinearChoice:
    """No observations; ``size`` is the number of numbers that a context becomes."""
    bank = new_bank(problem, size, forgetting)
    return LinearChoice(
        bank=bank,
        price=new_replayed_price(problem, size, bank.unit),
        drawn=np.zeros((problem.arms, 1 + problem.resources)),
        probes=np.zeros(1),
        exploration=exploration,
        probe_share=probe_share,
        expensive=expensive,
    )


@kernel
def choose_at(choice: LinearChoice, round: Round, x: Floats, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Choose an arm at a context whose vector is ``x``, or to skip."""
    bank = choice.bank
    arm = untried(bank, round)
    if arm == SKIP and bank.overall[0] == 0.0:
        show_prices(choice.price, prices)
        uniform_over_open(round, mix)
        return draw(mix, rng.random())
    if arm == SKIP:
        estimate(bank, x)
        draw_outcomes(choice, round, rng)
        steps = keep_round(choice.price, x, bank.mean, choice.drawn)
        if steps > 0:
            replay(choice.price, bank)
            solve_price(choice.price, round, mean_reward(bank), steps)
        arm = affordable_probe(choice, round, best_response(choice.drawn, choice.price.price, round))
    show_prices(choice.price, prices)
    for i in range(mix.size):
        mix[i] = 0.0
    if arm != SKIP:
        mix[arm] = 1.0
        bank.last[arm] = round.t
    return arm


@kernel
def untried(bank: LinearBank, round: Round) -> int:
    """An open arm without observations that was not chosen lately; ``SKIP`` if there is none."""
    for i in range(bank.pulls.size):
        waits = bank.last[i] >= 0 and round.t - bank.last[i] < PATIENCE
        if bank.pulls[i] == 0.0 and round.open[i] and not waits:
            return i
    return SKIP


@kernel
def draw_outcomes(choice: LinearChoice, round: Round, rng: Generator) -> None:
    """Draw the outcomes of every arm; those of an arm that waits for its first outcome are 0, so it is not chosen."""
    bank = choice.bank
    hazard = (1.0 + bank.changes[0]) / (PRIOR_ROUNDS + bank.pulls.size * round.t)
    for i in range(bank.pulls.size):
        stale = rng.random() < 1.0 - bank.trust[i] * math.exp(-hazard * (round.t - bank.last[i]))
        for k in range(choice.drawn.shape[1]):
            sd = math.sqrt(bank.noise[i, k]) if stale else choice.exploration * bank.sd[i, k]
            value = bank.mean[i, k] + sd * rng.standard_normal()
            if bank.pulls[i] == 0.0:
                value = 0.0
            choice.drawn[i, k] = max(value, 0.0) if k > 0 else value


@kernel
def affordable_probe(choice: LinearChoice, round: Round, arm: int) -> int:
    """The arm that was drawn, or the best by estimates without noise if that would be an expensive probe too many."""
    bank = choice.bank
    usual = best_response(bank.mean, choice.price.price, round)
    if arm in (usual, SKIP):
        return arm
    extra, relative = 0.0, 0.0
    for k in range(1, bank.mean.shape[1]):
        more = bank.mean[arm, k] - (bank.mean[usual, k] if usual != SKIP else 0.0)
        pull = round.ledger.spent[k - 1] / (bank.unit[k - 1] * max(bank.overall[0], 1.0))
        extra, relative = max(extra, more), max(relative, more / max(pull, 1.0))
    if relative <= choice.expensive:
        return arm
    if choice.probes[0] + extra > choice.probe_share * round.t:
        return usual
    choice.probes[0] += extra
    return arm


@kernel
def learn_at(choice: LinearChoice, outcome: Outcome, x: Floats) -> None:
    """Learn the outcome of an arm at a context whose vector is ``x``."""
    if outcome.arm != SKIP:
        observe_context(choice.bank, outcome, x)
