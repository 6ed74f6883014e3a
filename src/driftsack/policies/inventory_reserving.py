r"""Inventory reserving: prices that rise with the spent share of the budget (after Zhang and Cheung 2024).

Let every arm earn between :math:`\eta_{\min}` and :math:`\eta_{\max}` per unit of cost in every round, and let z be the
spent share of a budget, less one maximum cost. Its price is 0 until the share a is spent, and then rises so that
scarce budget is kept for better rounds:

.. math:: \Psi(z) = \eta_{\min}\, e^{\kappa (z - a)} \;\text{ for } z \ge a, \qquad
          \kappa = 1 + \ln\frac{\eta_{\max}}{\eta_{\min}}, \qquad a = \frac1\kappa,

so that :math:`\Psi(1) = \eta_{\max}`. In each round the arm with the largest

.. math:: \mathrm{UCB}_{t,i}(\mu) - \sum_j \Psi(z_j)\, \mathrm{LCB}_{t,j,i}(C)

is pulled, or the round is skipped if none is above 0. The bounds are those of sliding-window UCB.

*Guarantee* (theorem N7 of docs/theory-new.md, with proof; one resource, known means, costs without noise): at least
:math:`(\mathrm{LP} - (2\kappa + 1)\, \eta_{\max}\, c_{\max}) / (1 + \kappa)`, in any environment and with no bound on V
or W. No factor below the order of :math:`\kappa` is possible (Zhang and Cheung 2024). Their algorithm was not
available to us: the rule and the constant are ours, and theirs are *unverified*. No guarantee is proved with several
resources, or for what learning costs. O(md) per round, no LP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import LARGEST_SETTING, above_zero, at_least_zero, pair, whole
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.index_set import clear
from driftsack.numerics.window import check_not_negative, shrunk_mean
from driftsack.policies.parts.means import WindowedMeans, begin_round, make_room, observe, windowed_means
from driftsack.policies.parts.radius import Radius, lower_bound, new_radius, upper_bound
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """Windowed means and the price curve."""

    means: WindowedMeans
    radius: Radius
    least: float  # eta_min
    steepness: float  # kappa

    def check(self) -> None:
        """Raise if a sum of rewards or costs is negative."""
        check_not_negative(self.means.rewards, self.means.costs)


@kernel
def reserve_price(state: State, share: float) -> float:
    """The price after ``share`` of a budget is spent."""
    after = min(share, 1.0) - 1.0 / state.steepness
    return state.least * math.exp(state.steepness * after) if after >= 0.0 else 0.0


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Pull the arm with the largest optimistic reward net of the priced costs, or skip."""
    means, radius, ledger = state.means, state.radius, round.ledger
    begin_round(means, round)
    clear(means.stale)  # all bounds are computed in every round
    # The price of each budget.
    for j in range(prices.size):
        usable = ledger.budget[j] - 1.0
        prices[j] = reserve_price(state, ledger.spent[j] / usable if usable > 0.0 else 1.0)
    # The best arm at these prices.
    best, arm = -np.inf if round.must else 0.0, SKIP
    for i in range(mix.size):
        mix[i] = 0.0
        value = upper_bound(radius, shrunk_mean(means.rewards, i, 0), means.rewards.pulls[i] + 1.0)
        for j in range(prices.size):
            cost = lower_bound(radius, shrunk_mean(means.costs, i, j), means.costs.pulls[i] + 1.0)
            value -= prices[j] * max(cost, 0.0)
        if round.open[i] and value > best:
            best, arm = value, i
    if arm != SKIP:
        mix[arm] = 1.0
    make_room(means, round.t)
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Add the outcome to the windows."""
    if outcome.arm != SKIP:
        observe(state.means, outcome.t, outcome.arm, outcome.reward, outcome.costs)


@dataclass(frozen=True)
class InventoryReserving(Policy):
    """Reserves budget for rounds that earn more per unit of cost.

    Attributes:
        ratios: The least and the largest reward per unit of cost of any arm in any round, in units of ``reward_max``
            and ``cost_max``.
        window: The window of the estimates in rounds; None for all rounds.
        scale: Factor on the confidence radii; see ``SlidingWindowUCB``.

    >>> InventoryReserving(ratios=(0.05, 5.0)).factor
    6.605170185988092
    """

    ratios: tuple[float, float] = (0.1, 10.0)
    window: int | None = None
    scale: float = 0.1

    def __post_init__(self) -> None:
        least, most = (above_zero(ratio, "each ratio", LARGEST_SETTING) for ratio in pair(self.ratios, "ratios"))
        if least > most:
            raise OutOfRangeError(f"ratios must be in increasing order, got {least:g} and {most:g}.")
        object.__setattr__(self, "ratios", (least, most))
        if self.window is not None:
            object.__setattr__(self, "window", whole(self.window, "window", at_least=1))
        object.__setattr__(self, "scale", at_least_zero(self.scale, "scale", LARGEST_SETTING))

    @property
    def factor(self) -> float:
        """The competitive ratio 2 + ln(η_max / η_min) of the guarantee."""
        return 2.0 + math.log(self.ratios[1] / self.ratios[0])

    @property
    def forgets(self) -> bool:
        """Whether observations are dropped, which a window does."""
        return self.window is not None

    def rounds_kept(self, problem: Problem) -> int:
        """Return the number of rounds in both windows; an infinite window keeps none."""
        return 2 * self.window if self.window is not None and self.window < problem.horizon else 0

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations."""
        length = problem.horizon if self.window is None else self.window
        return State(
            means=windowed_means(problem, (length, length)),
            radius=new_radius(problem, self.scale, clip=True),
            least=self.ratios[0],
            steepness=self.factor - 1.0,
        )
