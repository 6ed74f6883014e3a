"""``BudgetEnv``: an instance as a Gymnasium environment, with the rules of ``simulate``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium.core import Env
from gymnasium.spaces import Box, Discrete

from driftsack.core.checks import of_type
from driftsack.core.decision import SKIP
from driftsack.core.errors import BudgetExhaustedError, DriftsackError, HorizonReachedError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import charge_or_stop, open_ledger, spent_amounts
from driftsack.game.units import units_of
from driftsack.game.world import draw_outcome, world_of
from driftsack.gym.observation import Observation, arm_of, observe


class BudgetEnv(Env[Observation, Any]):
    """An environment whose episodes are trials: an episode ends when a budget is exceeded or after T rounds.

    - *Actions*: 0 to m - 1 are the arms; the last action, m, is ``SKIP``.
    - *Observation*, in [0, 1]: the remaining share of each budget (d) and of the time (1), the last round's reward
      over ``reward_max`` (1) and its costs over ``cost_max`` (d).
    - *Reward*: in the problem's units. The round that exceeds a budget earns nothing and terminates the episode (the
      paper's stop rule); round T truncates it.
    - *info*: ``round``, the number of rounds played; ``spent (d,)``, without the round that exceeded a budget, and
      ``costs (d,)`` of the last round, both in the problem's units.

    ``reset(seed=s)`` gives the outcomes of trial 0 of ``simulate(..., seed=s)``; ``reset()`` continues the stream.

    Args:
        instance: The instance to play, without contexts.

    >>> import driftsack as ds
    >>> env = BudgetEnv(ds.instances.example_2(horizon=4, noise="deterministic"))
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(1)
    >>> observation, reward, terminated, truncated, info["spent"]
    (array([1.  , 0.5 , 0.75, 0.5 , 0.  , 1.  ], dtype=float32), 0.5, False, False, array([0., 1.]))
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, instance: Instance) -> None:
        of_type(instance, Instance, "instance")
        self.instance = instance
        self.action_space = Discrete(instance.arms + 1)
        self.observation_space = Box(0.0, 1.0, (2 + 2 * instance.resources,), np.float32)
        self._world, self._units = world_of(instance), units_of(instance.problem)
        self._round = -1  # before the first reset
        self._open()

    @property
    def problem(self) -> Problem:
        """The problem that a learner is given."""
        return self.instance.problem

    def _open(self) -> None:
        """Reset the ledger."""
        self._ledger = open_ledger(self.problem)
        self._overshoot = np.zeros(self.instance.resources)
        self._costs = np.zeros(self.instance.resources)
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
        return self._observed(0.0), self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one round.

        Args:
            action: An arm from 0 to m - 1, or m to skip.

        Returns:
            Observation, reward, terminated, truncated and info.
        """
        arm = arm_of(action, self.instance.arms)
        self._check_open()
        reward = 0.0
        self._costs = np.zeros(self.instance.resources)
        if arm != SKIP:
            reward = self._pull(arm)
        self._round += 1
        truncated = self._round == self.instance.horizon and not self._broken
        return self._observed(reward), reward * self._units.reward, self._broken, truncated, self._info()

    def _pull(self, arm: int) -> float:
        """Pull an arm and return its normalised reward; 0 if its costs exceed a budget, which ends the episode."""
        reward = float(draw_outcome(self._world, self._round, arm, self._costs, self.np_random))
        self._broken = not charge_or_stop(self._ledger, self._costs, self._overshoot)
        return 0.0 if self._broken else reward

    def _check_open(self) -> None:
        """Raise unless a round can begin."""
        if self._round < 0:
            raise DriftsackError("an episode must begin with reset(); call it before the first step.")
        if self._broken:
            raise BudgetExhaustedError(f"a budget was exceeded in round {self._round}; call reset() for a new episode.")
        if self._round == self.instance.horizon:
            raise HorizonReachedError(f"all {self._round} rounds have been played; call reset() for a new episode.")

    def _observed(self, reward: float) -> Observation:
        return observe(self._ledger, 1.0 - self._round / self.instance.horizon, reward, self._costs)

    def _info(self) -> dict[str, Any]:
        spent = spent_amounts(self._ledger)
        return {"round": self._round, "spent": spent, "costs": self._costs * self._units.costs}
