r"""WithExploration: any policy with an exploration floor, so that its log can answer for other policies.

With probability :math:`\varepsilon` the round is given to an arm drawn uniformly from the open ones, and otherwise to
the base's choice. If the base has the mix x and k arms are open,

.. math:: x'_i = (1 - \varepsilon) x_i + \frac{\varepsilon}{k} 1\{i \text{ is open}\},

which is the recorded probability. With ``safe``, an arm is open only if every budget covers it. The base learns from
explored rounds as from its own, with their true probability. What is mixed in is not planned for: a base that paces its
spending notices it as spending.

A policy that draws means, such as :class:`~driftsack.Adaptive`, has a mix for each draw. The mix that is recorded is
that of the draw, so every open arm has at least the probability :math:`\varepsilon / k` in it; the mean over draws is
:meth:`~driftsack.Learner.propensities`.

*Cost*: O(m) and one random number per round. *Guarantee*: that of the base on its own share of the rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, share
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.protocol import choose as choose_base
from driftsack.game.protocol import learn as learn_base
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.policies.adaptive import Adaptive
from driftsack.policies.parts.contributions import Contributions
from driftsack.policies.parts.estimates import Estimates
from driftsack.policies.parts.memory import check_base
from driftsack.policies.parts.open_arms import count_open, explore_open, nth_open
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """The base and the share of explored rounds."""

    base: Any  # the base's state
    explore: float


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Let the base choose, or explore."""
    arm: int = choose_base(state.base, round, rng, mix, prices)
    if arm < SKIP or arm >= mix.size:  # STUCK, or an error that the caller reports
        return arm
    explore_open(round, mix, state.explore)
    uniform, count = rng.random(), count_open(round)
    if uniform < state.explore and count > 0:
        return nth_open(round, int(uniform / state.explore * count))
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Pass the outcome to the base."""
    learn_base(state.base, outcome)


@dataclass(frozen=True)
class WithExploration(Policy):
    """Gives a share of the rounds to a uniformly random open arm, and the others to a base policy.

    ``policy.start(problem, explore=0.01)`` and the setting ``explore`` of a campaign are short for it.

    Attributes:
        base: The policy that chooses otherwise.
        explore: The probability of exploring, in (0, 1].

    >>> learner = WithExploration(explore=0.02).start(Problem(horizon=100, arms=["a", "b"], budget=50), seed=0)
    >>> bool(learner.ask().mix.min() >= 0.01)
    True
    """

    base: Policy = field(default_factory=Adaptive)
    explore: float = 0.01

    def __post_init__(self) -> None:
        check_base(self.base)
        object.__setattr__(self, "explore", share(above_zero(self.explore, "explore"), "explore"))

    @property
    def known_costs(self) -> bool:
        """As for the base."""
        return self.base.known_costs

    @property
    def forgets(self) -> bool | None:
        """As for the base."""
        return self.base.forgets

    @property
    def bounded(self) -> bool:
        """As for the base."""
        return self.base.bounded

    def follow_rate(self) -> Policy:
        """Return a copy whose base has its own pacing turned off."""
        return replace(self, base=self.base.follow_rate())

    def announce(self, state: State, arm: int, cost_factors: Floats) -> None:
        """Pass an announced change of an arm's costs on to the base.

        Args:
            state: The state; changed in place.
            arm: The arm whose costs change.
            cost_factors: (d,) the factor on its future costs in each resource.
        """
        self.base.announce(state.base, arm, cost_factors)

    def new_state(self, problem: Problem) -> State:
        """Return the initial state of the base."""
        return State(self.base.new_state(problem), self.explore)

    def estimates(self, state: State) -> Estimates | None:
        """The estimates of the base."""
        return self.base.estimates(state.base)

    def contributions(self, state: State) -> Contributions | None:
        """The contributions of the base's features."""
        return self.base.contributions(state.base)
