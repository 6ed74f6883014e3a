"""Everything that a policy file imports.

A policy file contains a ``NamedTuple`` state, the kernels ``choose(state, round, rng, mix, prices)`` and
``learn(state, outcome)``, and a frozen dataclass of settings that subclasses ``Policy``:

>>> import numpy as np
>>> from dataclasses import dataclass
>>> from typing import NamedTuple
>>> from driftsack.authoring import SKIP, Floats, Generator, Ints, Outcome, Policy, Problem, Round, kernel

``CONTRIBUTING.md`` shows the smallest complete policy; ``policies/sliding_window_ucb.py`` uses a linear program.
"""

from numpy.random import Generator

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.bounds import Counts, RoundNumbers, index_of, within
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger, can_pay
from driftsack.game.protocol import STUCK, choose, learn
from driftsack.game.records import Outcome, Round, with_account, with_rate, with_time
from driftsack.lp.step import draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.numerics.simplex import OPTIMAL, Simplex, column_changed, solve
from driftsack.policies.parts.estimates import Estimates, discounted_estimates, planned_values, windowed_estimates
from driftsack.policies.parts.means import (
    DiscountedMeans,
    WindowedMeans,
    discount_arm,
    discounted_means,
    make_room,
    observe,
    observe_discounted,
    windowed_means,
)
from driftsack.policies.parts.pacing import Pacer, new_pacer, pace
from driftsack.policies.parts.radius import Radius, lower_bound, new_radius, upper_bound
from driftsack.policies.policy import Policy

__all__ = [
    "OPTIMAL",
    "SKIP",
    "STUCK",
    "Bools",
    "Counts",
    "DiscountedMeans",
    "Estimates",
    "Floats",
    "Generator",
    "Ints",
    "Ledger",
    "Outcome",
    "Pacer",
    "Policy",
    "Problem",
    "Radius",
    "Round",
    "RoundNumbers",
    "Simplex",
    "WindowedMeans",
    "can_pay",
    "choose",
    "column_changed",
    "discount_arm",
    "discounted_estimates",
    "discounted_means",
    "draw",
    "draw_from",
    "index_of",
    "kernel",
    "learn",
    "lower_bound",
    "make_room",
    "new_pacer",
    "new_radius",
    "new_step_lp",
    "observe",
    "observe_discounted",
    "pace",
    "planned_values",
    "solve",
    "upper_bound",
    "windowed_estimates",
    "windowed_means",
    "with_account",
    "with_rate",
    "with_time",
    "within",
]
