"""Advice from a log and a budget: is there drift, does it matter, which policy to use, and what is budget worth?"""

from driftsack.advice.advice import Advice
from driftsack.advice.advise import advise
from driftsack.advice.settings import AdviseSettings

__all__ = ["Advice", "AdviseSettings", "advise"]
