"""``ConvexProblem``: losses and constraints over time, and the domain of the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import at_least_zero, of_type
from driftsack.core.errors import SettingError, ShapeError
from driftsack.oco.domains import Domain
from driftsack.oco.families import Family, Table


@dataclass(frozen=True, eq=False)
class ConvexProblem:
    r"""A problem of online convex optimisation: choose x in the domain each round, then observe the round's functions.

    These are a loss :math:`f_t` and d constraints :math:`g_t`. The goal is a small :math:`\sum_t f_t(x_t)` with
    :math:`\sum_t g_{t,i}(x_t) \le 0` in the long run.

    Attributes:
        losses: The losses, one function per round.
        constraints: The constraints, d functions per round: a family or several, kept as a tuple.
        domain: The set of decisions.
        noise: The size s of random perturbations of the constraints, 0 for none. With noise the given constraints are
            means (the stochastic setting of the paper's last appendix): in each round every constraint is observed with
            :math:`\varepsilon^\top x + \varepsilon_0` added, all ε independent and uniform on [-s, s].

    >>> from driftsack.oco import Box, Linear
    >>> losses, constraint = Linear([[-1.0]], phase=[0] * 100), Linear([[1.0]], [[-0.5]], phase=[0] * 100)
    >>> problem = ConvexProblem(losses, constraint, Box(0, 1))
    >>> problem
    ConvexProblem(100 rounds, 1 variable, 1 constraint)
    """

    losses: Family
    constraints: Any
    domain: Domain
    noise: float = 0.0

    def __post_init__(self) -> None:
        of_type(self.losses, Family, "losses")
        of_type(self.domain, Domain, "domain")
        given = self.constraints
        families = tuple(given) if isinstance(given, Sequence) else (given,)
        if not families:
            raise SettingError("constraints must be a family or several, got none; Linear([[0, ...]], -1) never binds.")
        for family in families:
            of_type(family, Family, "constraints")
        if self.losses.count != 1:
            raise ShapeError(f"losses must hold one function per round, got {self.losses.count}.")
        for family in families:
            if family.horizon != self.horizon:
                raise ShapeError(f"losses have {self.horizon} rounds, constraints {family.horizon}; they must agree.")
        for name, family in [("losses", self.losses), *(("constraints", family) for family in families)]:
            if family.dimension != self.domain.dimension:
                raise ShapeError(
                    f"the domain has {self.domain.dimension} variables, {name} {family.dimension}; they must agree."
                )
        object.__setattr__(self, "constraints", families)
        object.__setattr__(self, "noise", at_least_zero(self.noise, "noise"))

    @property
    def horizon(self) -> int:
        """The number T of rounds."""
        return self.losses.horizon

    @property
    def dimension(self) -> int:
        """The number n of variables."""
        return self.domain.dimension

    @property
    def count(self) -> int:
        """The number d of constraints."""
        return sum(family.count for family in self.constraints)

    @property
    def tabled(self) -> bool:
        """Whether all functions are given by arrays, as compiled loops and convex programs require."""
        return all(isinstance(family, Table) for family in (self.losses, *self.constraints))

    def mean(self, x: Floats) -> tuple[Floats, Floats]:
        """Evaluate the mean loss and the mean constraints.

        Args:
            x: (n,) the point.

        Returns:
            The values (1 + d,) and gradients (1 + d, n) at x, those of the loss first.
        """
        parts = [family.mean(x) for family in (self.losses, *self.constraints)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def evaluate(self, t: int, x: Floats) -> tuple[Floats, Floats]:
        """Evaluate the loss and the constraints of one round, without noise.

        Args:
            t: The round, from 0.
            x: (n,) the point.

        Returns:
            The values (1 + d,) and gradients (1 + d, n) at x, those of the loss first.
        """
        parts = [family.evaluate(t, x) for family in (self.losses, *self.constraints)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def __repr__(self) -> str:
        def counted(number: int, word: str) -> str:
            return f"{number:,} {word}{'' if number == 1 else 's'}"

        parts = [(self.horizon, "round"), (self.dimension, "variable"), (self.count, "constraint")]
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"ConvexProblem({', '.join(counted(*part) for part in parts)}{noise})"
