"""Layer 6: from a log and a budget to advice."""

from driftsack.advice.advise import Advice, advise

__all__ = ["Advice", "advise"]
