"""Logs of decisions and their outcomes: reading, checking, replay and off-policy evaluation.

A log has one row per round, with the columns ``time``, ``arm`` (empty if the round was skipped), ``reward``, one column
for each resource (those whose names begin with ``cost``, or those that the caller names) and, optionally,
``propensity``: the probability with which the arm was chosen, and ``context_NAME``: a feature of the request, a number
or a category. A full-information table has the outcomes of every arm in the columns ``reward:ARM`` and
``RESOURCE:ARM``.
"""

from driftsack.logs.context_value import LoggedContextValue
from driftsack.logs.doubly_robust import evaluate_rule
from driftsack.logs.evaluation import Evaluation
from driftsack.logs.importance_weights import evaluate_mix
from driftsack.logs.log import Log, check, read
from driftsack.logs.options import ReadOptions
from driftsack.logs.rejection_sampling import evaluate
from driftsack.logs.rows import BadRow
from driftsack.logs.survey import Survey, survey

__all__ = [
    "BadRow",
    "Evaluation",
    "Log",
    "LoggedContextValue",
    "ReadOptions",
    "Survey",
    "check",
    "evaluate",
    "evaluate_mix",
    "evaluate_rule",
    "read",
    "survey",
]
