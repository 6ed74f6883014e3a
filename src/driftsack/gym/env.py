"""``BudgetEnv``: an instance as a Gymnasium environment, with the rules of ``simulate``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium.core import Env
from gymnasium.spaces import Box, Discrete, Space

from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.contextual import ContextualInstance
from driftsack.core.decision import SKIP
from driftsack.core.errors import BudgetExhaustedError, DriftsackError, HorizonReachedError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.contextual_world import ContextualWorld
from driftsack.game.ledger import charge_or_stop, open_ledger, spent_amounts
from driftsack.game.nature import AnyInstance, draw_outcome, for_trial, new_world, reveal
from driftsack.game.records import new_terms
from driftsack.game.units import units_of
from driftsack.gym.observation import Observation, arm_of, observe


class BudgetEnv(Env[Observation, Any]):
    """An environment whose episodes are trials: an episode ends when a budget is exceeded or after T rounds.

    - *Actions*: 0 to m - 1 are the arms; the last action, m, is ``SKIP``.
    - *Observation*, in [0, 1]: the remaining share of each budget (d) and of the time (1), the last round's reward
      over ``reward_max`` (1) and its costs over ``cost_max`` (d). With contexts, the features of the round to come (n)
      follow, in their own units; :attr:`context` has them in double precision.
    - *Reward*: in the problem's units. The round that exceeds a budget earns nothing and terminates the episode (the
      paper's stop rule); round T truncates it.
    - *info*: ``round``, the number of rounds played; ``spent (d,)``, without the round that exceeded a budget, and
      ``costs (d,)`` of the last round, both in the problem's units.

    ``reset(seed=s)`` gives the outcomes of trial 0 of ``simulate(..., seed=s)``; ``reset()`` continues the stream.

    Args:
        instance: The instance to play. One whose contexts are drawn draws them anew in each episode.

    >>> import driftsack as ds
    >>> env = BudgetEnv(ds.instances.example_2(horizon=4, noise="deterministic"))
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(1)
    >>> observation, reward, terminated, truncated, info["spent"]
    (array([1.  , 0.5 , 0.75, 0.5 , 0.  , 1.  ], dtype=float32), 0.5, False, False, array([0., 1.]))
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, instance: AnyInstance) -> None:
        if not isinstance(instance, ContextualInstance):
            of_type(instance, Instance, "instance")
        self.instance = instance
        self._world, self._units = new_world(instance), units_of(instance.problem)
        self._terms = new_terms(instance.problem)
        self.action_space = Discrete(instance.problem.arms + 1)
        self.observation_space = _space(instance)
        self._round = -1  # before the first reset
        self._open()

    @property
    def context(self) -> Floats:
        """(n,) the features of the round to come; empty without contexts."""
        return self._terms.context.copy()

    @property
    def problem(self) -> Problem:
        """The problem that a learner is given."""
        return self.instance.problem

    def _open(self) -> None:
        """Reset the ledger."""
        self._ledger = open_ledger(self.problem)
        self._overshoot = np.zeros(self.instance.problem.resources)
        self._costs = np.zeros(self.instance.problem.resources)
        self._broken = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: The seed of the outcomes; None continues the current random stream.
            options: Not used.

        Returns:
            The first observation and info.
        """
        super().reset(seed=seed, options=options)
        if seed is not None:
            self._np_random = generator(trial_seeds(seed, trial=0)[0])
        self._round = 0
        self._open()
        self._world = for_trial(self.instance, self._world, self.np_random)
        self._reveal()
        return self._observed(0.0), self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one round.

        Args:
            action: An arm from 0 to m - 1, or m to skip.

        Returns:
            Observation, reward, terminated, truncated and info.
        """
        arm = arm_of(action, self.instance.problem.arms)
        self._check_open()
        reward = 0.0
        self._costs = np.zeros(self.instance.problem.resources)
        if arm != SKIP:
            reward = self._pull(arm)
        self._round += 1
        self._reveal()
        truncated = self._round == self.instance.horizon and not self._broken
        return self._observed(reward), reward * self._units.reward, self._broken, truncated, self._info()

    def _pull(self, arm: int) -> float:
        """Pull an arm and return its normalised reward; 0 if its costs exceed a budget, which ends the episode."""
        reward = float(draw_outcome(self._world, self._round, arm, self._costs, self.np_random))
        self._broken = not charge_or_stop(self._ledger, self._costs, self._overshoot)
        return 0.0 if self._broken else reward

    def _reveal(self) -> None:
        """Write the context of the next round; after the last round it stays as it is."""
        if isinstance(self._world, ContextualWorld) and self._round < self.instance.horizon:
            reveal(self._world, self._round, self._terms)

    def _check_open(self) -> None:
        """Raise unless a round can begin."""
        if self._round < 0:
            raise DriftsackError("an episode must begin with reset(); call it before the first step.")
        if self._broken:
            raise BudgetExhaustedError(f"a budget was exceeded in round {self._round}; call reset() for a new episode.")
        if self._round == self.instance.horizon:
            raise HorizonReachedError(f"all {self._round} rounds have been played; call reset() for a new episode.")

    def _observed(self, reward: float) -> Observation:
        time_left = 1.0 - self._round / self.instance.horizon
        return observe(self._ledger, time_left, reward, self._costs, self._terms.context)

    def _info(self) -> dict[str, Any]:
        spent = spent_amounts(self._ledger)
        return {"round": self._round, "spent": spent, "costs": self._costs * self._units.costs}


def _space(instance: AnyInstance) -> Space[Observation]:
    """The space of observations: [0, 1], and the range of each feature, rounded outwards to single precision."""
    low, high = np.zeros(2 + 2 * instance.problem.resources), np.ones(2 + 2 * instance.problem.resources)
    if isinstance(instance, ContextualInstance):
        features = instance.contexts.astype(np.float32)
        low = np.append(low, np.nextafter(features.min(axis=0), np.float32(-np.inf)))
        high = np.append(high, np.nextafter(features.max(axis=0), np.float32(np.inf)))
    return Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
