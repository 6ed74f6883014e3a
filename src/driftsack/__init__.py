"""driftsack: budget-constrained bandits for non-stationary environments (bandits with knapsacks under drift).

The names below are the ones that most programs need. Every policy is in ``driftsack.policies``, every error in
``driftsack.errors``, and everything that the author of a policy imports in ``driftsack.authoring``. The modules
``oco``, ``plot``, ``gym``, ``sweeps``, ``paper`` and ``verify`` are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from driftsack import policies  # isort: skip  (before authoring, which a policy may import)
from driftsack import authoring, benchmarks, datasets, instances, logs, lp, measures, theory
from driftsack.advice import Advice, AdviseSettings, advise
from driftsack.core import SKIP, ContextualInstance, Decision, Encoder, Instance, Problem, errors
from driftsack.core.errors import DriftsackError
from driftsack.core.release import __version__
from driftsack.measures import variation
from driftsack.policies import (
    Adaptive,
    DetectAndRestart,
    DisjointBwK,
    Learner,
    LinearBwK,
    NaiveUCB,
    PlanWithForecast,
    Policy,
    SlidingWindowUCB,
    SpendingPlan,
    ThompsonBwK,
)
from driftsack.simulation import Run, gather, simulate

if TYPE_CHECKING:
    from driftsack import gym, oco, paper, plot, sweeps, verify

__all__ = [
    "SKIP",
    "Adaptive",
    "Advice",
    "AdviseSettings",
    "ContextualInstance",
    "Decision",
    "DetectAndRestart",
    "DisjointBwK",
    "DriftsackError",
    "Encoder",
    "Instance",
    "Learner",
    "LinearBwK",
    "NaiveUCB",
    "PlanWithForecast",
    "Policy",
    "Problem",
    "Run",
    "SlidingWindowUCB",
    "SpendingPlan",
    "ThompsonBwK",
    "__version__",
    "advise",
    "authoring",
    "benchmarks",
    "datasets",
    "errors",
    "gather",
    "gym",
    "instances",
    "logs",
    "lp",
    "measures",
    "oco",
    "paper",
    "plot",
    "policies",
    "simulate",
    "sweeps",
    "theory",
    "variation",
    "verify",
]

_LAZY = ("gym", "oco", "paper", "plot", "sweeps", "verify")
"""Modules that most programs do not use; each is imported on first use."""


def __getattr__(name: str) -> Any:
    """Import a lazy module on first use."""
    if name in _LAZY:
        return import_module(f"driftsack.{name}")
    raise AttributeError(f"module 'driftsack' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Every public name, the lazy modules included."""
    return sorted(__all__)
