"""Past outcomes: the rounds of a log from which a learner learns before its first round."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import above_zero, floats
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError, SettingError
from driftsack.core.names import default_arm_names, default_resource_names, positions
from driftsack.core.problem import Problem
from driftsack.policies.learner.arguments import contexts_of
from driftsack.policies.policy import Policy


class PastOutcomes(Protocol):
    """The attributes of a log that ``teach`` reads; ``contexts`` (n, f) is optional."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of the resources."""

    @property
    def arm(self) -> npt.NDArray[np.int32]:
        """(n,) the arm of each round, or ``SKIP``."""

    @property
    def reward(self) -> Floats:
        """(n,) rewards."""

    @property
    def costs(self) -> Floats:
        """(n, d) costs."""

    @property
    def propensity(self) -> Floats | None:
        """(n,) the probability with which each arm was chosen, if it is known."""


class PastRounds(NamedTuple):
    """The rounds of a log that are learnt, oldest first, in the order of the problem."""

    arms: Ints  # (n,)
    probabilities: Floats  # (n,)
    rewards: Floats  # (n,)
    costs: Floats  # (n, d)
    contexts: Floats  # (n, f)


def past_rounds(policy: Policy, problem: Problem, log: PastOutcomes, half_life: float | None) -> PastRounds:
    """Return the rounds of a log that are learnt."""
    if not policy.teachable:
        raise SettingError(
            f"{type(policy).__name__} cannot learn from a log: it follows a forecast, which has no past rounds; use "
            "another policy, or put what the log shows into the forecast."
        )
    for name in ("arms", "resources", "arm", "reward", "costs"):
        if not hasattr(log, name):
            raise SettingError(f"log must be a log such as ds.logs.read returns, got {log!r:.80}.")
    # Match arms and resources by name.
    arms = positions(
        problem.arm_names, log.arms, default_arm_names(problem.arms), "the arms of the log and the problem"
    )
    default = default_resource_names(problem.resources)
    known = problem.resource_names  # the export of a campaign has the column cost_usd for its resource usd
    named = [one if one in known else one.removeprefix("cost_") for one in log.resources]
    own = named if set(named) == set(known) else log.resources
    resources = positions(own, known, default, "the resources of the log and the problem")
    # Check the outcomes.
    numbers = np.array([*arms, SKIP])[np.asarray(log.arm)]
    rewards = floats(log.reward, "rewards", (len(numbers),))
    costs = floats(np.asarray(log.costs)[:, resources], "costs", (len(numbers), problem.resources))
    if (costs < 0).any():
        raise OutOfRangeError(f"costs must be 0 or more, got {costs.min():g}.")
    chances = np.ones(len(numbers)) if log.propensity is None else np.asarray(log.propensity, dtype=np.float64)
    contexts = contexts_of(policy, problem, len(numbers), getattr(log, "contexts", None) if problem.features else None)
    # Thin out the old ones.
    used = _thinned(len(numbers), half_life)
    return PastRounds(numbers[used].astype(np.int64), chances[used], rewards[used], costs[used], contexts[used])


def _thinned(count: int, half_life: float | None) -> Bools:
    """(n,) the rounds that are used: evenly spaced, a share that halves with each half-life of age."""
    if half_life is None:
        return np.ones(count, dtype=np.bool_)
    ages = np.arange(count)[::-1]
    mass = np.cumsum(0.5 ** (ages / above_zero(half_life, "half_life"))[::-1])[::-1]  # from each round to the last
    used: Bools = np.floor(mass) > np.floor(np.append(mass[1:], 0.0))
    return used
