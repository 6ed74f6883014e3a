"""Layer 3: one algorithm a file. A policy knows the problem, never the instance."""

from driftsack.policies.learner import Learner
from driftsack.policies.naive_ucb import NaiveUCB
from driftsack.policies.policy import Policy, from_spec
from driftsack.policies.sliding_window_ucb import SlidingWindowUCB

__all__ = ["Learner", "NaiveUCB", "Policy", "SlidingWindowUCB", "from_spec"]
