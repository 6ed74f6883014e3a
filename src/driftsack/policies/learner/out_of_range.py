"""Outcomes out of range: the counts that a learner keeps, and one warning of each kind."""

from __future__ import annotations

import warnings
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Floats
from driftsack.core.errors import OverrunWarning
from driftsack.game.ledger import amounts_of
from driftsack.policies.learner.engine import LearnerEngine

NEGLIGIBLE: Final = 1e-9  # relative overrun below which there is no warning
COST, REWARD, CLIPPED_COST = "cost", "reward", "clipped cost"  # kinds of warnings


class Overruns(NamedTuple):
    """Outcomes that exceeded the maxima of the problem.

    Attributes:
        decisions: The number of decisions that cost more than was reserved for them.
        excess: (d,) their total cost above the reservations, in the problem's units.
        rewards: The number of rewards below 0 or above ``reward_max``. They are clipped when they are learnt, those
            above ``reward_max`` only by policies that need outcomes in [0, 1].
        costs: The number of outcomes, told or taught, with a cost above ``cost_max`` that was clipped when it was
            learnt, because the policy needs costs in [0, 1]. Such a policy treats an omitted ``cost_max`` as 1.
        forced: The number of requests that had to be served (``ask(must=True)``) although a budget was exceeded or,
            with ``safe``, did not cover any arm.
        outside: (d,) by how much spending outside the learner (:meth:`Learner.charge`) exceeded what was neither spent
            nor reserved, in the problem's units.
    """

    decisions: int
    excess: Floats
    rewards: int
    costs: int
    forced: int
    outside: Floats


def overruns_of(engine: LearnerEngine) -> Overruns:
    """Return the counts so far."""
    found = engine.desk.overruns
    costs = 0 if learns_nothing(engine) else int(found.costs[0])
    excess, outside = amounts_of(engine.ledger, found.excess), amounts_of(engine.ledger, found.outside)
    return Overruns(int(found.decisions[0]), excess, int(found.clipped[0]), costs, int(found.forced[0]), outside)


def total(engine: LearnerEngine) -> int:
    """Return the number of outcomes out of range, of all kinds."""
    found = engine.desk.overruns
    return int(found.decisions[0] + found.clipped[0] + found.costs[0])


def learns_nothing(engine: LearnerEngine) -> bool:
    """Whether the policy ignores outcomes, so that nothing is clipped for it."""
    return engine.policy.forgets is None


def largest_learnt(engine: LearnerEngine) -> Floats:
    """(d,) the largest costs that the policy learns as they are, in the problem's units."""
    largest: Floats = engine.desk.cost_unit * (np.inf if learns_nothing(engine) else engine.desk.scale[1])
    return largest


class RangeWarnings:
    """The warnings of a learner, at most one of each kind."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def outcome(self, engine: LearnerEngine, which: str, reward: float, costs: Any, stacklevel: int) -> None:
        """Warn of an outcome that is out of range by more than a rounding error, after the engine counted it.

        Args:
            which: The round of the outcome, for the message.
            reward: The reward, in the problem's units.
            costs: (d,) the costs, in the problem's units.
            stacklevel: As for ``warnings.warn``, relative to the caller.
        """
        given, desk = self._given, engine.desk
        if COST not in given and desk.overruns.decisions[0] and _exceeds(engine, overruns_of(engine).excess, 0.0):
            message = (
                f"{which} cost more than was reserved for it ({_named(engine, costs)}). It is charged in full; see "
                "learner.overruns. Budgets hold only if no cost exceeds cost_max or the caps of its request."
            )
            self._give(COST, message, stacklevel)
        scale, ceiling = desk.scale.tolist()
        if REWARD not in given and not -NEGLIGIBLE * scale <= reward <= (1.0 + NEGLIGIBLE) * scale:
            message = (
                f"{which} had a reward of {reward:g}, which is not between 0 and reward_max = {scale:g}. It is learnt "
                f"as {min(max(reward, 0.0), scale * ceiling):g}; see learner.overruns. Set reward_max to the largest "
                "reward of a round."
            )
            self._give(REWARD, message, stacklevel)
        unbounded = not engine.problem.bounded
        if CLIPPED_COST not in given and unbounded and _exceeds(engine, costs, largest_learnt(engine)):
            self._clipped(engine, f"{which} cost {_named(engine, costs)}", stacklevel)

    def log(self, engine: LearnerEngine, costs: Floats, beyond: Bools, stacklevel: int) -> None:
        """Warn of rounds of a log whose costs are clipped when they are learnt.

        Args:
            costs: (n, d) the costs of the rounds, in the problem's units.
            beyond: (n,) which of them are clipped.
            stacklevel: As for ``warnings.warn``, relative to the caller.
        """
        if beyond.any():
            most = _named(engine, costs.max(axis=0))
            self._clipped(engine, f"{np.count_nonzero(beyond):,} rounds of the log cost up to {most}", stacklevel)

    def _clipped(self, engine: LearnerEngine, what: str, stacklevel: int) -> None:
        """Warn of costs that are too large for the policy."""
        message = (
            f"{what}, but {type(engine.policy).__name__} learns costs of up to "
            f"{_named(engine, largest_learnt(engine))} and learns larger ones as if they were that large; see "
            "learner.overruns. Set cost_max to the largest cost of a round, or use Adaptive, which needs none."
        )
        self._give(CLIPPED_COST, message, stacklevel + 1)

    def _give(self, kind: str, message: str, stacklevel: int) -> None:
        """Give a warning unless one of its kind was given."""
        if kind not in self._given:
            self._given.add(kind)
            warnings.warn(message, OverrunWarning, stacklevel=stacklevel + 2)


def _exceeds(engine: LearnerEngine, costs: Any, limits: Floats | float) -> bool:
    """Whether a cost exceeds its limit by more than a rounding error."""
    return bool((np.asarray(costs) > limits + NEGLIGIBLE * np.asarray(engine.problem.cost_max)).any())


def _named(engine: LearnerEngine, costs: Any) -> str:
    """Costs with the names of their resources."""
    names = zip(engine.problem.resource_names, np.asarray(costs, dtype=np.float64).tolist(), strict=True)
    return ", ".join(f"{name} {cost:g}" for name, cost in names)
