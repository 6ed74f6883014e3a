"""``Learner``: a policy started on a problem."""

from driftsack.policies.learner.learner import Learner as Learner
