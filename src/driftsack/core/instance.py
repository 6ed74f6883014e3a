"""``Instance``: a problem and its unknown means, stored as K distinct rows and the row of each round."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from driftsack.core import file_format
from driftsack.core.arrays import Floats, Ints, Phase
from driftsack.core.checks import floats, frozen, one_of, vector, whole, within
from driftsack.core.errors import FileFormatError, OutOfRangeError, ShapeError
from driftsack.core.floors import FloorLike, checked_floors
from driftsack.core.names import Amounts, default_arm_names, default_resource_names, positions
from driftsack.core.problem import Problem
from driftsack.core.worlds import Sizes, costs_in_units, in_units, means_in_range, positions_of_rounds

Noise = Literal["deterministic", "bernoulli", "uniform", "beta", "lognormal"]
NOISES: tuple[Noise, ...] = ("deterministic", "bernoulli", "uniform", "beta", "lognormal")
MOST_ROUNDS = 2**28  # of an instance that is read by ``from_dict``
_VERSION = 1


@dataclass(frozen=True, eq=False)
class Instance(Sizes):
    r"""Mean rewards :math:`\mu_t` and mean costs :math:`C_t` of T rounds, in the problem's units, and the noise.

    Round t (from 0) has the means ``rewards[phase[t]]`` and ``costs[phase[t]]``, so an instance with two phases of
    five million rounds is stored as two rows. Reward and costs of a round are drawn independently; each noise keeps
    outcomes in ``[0, max]`` with the right mean:

    - ``"deterministic"``: the mean itself;
    - ``"bernoulli"``: max with probability mean/max, else 0;
    - ``"uniform"``: uniform on the widest interval in [0, max] centred at the mean;
    - ``"beta"``: max times Beta(4 mean/max, 4 (1 - mean/max));
    - ``"lognormal"``: rewards as with ``"bernoulli"``; a cost is :math:`\min(\max, s e^Z)`, Z standard normal, with the
      scale s that gives the capped cost its mean. Costs are heavy-tailed, like prices and latencies.

    Build one with :meth:`from_arrays`, :meth:`piecewise`, :meth:`stationary` or :meth:`from_function`.

    Attributes:
        problem: The problem that a learner is given: horizon, arms, budgets and units.
        rewards: (K, m) mean rewards of the distinct rows.
        costs: (K, d, m) mean costs of the distinct rows.
        phase: (T,) the row of each round.
        noise: ``"deterministic"``, ``"bernoulli"``, ``"uniform"``, ``"beta"`` or ``"lognormal"``.
        rounds: (K,) the number of rounds of each row; computed.

    >>> world = Instance.piecewise(
    ...     rewards=[[0.5, 0.2], [0.1, 0.6]], costs=[[[0.5, 0.5]], [[0.5, 0.5]]], lengths=[60, 40], budget=30
    ... )
    >>> world.horizon, world.arms, world.resources, len(world.rewards)
    (100, 2, 1, 2)
    """

    problem: Problem
    rewards: Floats
    costs: Floats
    phase: Phase
    noise: Noise = "bernoulli"
    rounds: Ints = field(init=False)

    def __post_init__(self) -> None:
        one_of(self.noise, "noise", NOISES)
        rewards = floats(self.rewards, "rewards", (None, self.arms))
        costs = floats(self.costs, "costs", (len(rewards), self.resources, self.arms))
        rewards, costs = means_in_range(self.problem, rewards, costs)
        phase = positions_of_rounds(self.phase, "phase", self.horizon, len(rewards))
        object.__setattr__(self, "rewards", frozen(rewards))
        object.__setattr__(self, "costs", frozen(costs))
        object.__setattr__(self, "phase", phase)
        object.__setattr__(self, "rounds", frozen(np.bincount(phase, minlength=len(rewards))))

    def __repr__(self) -> str:
        """Show the sizes instead of the arrays."""
        rows = f"{len(self.rewards):,} distinct row{'s' * (len(self.rewards) != 1)}"
        return f"Instance({self.problem}, {rows}, noise={self.noise!r})"

    def __eq__(self, other: object) -> bool:
        """Compare problem, means, phases and noise."""
        return isinstance(other, Instance) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[Any, ...]:
        """The values that equality and hashing use."""
        arrays = (self.rewards, self.costs, self.phase)
        return (self.problem, self.noise, *((array.shape, array.tobytes()) for array in arrays))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle through the constructor, which checks everything and makes the arrays read-only."""
        return type(self), (self.problem, self.rewards, self.costs, self.phase, self.noise)

    def to_dict(self) -> dict[str, Any]:
        """Return the instance as plain data for :meth:`from_dict`.

        Returns:
            The problem, the distinct rows, the phases as pairs [row, number of rounds], and the noise.
        """
        starts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(self.phase)), [self.horizon]])
        return {
            "problem": self.problem.to_dict(),
            "rewards": self.rewards.tolist(),
            "costs": self.costs.tolist(),
            "runs": np.column_stack([self.phase[starts[:-1]], np.diff(starts)]).tolist(),
            "noise": self.noise,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Instance:
        """Build an instance from plain data.

        Args:
            content: The result of :meth:`to_dict`.
        """
        names = {"problem", "rewards", "costs", "runs", "noise"}
        if set(content) != names:
            raise ShapeError(f"an instance needs {', '.join(sorted(names))}, got {', '.join(sorted(content))}.")
        pairs = floats(content["runs"], "runs", (None, 2))
        runs = within(pairs, 0.0, 2**31 - 1.0, "runs").astype(np.int32)
        if (runs != pairs).any():
            raise OutOfRangeError(f"runs must be integers, got {content['runs']!r:.80}.")
        problem, rounds = Problem.from_dict(content["problem"]), int(runs[:, 1].sum(dtype=np.int64))
        if rounds != problem.horizon or rounds > MOST_ROUNDS:
            raise ShapeError(f"the rounds of all runs must sum to {min(problem.horizon, MOST_ROUNDS)}, got {rounds}.")
        phase = np.repeat(runs[:, 0], runs[:, 1])
        return cls(problem, content["rewards"], content["costs"], phase, content["noise"])

    @property
    def unit_rewards(self) -> Floats:
        """(K, m) mean rewards, normalised to [0, 1]."""
        return in_units(self.problem, self.rewards)

    @property
    def unit_costs(self) -> Floats:
        """(K, d, m) mean costs, normalised to [0, 1]."""
        return costs_in_units(self.problem, self.costs)

    def with_floor(
        self, floor: FloorLike, minimise: str | int = 0, budget: Mapping[str, float] | None = None
    ) -> Instance:
        """Return the same environment with another goal: to minimise the cost of a resource subject to floors.

        Args:
            floor: The minimum mean reward, or the floors by name; see :class:`~driftsack.Problem`.
            minimise: The name or number of the resource whose cost is minimised.
            budget: Other budgets than those of the instance, by name. Without an entry the minimised resource has
                none.

        >>> world = Instance.stationary([0.5, 0.9], [[0.1, 0.6]], horizon=500, budget=500)
        >>> world.with_floor(0.8).problem
        Problem(horizon=500, arms=2, reward_max=1.0, cost_max=(1.0,), minimise='cost_0', floor={'reward': 0.8})
        """
        own = self.problem
        names = own.resource_names
        goal = minimise if isinstance(minimise, str) else names[whole(minimise, "minimise", 0, len(names) - 1)]
        kept = dict(zip(names, own.budget, strict=True)) | {goal: np.inf} | dict(budget or {})
        amounts = tuple(float(kept[name]) for name in names)
        checked = checked_floors(floor, own.arm_names, own.reward_max)
        return replace(self, problem=replace(own, budget=amounts, minimise=goal, floor=checked))

    def arranged_for(self, problem: Problem, name: str = "instance") -> Instance:
        """Return the instance with its arms and resources in the order of another problem, matched by name.

        Args:
            problem: The problem whose order is used; it may differ in horizon, budget and units.
            name: The name of this instance in error messages.

        Returns:
            The instance with its own horizon, budget and units.

        Raises:
            NamesError: The names differ. Without names, arms and resources are matched by number.

        >>> world = Instance.stationary([0.2, 0.8], [[0.1, 0.5]], horizon=9, budget=3, arm_names=["small", "large"])
        >>> world.arranged_for(Problem(horizon=9, arms=["large", "small"], budget=3)).rewards
        array([[0.8, 0.2]])
        """
        # Match arms and resources by name.
        own = self.problem
        arms, resources = (
            positions(given, wanted, default, f"the {kind} of the {name} and of the problem")
            for kind, given, wanted, default in (
                ("arms", own.arm_names, problem.arm_names, default_arm_names(own.arms)),
                ("resources", own.resource_names, problem.resource_names, default_resource_names(own.resources)),
            )
        )
        if arms == sorted(arms) and resources == sorted(resources):
            return self
        # Permute the problem and the means.
        arranged = replace(
            own,
            budget=tuple(own.budget[j] for j in resources),
            cost_max=tuple(own.cost_max[j] for j in resources),
            arm_names=problem.arm_names,
            resource_names=problem.resource_names,
        )
        costs = self.costs[:, resources][:, :, arms]
        return Instance(arranged, self.rewards[:, arms], costs, self.phase, self.noise)

    @classmethod
    def from_arrays(
        cls,
        rewards: npt.ArrayLike,
        costs: npt.ArrayLike,
        budget: Amounts,
        noise: Noise = "bernoulli",
        reward_max: float = 1.0,
        cost_max: Amounts = 1.0,
        arm_names: Sequence[str] | None = None,
        resource_names: Sequence[str] | None = None,
    ) -> Instance:
        """Build an instance from one row per round; equal consecutive rows are merged.

        Args:
            rewards: (T, m) mean rewards.
            costs: (T, d, m) mean costs.
            budget: The budget of each resource, by name or in order; a single number applies to all of them.
            noise: The distribution of outcomes around their means; see the class.
            reward_max: The maximum reward of a round.
            cost_max: The maximum cost of a round in each resource, by name or in order; a single number applies to all
                of them.
            arm_names: The names of the arms, in the order of ``rewards``.
            resource_names: The names of the resources, in the order of ``costs``. Default: the names in ``budget``.
        """
        gains = floats(rewards, "rewards", (None, None))
        uses = floats(costs, "costs", (len(gains), None, gains.shape[1]))
        if len(gains) == 0:
            raise ShapeError("rewards must hold at least one round, got none.")
        # Keep the first row of each run of equal rows.
        changed = (gains[1:] != gains[:-1]).any(axis=1) | (uses[1:] != uses[:-1]).any(axis=(1, 2))
        first = np.concatenate([[True], changed])
        return cls._build(
            gains[first],
            uses[first],
            np.cumsum(first) - 1,
            budget,
            noise,
            reward_max,
            cost_max,
            arm_names,
            resource_names,
        )

    @classmethod
    def piecewise(
        cls,
        rewards: npt.ArrayLike,
        costs: npt.ArrayLike,
        lengths: Sequence[int],
        budget: Amounts,
        noise: Noise = "bernoulli",
        reward_max: float = 1.0,
        cost_max: Amounts = 1.0,
        arm_names: Sequence[str] | None = None,
        resource_names: Sequence[str] | None = None,
    ) -> Instance:
        """Build an instance from phases with constant means.

        Args:
            rewards: (K, m) mean rewards of each phase.
            costs: (K, d, m) mean costs of each phase.
            lengths: (K,) the number of rounds of each phase.
            budget: As in :meth:`from_arrays`.
            noise: As in :meth:`from_arrays`.
            reward_max: As in :meth:`from_arrays`.
            cost_max: As in :meth:`from_arrays`.
            arm_names: As in :meth:`from_arrays`.
            resource_names: As in :meth:`from_arrays`.
        """
        gains = floats(rewards, "rewards", (None, None))
        uses = floats(costs, "costs", (len(gains), None, gains.shape[1]))
        if np.shape(lengths) != (len(gains),):
            raise ShapeError(f"lengths must have shape ({len(gains)},), got {lengths!r:.80}.")
        rounds = np.array([whole(length, "each length", at_least=0) for length in lengths])
        kept = rounds > 0
        phase = np.repeat(np.arange(kept.sum()), rounds[kept])
        return cls._build(
            gains[kept], uses[kept], phase, budget, noise, reward_max, cost_max, arm_names, resource_names
        )

    @classmethod
    def stationary(
        cls,
        rewards: npt.ArrayLike,
        costs: npt.ArrayLike,
        horizon: int,
        budget: Amounts,
        noise: Noise = "bernoulli",
        reward_max: float = 1.0,
        cost_max: Amounts = 1.0,
        arm_names: Sequence[str] | None = None,
        resource_names: Sequence[str] | None = None,
    ) -> Instance:
        """Build a stationary instance.

        Args:
            rewards: (m,) mean rewards.
            costs: (d, m) mean costs.
            horizon: The number of rounds.
            budget: As in :meth:`from_arrays`.
            noise: As in :meth:`from_arrays`.
            reward_max: As in :meth:`from_arrays`.
            cost_max: As in :meth:`from_arrays`.
            arm_names: As in :meth:`from_arrays`.
            resource_names: As in :meth:`from_arrays`.
        """
        gains = floats(rewards, "rewards", (None,))
        uses = floats(costs, "costs", (None, len(gains)))
        whole(horizon, "horizon", at_least=1)
        return cls.piecewise(
            gains[None], uses[None], [horizon], budget, noise, reward_max, cost_max, arm_names, resource_names
        )

    @classmethod
    def from_function(
        cls,
        function: Callable[[int], tuple[npt.ArrayLike, npt.ArrayLike]],
        horizon: int,
        budget: Amounts,
        noise: Noise = "bernoulli",
        reward_max: float = 1.0,
        cost_max: Amounts = 1.0,
        arm_names: Sequence[str] | None = None,
        resource_names: Sequence[str] | None = None,
    ) -> Instance:
        """Build an instance from a function of the round.

        Args:
            function: ``function(t)`` returns the mean rewards (m,) and the mean costs (d, m) of round t, from 1.
            horizon: The number of rounds.
            budget: As in :meth:`from_arrays`.
            noise: As in :meth:`from_arrays`.
            reward_max: As in :meth:`from_arrays`.
            cost_max: As in :meth:`from_arrays`.
            arm_names: As in :meth:`from_arrays`.
            resource_names: As in :meth:`from_arrays`.
        """
        rows: list[Any] = [function(t) for t in range(1, whole(horizon, "horizon", at_least=1) + 1)]
        if any(not isinstance(row, tuple) or len(row) != 2 for row in rows):
            raise ShapeError(f"function(t) must return a pair (rewards, costs), got {rows[0]!r:.80}.")
        rewards, costs = [row[0] for row in rows], [row[1] for row in rows]
        return cls.from_arrays(rewards, costs, budget, noise, reward_max, cost_max, arm_names, resource_names)

    @classmethod
    def _build(
        cls,
        rewards: Floats,
        costs: Floats,
        phase: npt.NDArray[Any],
        budget: Amounts,
        noise: Noise,
        reward_max: float,
        cost_max: Amounts,
        arm_names: Sequence[str] | None,
        resource_names: Sequence[str] | None,
    ) -> Instance:
        """Build the problem and the instance from checked arrays."""
        if not isinstance(budget, Mapping):
            budget = vector(budget, "budget", costs.shape[1])  # one number applies to every resource, as in the paper
        problem = Problem(len(phase), rewards.shape[1], budget, reward_max, cost_max, arm_names, resource_names)
        return cls(problem, rewards, costs, phase, noise)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the instance to one ``.npz`` file.

        Args:
            path: The file to write.
        """
        content = {"problem": self.problem.to_dict(), "noise": self.noise}
        arrays: dict[str, npt.NDArray[Any]] = {"rewards": self.rewards, "costs": self.costs, "phase": self.phase}
        file_format.write(path, "instance", _VERSION, content, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Instance:
        """Read an instance from a file written by :meth:`save`.

        Args:
            path: The file to read.
        """
        content, arrays = file_format.read(path, "instance", _VERSION)
        try:
            return cls(Problem.from_dict(content["problem"]), noise=content["noise"], **arrays)
        except Exception as error:  # values of wrong types raise many kinds of errors
            raise FileFormatError(f"{path} contains an inconsistent instance: {error}") from error
