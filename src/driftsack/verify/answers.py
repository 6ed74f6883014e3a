"""``Answers``: optima, prices and measures of a small instance, or the zeros of the trivial competitor."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from driftsack.benchmarks import fixed_distribution, lp_dynamic, lp_static, single_step
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.measures import Variation, variation
from driftsack.verify.statement import Case

ZERO: Final = "a solver that returns 0"


class Answers:
    """The optima, prices and measures of an instance in [0, 1], each computed when it is first read.

    All resources of the instance have the same rate. If the case is ``TRIVIAL``, optima and prices are all 0.
    """

    def __init__(self, world: Instance, case: Case = Case.STATEMENT) -> None:
        self.world = world
        self.known = case is not Case.TRIVIAL
        self.rate = float(world.problem.rate[0])

    @cached_property
    def moves(self) -> Variation:
        """V, W and the prices."""
        return variation(self.world, tolerance=1e-9)

    @cached_property
    def dynamic(self) -> float:
        """LP({mu_t}, {C_t}, T), the benchmark."""
        return lp_dynamic(self.world).value if self.known else 0.0

    @cached_property
    def even(self) -> float:
        """The sum of LP(mu_t, C_t), which spends the budget evenly."""
        return single_step(self.world).value if self.known else 0.0

    @cached_property
    def mean(self) -> float:
        """T LP(mu_bar, C_bar), on the mean rewards and costs: LP-Static."""
        return lp_static(self.world).value if self.known else 0.0

    @cached_property
    def fixed(self) -> float:
        """The fluid OPT_FD."""
        return fixed_distribution(self.world).value if self.known else 0.0

    @cached_property
    def prices(self) -> Floats:
        """(K + 2, d) the prices of every round, of LP-Dynamic and of the LP on mean rows."""
        if not self.known:
            return np.zeros((len(self.world.rewards) + 2, self.world.resources))
        rows = np.asarray(single_step(self.world).row_prices)
        others = [np.asarray(lp_dynamic(self.world).prices), np.asarray(lp_static(self.world).prices)]
        prices: Floats = np.vstack([rows, *others])
        return prices

    @property
    def row_price(self) -> float:
        """The largest price of a single round."""
        return float(self.prices[:-2].max())

    @property
    def q_bar(self) -> float:
        """The largest price of a single round or of LP-Dynamic, as the paper defines it."""
        return float(self.prices[:-1].max())

    @property
    def q_bar_full(self) -> float:
        """The largest price, including that of the LP on mean rows."""
        return float(self.prices.max())
