r"""LagrangeBwK (Immorlica, Sankararaman, Schapire and Slivkins 2019): two learners in the Lagrangian game.

The primal, EXP3.P over the arms and SKIP, and the dual, Hedge over the resources, play the zero-sum game

.. math:: L_t(a, i) = r_t(a) + 1 - \gamma\, c_{t,i}(a) .

The primal is paid :math:`(L_t(a_t, \cdot) - 1 + \gamma) / (1 + \gamma) \in [0, 1]`; the dual minimises
:math:`L_t(a_t, \cdot)`, so its weight on a resource grows with its use. Budgets may differ: costs of
resource j are scaled by :math:`B / B_j`, B the smallest budget. The dual's draw of a resource is replaced by its
expectation, which has the same mean and less noise, and its shares times :math:`\gamma` are the prices.

- ``form="stochastic"``: :math:`\gamma = T/B`, and time is another resource, of which every round, even SKIP, uses B/T.
- ``form="adversarial"``: no time resource; :math:`\gamma = T_0/B` with :math:`T_0 = g/(d+1)`, g the value OPT_FD, or
  :math:`T_0 = g` with ``divide=False``. If the value is unknown, ``benchmark="guess"`` draws g from the powers of 2
  up to T.

*Guarantee* (their theorems, up to constants): in a stationary environment the stochastic form has regret
:math:`\tilde O(\sqrt{mT}\, T/B)`. Against any oblivious adversary the adversarial form earns at least OPT_FD over a
factor :math:`O(d + 1)`, or :math:`O(d \log T)` with the guess, minus a sublinear term. O(m + d) per round, no LP.

Late feedback: importance weights use the probability that the arm had when it was chosen; the dual uses its shares
at the last choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Bound, Constants
from driftsack.core.checks import above_zero, flag, one_of
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import Exp3P, new_exp3p, softmax, update_probabilities, update_weights
from driftsack.numerics.sampling import draw
from driftsack.policies.parts.open_arms import restrict_to_open
from driftsack.policies.policy import Policy

FORMS: Final = ("adversarial", "stochastic")
GUESS: Final = "guess"
TINY: Final = 1e-100  # below every budget


class State(NamedTuple):
    """The weights of both players."""

    primal: Exp3P  # m arms, then SKIP
    log_weights: Floats  # (n,) of the dual; n = d, or d + 1 with time
    shares: Floats  # (n,) the dual's mix
    dual_rate: float  # eta of Hedge
    scale: Constants  # (d,) B / B_j: the weight of a unit of each resource
    time_cost: float  # B / T in the stochastic form, else 0
    factor: Annotated[Floats, Bound(lambda new, *_: (0.0, largest_factor(new)))]  # (1,) gamma; 0 until a guess is drawn
    budget: float  # B
    doublings: int  # a guess is 2^k with k drawn from 0, ..., doublings; negative if there is no guess
    divisor: float  # T0 = guess / divisor


def largest_factor(state: State) -> float:
    """Return the largest factor of a new learner: the one it has, or that of the largest guess."""
    guess = 2.0**state.doublings / (state.divisor * max(state.budget, TINY)) if state.doublings >= 0 else 0.0
    return max(guess, float(state.factor[0]))


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw from the primal's probabilities, and compute the prices from the dual's mix."""
    # Draw the guess of OPT_FD in the first round.
    if state.factor[0] == 0.0:
        k = int(rng.random() * (state.doublings + 1))
        state.factor[0] = 2.0**k / (state.divisor * state.budget)
    # Mixes of both players; the dual's shares times gamma are the prices.
    update_probabilities(state.primal)
    softmax(state.log_weights, state.shares)
    for i in range(mix.size):
        mix[i] = state.primal.probabilities[i]
    restrict_to_open(round, mix)
    for j in range(prices.size):
        prices[j] = state.factor[0] * state.shares[j] * state.scale[j]
    return draw(mix, rng.random())


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the primal with its payoff and the dual with the costs."""
    costs = outcome.costs
    resources = costs.size
    # Hedge: weights grow with scaled costs; in the stochastic form, time is the last resource.
    used = 0.0
    for j in range(resources):
        amount = costs[j] * state.scale[j]
        used += state.shares[j] * amount
        state.log_weights[j] += state.dual_rate * amount
    if state.log_weights.size > resources:
        used += state.shares[resources] * state.time_cost
        state.log_weights[resources] += state.dual_rate * state.time_cost
    # Payoff of the primal, scaled to [0, 1].
    factor = state.factor[0]
    payoff = (outcome.reward + factor * (1.0 - used)) / (1.0 + factor)
    action = state.primal.log_weights.size - 1 if outcome.arm == SKIP else outcome.arm
    update_weights(state.primal, action, max(outcome.probability, 1e-12), payoff)


@dataclass(frozen=True)
class LagrangeBwK(Policy):
    """LagrangeBwK: EXP3.P against Hedge in the Lagrangian game.

    Attributes:
        form: ``"adversarial"`` or ``"stochastic"``.
        benchmark: For the adversarial form, the value OPT_FD in the problem's units, or ``"guess"``.
        divide: Whether T0 is the value divided by d + 1, as in the theory, or the value itself.
        delta: The failure probability of EXP3.P; None for 1/T.

    >>> LagrangeBwK(benchmark=3_750.0).to_spec()["form"]
    'adversarial'
    """

    form: Literal["adversarial", "stochastic"] = "adversarial"
    benchmark: float | str = GUESS
    divide: bool = True
    delta: float | None = None

    def __post_init__(self) -> None:
        one_of(self.form, "form", FORMS)
        object.__setattr__(self, "divide", flag(self.divide, "divide"))
        if self.benchmark != GUESS:
            if isinstance(self.benchmark, str):
                raise SettingError(f"benchmark must be a number or {GUESS!r}, got {self.benchmark!r}.")
            object.__setattr__(self, "benchmark", above_zero(self.benchmark, "benchmark"))
        if self.delta is not None:
            object.__setattr__(self, "delta", above_zero(self.delta, "delta"))

    @property
    def forgets(self) -> bool:
        """True: the bonus of EXP3.P bounds the lead of any action, so old outcomes lose their effect."""
        return True

    def new_state(self, problem: Problem) -> State:
        """Return the state with equal weights for both players."""
        horizon, resources = problem.horizon, problem.resources
        budget = max(float(problem.unit_budget.min()), 1e-9)
        stochastic = self.form == "stochastic"
        sides = resources + stochastic
        divisor = float(resources + 1) if self.divide else 1.0
        guessing = not stochastic and self.benchmark == GUESS
        return State(
            primal=new_exp3p(problem.arms + 1, horizon, self.delta or 1 / horizon),
            log_weights=np.zeros(sides),
            shares=np.full(sides, 1 / sides),
            dual_rate=math.sqrt(math.log(sides) / horizon),
            scale=budget / np.maximum(problem.unit_budget, budget),
            time_cost=budget / horizon if stochastic else 0.0,
            factor=np.array([0.0 if guessing else self._factor(problem, budget, divisor)]),
            budget=budget,
            doublings=math.floor(math.log2(horizon)) if guessing else -1,
            divisor=divisor,
        )

    def _factor(self, problem: Problem, budget: float, divisor: float) -> float:
        """Return the factor gamma: T / B or T0 / B."""
        if self.form == "stochastic":
            return problem.horizon / budget
        return float(self.benchmark) / problem.reward_max / (divisor * budget)
