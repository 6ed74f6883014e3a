"""driftsack: budget-constrained bandits for non-stationary environments (bandits with knapsacks under drift).

The names below are the ones that most programs need. Every policy is in ``driftsack.policies``, every error in
``driftsack.errors``, and all that the author of a policy imports in ``driftsack.authoring``. The modules ``oco``,
``plot``, ``gym``, ``sweeps``, ``paper``, ``verify`` and ``bench`` are loaded when they are first used.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from driftsack import policies  # isort: skip  (before authoring, which a policy may import)
from driftsack import authoring, benchmarks, datasets, instances, logs, lp, measures, theory
from driftsack.advice import Advice, advise
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
    from driftsack import bench, gym, oco, paper, plot, sweeps, verify

__all__ = [
    "SKIP",
    "Adaptive",
    "Advice",
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
    "bench",
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

_LAZY = ("bench", "gym", "oco", "paper", "plot", "sweeps", "verify")
"""Modules that most programs do not use; each is imported when it is first asked for."""
_MOVED = dict.fromkeys(
    (
        "AlwaysArm",
        "BanditOverBandit",
        "DiscountedUCB",
        "DualDescent",
        "DynamicOracle",
        "Exp3BwK",
        "LagrangeBwK",
        "Master",
        "PrimalDualBwK",
        "StaticOracle",
        "UCBBwK",
        "UniformRandom",
    ),
    "policies",
)
"""Names of earlier releases, and the module that has them now."""


def __getattr__(name: str) -> Any:
    """Load a lazy module, or find a name of an earlier release with a warning."""
    if name in _LAZY:
        return import_module(f"driftsack.{name}")
    if name in _MOVED:
        place = f"driftsack.{_MOVED[name]}"
        warnings.warn(
            f"driftsack.{name} is now {place}.{name}; the old name will be removed.", DeprecationWarning, stacklevel=2
        )
        return getattr(import_module(place), name)
    raise AttributeError(f"module 'driftsack' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Every public name, the lazy modules included."""
    return sorted(__all__)
