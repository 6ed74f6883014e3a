"""All that the author of a policy imports.

A policy file holds a ``NamedTuple`` state, the kernels ``choose(state, round, rng, mix, prices)`` and
``learn(state, outcome)``, and a frozen dataclass of settings that subclasses ``Policy``:

>>> import numpy as np
>>> from dataclasses import dataclass
>>> from typing import NamedTuple
>>> from driftsack.authoring import SKIP, Floats, Generator, Ints, Outcome, Policy, Problem, Round, kernel

``CONTRIBUTING.md`` shows the smallest whole policy; ``policies/sliding_window_ucb.py`` is one with a linear program.
"""

from numpy.random import Generator

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger, can_pay
from driftsack.game.protocol import STUCK, choose, learn
from driftsack.game.records import Outcome, Round, with_account, with_rate, with_time
from driftsack.lp.step import draw_from, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.numerics.simplex import OPTIMAL, Simplex, column_changed, solve
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
    "DiscountedMeans",
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
    "Simplex",
    "WindowedMeans",
    "can_pay",
    "choose",
    "column_changed",
    "discount_arm",
    "discounted_means",
    "draw",
    "draw_from",
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
    "solve",
    "upper_bound",
    "windowed_means",
    "with_account",
    "with_rate",
    "with_time",
]
