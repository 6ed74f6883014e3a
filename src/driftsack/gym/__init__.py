"""Gymnasium environments for instances, and adapters between policies and agents (extra ``gym``).

Importing this package registers the paper's examples, ``driftsack/Example1-v0`` to ``driftsack/Example4-v0``, and
``driftsack/LinearContexts-v0``, whose observations have the features of each request.

>>> import gymnasium
>>> import driftsack.gym
>>> env = gymnasium.make("driftsack/Example2-v0", horizon=100)
>>> env.action_space, env.observation_space.shape
(Discrete(3), (6,))
"""

from driftsack.core.errors import SettingError

try:
    import gymnasium as gymnasium
except ImportError as error:
    raise SettingError("driftsack.gym needs Gymnasium: pip install 'driftsack[gym]'.") from error

from driftsack.gym.adapters import AgentPolicy, play
from driftsack.gym.env import BudgetEnv
from driftsack.gym.registration import EXAMPLES, register_examples

register_examples()

__all__ = ["EXAMPLES", "AgentPolicy", "BudgetEnv", "play", "register_examples"]
