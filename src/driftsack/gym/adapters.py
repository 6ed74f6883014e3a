"""Adapters: run a policy of the library in an environment, or a Gymnasium agent in ``simulate``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.core import Env
from numpy.random import SeedSequence

from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, sequence, trial_seeds
from driftsack.game.ledger import charge, open_ledger
from driftsack.game.units import units_of
from driftsack.gym.env import BudgetEnv
from driftsack.gym.observation import NO_CONTEXT, Observation, arm_of, observe
from driftsack.policies.policy import Policy

Act = Callable[[Observation], Any]


def play(policy: Policy, env: Env[Any, Any], seed: int = 0) -> float:
    """Play one episode of a :class:`BudgetEnv`, which may be wrapped, with a policy.

    The same seed gives trial 0 of ``simulate``. If a wrapper changes rewards, the policy observes the changed ones,
    and the total is their sum.

    Args:
        policy: The policy that chooses the actions.
        env: The environment, a ``BudgetEnv`` or a wrapper around one.
        seed: The seed of the outcomes and of the policy.

    Returns:
        The total reward.

    >>> import driftsack as ds
    >>> world = ds.instances.example_2(horizon=200)
    >>> policy = ds.NaiveUCB(scale=0.1)
    >>> play(policy, BudgetEnv(world), seed=3) == ds.simulate(world, policy, trials=1, seed=3).reward.item()
    True
    """
    of_type(policy, Policy, "policy")
    inner = getattr(env, "unwrapped", None)
    if not isinstance(inner, BudgetEnv):
        raise SettingError(f"env must be a BudgetEnv, got {env!r:.80}; build one with BudgetEnv(instance).")
    learner = policy.start(inner.problem, seed=trial_seeds(seed, trial=0)[1])
    env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        decision = learner.ask(context=inner.context if inner.problem.features else None)
        action = inner.problem.arms if decision.skipped else decision.arm
        _, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        over = terminated or truncated
        if not over and not decision.skipped:
            learner.tell(decision, reward=float(reward), costs=info["costs"])
    return total


@dataclass(frozen=True)
class AgentPolicy:
    """Adapts a Gymnasium agent to a policy for ``simulate``, with the observations of a ``BudgetEnv``.

    Attributes:
        act: ``act(observation)`` returns an action. An agent with memory or randomness should have a method
            ``reset(seed)``, which is called with an ``int`` at the beginning of each trial.

    >>> import driftsack as ds
    >>> thrifty = AgentPolicy(lambda seen: 1 if seen[:2].min() >= seen[2] else 2)  # action 2 skips
    >>> run = ds.simulate(ds.instances.example_2(horizon=1_000, noise="deterministic"), thrifty, trials=1)
    >>> float(run.reward[0]), int(run.stopping_time[0])
    (375.0, 1001)
    """

    act: Act

    def __post_init__(self) -> None:
        if not callable(self.act):
            raise SettingError(f"act must be a function from an observation to an action, got {self.act!r:.80}.")

    def start(self, problem: Problem, seed: Seed = 0) -> AgentLearner:
        """Start the agent on a problem.

        Args:
            problem: The problem to play.
            seed: The seed of the agent.

        Returns:
            A learner with ``ask`` and ``tell`` for one trial.
        """
        return AgentLearner(self.act, problem, sequence(seed))


class AgentLearner:
    """The agent in one trial."""

    def __init__(self, act: Act, problem: Problem, seed: SeedSequence) -> None:
        self._act = act
        self._problem, self._units = problem, units_of(problem)
        self._ledger = open_ledger(problem)
        self._round = 0
        self._forget()
        if callable(restart := getattr(act, "reset", None)):
            restart(int(seed.generate_state(1)[0]))

    def _forget(self) -> None:
        """Reset the last outcome to zero, as before the first round and after a skipped one."""
        self._reward, self._costs = 0.0, np.zeros(self._problem.resources)

    def ask(self, context: Floats = NO_CONTEXT) -> int:
        """Return the arm of the next round, or ``SKIP``.

        Args:
            context: (n,) the features of the round.
        """
        time_left = 1.0 - self._round / self._problem.horizon
        seen = observe(self._ledger, time_left, self._reward, self._costs, context)
        arm = arm_of(self._act(seen), self._problem.arms)
        self._round += 1
        if arm == SKIP:
            self._forget()
        return arm

    def tell(self, _arm: int, reward: float, costs: npt.ArrayLike) -> None:
        """Store the outcome for the next observation."""
        self._reward, self._costs = reward / self._units.reward, np.asarray(costs) / self._units.costs
        charge(self._ledger, self._costs)
