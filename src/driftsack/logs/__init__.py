"""Layer 4: logs of what was tried, read and checked, replayed, and used to judge policies that did not gather them."""

from driftsack.logs.evaluate import Evaluation, evaluate, evaluate_mix
from driftsack.logs.log import Log, check, read
from driftsack.logs.rows import BadRow
from driftsack.logs.survey import Survey, survey

__all__ = ["BadRow", "Evaluation", "Log", "Survey", "check", "evaluate", "evaluate_mix", "read", "survey"]
