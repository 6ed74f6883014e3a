r"""``ContextualInstance``: a problem with contexts, and the unknown means of every arm as functions of the context.

Round t shows the context :math:`x_{c_t}` and has the means of its phase :math:`k_t` at that context,

.. math:: \mu_{t,i} = \theta_{k_t,i}^\top (x_{c_t}, 1) \;\text{(linear, clipped to } [0, \max]), \qquad
          \max \cdot \sigma(\theta_{k_t,i}^\top (x_{c_t}, 1)) \;\text{(logistic)}, \qquad
          M_{k_t, c_t, i} \;\text{(by table)},

and likewise for each cost. The means change from phase to phase, and so does the distribution of contexts if given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints, Phase
from driftsack.core.checks import flag, floats, frozen, of_type, one_of, vector, whole, within
from driftsack.core.encoder import LARGEST_FEATURE, Encoder, checked_context
from driftsack.core.errors import OutOfRangeError, SettingError, ShapeError
from driftsack.core.names import Amounts
from driftsack.core.problem import Problem, features_of
from driftsack.core.seeding import generator
from driftsack.core.worlds import Sizes, means_in_range, positions_of_rounds

MEANS: Final = ("table", "linear", "logistic")
TABLE: Final = 0
LINEAR: Final = 1
NOISES: Final = ("deterministic", "bernoulli", "uniform", "beta")
BLOCK: Final = 2_048  # rows per matrix product: fits into the CPU cache and keeps BLAS single-threaded
Contexts = npt.ArrayLike | Sequence[Mapping[str, Any]] | Callable[[Generator, int], npt.ArrayLike]
"""(N, n) numbers, one mapping per context, a data frame, or a function ``contexts(rng, N)`` that draws contexts."""


@dataclass(frozen=True, eq=False)
class ContextualInstance(Sizes):
    """An environment for simulation: contexts, means that depend on them, and the noise.

    Build one with :meth:`by_table`, for example from a log with the outcomes of every arm, or with :meth:`linear`.

    Attributes:
        problem: The problem that a learner is given; it has features.
        contexts: (N, n) the distinct contexts.
        rewards: (K, N, m) mean rewards of each phase, context and arm; or (K, m, n + 1) coefficients, intercepts last.
        costs: (K, N, d, m) mean costs; or (K, d, m, n + 1) coefficients.
        phase: (T,) the phase of each round.
        order: (T,) the context of each round, the same in every trial; None if each trial draws its contexts.
        weights: (K, N) the probabilities of the contexts in each phase; None if contexts are drawn
            uniformly or come in order.
        means: ``"table"``, ``"linear"`` or ``"logistic"``.
        noise: ``"deterministic"``, ``"bernoulli"``, ``"uniform"`` or ``"beta"``, as in :class:`Instance`.
        rounds: (K,) the number of rounds of each phase; computed.

    >>> world = ContextualInstance.by_table(
    ...     contexts=np.eye(2), rewards=[[0.9, 0.1], [0.2, 0.8]], costs=[[[0.5, 0.5]]] * 2, budget=30, horizon=100
    ... )
    >>> world.horizon, world.arms, world.resources, world.problem.features
    (100, 2, 1, 2)
    """

    problem: Problem
    contexts: Floats
    rewards: Floats
    costs: Floats
    phase: Phase
    order: Phase | None = None
    weights: Floats | None = None
    means: str = "table"
    noise: str = "bernoulli"
    rounds: Ints = field(init=False)

    def __post_init__(self) -> None:
        of_type(self.problem, Problem, "problem")
        if not self.problem.features:
            raise SettingError(
                "an instance with contexts needs a problem with features; declare Problem(features=...)."
            )
        one_of(self.means, "means", MEANS)
        one_of(self.noise, "noise", NOISES)
        # Check the arrays against the problem and against each other.
        contexts = floats(self.contexts, "contexts", (None, self.problem.features))
        contexts = within(contexts, -LARGEST_FEATURE, LARGEST_FEATURE, "contexts", "; use another unit")
        if not contexts.size:
            raise ShapeError(f"contexts must hold at least one context with features, got shape {contexts.shape}.")
        rewards, costs = self._checked_means(len(contexts))
        phase = positions_of_rounds(self.phase, "phase", self.horizon, len(rewards))
        if self.order is not None:
            order = positions_of_rounds(self.order, "order", self.horizon, len(contexts))
            object.__setattr__(self, "order", order)
        if self.weights is not None:
            object.__setattr__(self, "weights", self._checked_weights(len(rewards), len(contexts)))
        # Store read-only copies.
        for name, value in (("contexts", contexts), ("rewards", rewards), ("costs", costs)):
            object.__setattr__(self, name, frozen(value))
        object.__setattr__(self, "phase", phase)
        object.__setattr__(self, "rounds", frozen(np.bincount(phase, minlength=len(rewards))))

    def _checked_means(self, count: int) -> tuple[Floats, Floats]:
        """Return the means or the coefficients after checking their shapes and ranges."""
        arms, resources, features = self.arms, self.resources, self.problem.features
        if self.means != "table":
            rewards = floats(self.rewards, "coefficients of rewards", (None, arms, features + 1))
            return rewards, floats(self.costs, "coefficients of costs", (len(rewards), resources, arms, features + 1))
        rewards = floats(self.rewards, "rewards", (None, count, arms))
        costs = floats(self.costs, "costs", (len(rewards), count, resources, arms))
        return means_in_range(self.problem, rewards, costs)

    def _checked_weights(self, phases: int, count: int) -> Floats:
        """Return the weights as (K, N) probabilities."""
        if self.order is not None:
            raise SettingError("contexts come in order or are drawn with weights, got both; give one of them.")
        weights = within(floats(self.weights, "weights", (phases, count)), 0.0, np.inf, "weights")
        if (weights.sum(axis=1) <= 0.0).any():
            raise OutOfRangeError("the weights of a phase must not all be 0.")
        return frozen(weights / weights.sum(axis=1, keepdims=True))

    def __repr__(self) -> str:
        """Show the sizes instead of the arrays."""
        kind = "in order" if self.order is not None else "drawn"
        phases = f"{len(self.rewards):,} phase{'s' * (len(self.rewards) != 1)}"
        sizes = f"{len(self.contexts):,} contexts {kind}, {phases}"
        return f"ContextualInstance({self.problem}, {sizes}, means={self.means!r}, noise={self.noise!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle through the constructor, which checks everything and makes the arrays read-only."""
        arrays = (self.contexts, self.rewards, self.costs, self.phase, self.order, self.weights)
        return type(self), (self.problem, *arrays, self.means, self.noise)

    def drawn_order(self, rng: Generator) -> Phase:
        """Return the context of each round of a trial.

        Args:
            rng: The random generator of the trial; unused if contexts come in order.

        Returns:
            (T,) indices of contexts.
        """
        if self.order is not None:
            return self.order
        uniform, found = rng.random(self.horizon), np.zeros(self.horizon, dtype=np.int32)
        count = len(self.contexts)
        if self.weights is None:
            return frozen(np.minimum(uniform * count, count - 1).astype(np.int32))
        for k, weights in enumerate(self.weights):
            own = self.phase == k
            found[own] = np.minimum(np.searchsorted(np.cumsum(weights), uniform[own], side="right"), count - 1)
        return frozen(found)

    def pairs(self) -> tuple[Ints, Ints, Floats]:
        """Return the (phase, context) pairs that occur.

        Returns:
            (R,) the phase, (R,) the context, and (R,) the expected number of rounds of each pair.
        """
        count = len(self.contexts)
        if self.order is not None:
            keys = self._keys(self.phase, self.order)
            rounds = np.ones(keys.size, dtype=np.int64)
            if (np.diff(keys) <= 0).any():  # skip the sort if possible: it takes longer than the means
                keys, rounds = np.unique(keys, return_counts=True)
            return keys // count, keys % count, rounds.astype(np.float64)
        weights = np.full((len(self.rewards), count), 1.0 / count) if self.weights is None else self.weights
        expected: Floats = np.ravel(self.rounds[:, None] * weights)
        places: Ints = np.flatnonzero(expected > 0.0).astype(np.int64)
        return places // count, places % count, expected[places]

    def _keys(self, phase: npt.NDArray[Any], context: npt.NDArray[Any]) -> Ints:
        """Return the index of each (phase, context) pair among all K N pairs."""
        keys: Ints = phase.astype(np.int64) * len(self.contexts) + context
        return keys

    def means_at(self, phase: Ints, context: Ints) -> tuple[Floats, Floats]:
        """Compute the means of given (phase, context) pairs.

        Args:
            phase: (R,) phases; fastest if sorted, as returned by :meth:`pairs`.
            context: (R,) contexts.

        Returns:
            (R, m) mean rewards and (R, d, m) mean costs, in the problem's units; read-only.
        """
        rewards, costs = (self._entries if self.means == "table" else self._products)(phase, context)
        rewards.setflags(write=False)
        costs.setflags(write=False)
        return rewards, costs

    def _entries(self, phase: Ints, context: Ints) -> tuple[Floats, Floats]:
        """Look up means in the tables; returns views if all pairs are requested in order."""
        rewards, costs = (table.reshape(-1, *table.shape[2:]) for table in (self.rewards, self.costs))
        keys = self._keys(phase, context)
        if keys.size == len(rewards) and (np.diff(keys) == 1).all():
            return rewards, costs
        return rewards[keys], costs[keys]

    def _products(self, phase: Ints, context: Ints) -> tuple[Floats, Floats]:
        """Compute linear or logistic means in contiguous blocks, each within one phase."""
        # Append the intercept, and cut the pairs into blocks of at most BLOCK rows within one phase.
        vectors = np.column_stack([self.contexts, np.ones(len(self.contexts))])
        cuts = np.union1d(np.flatnonzero(np.diff(phase, prepend=-1)), np.arange(0, len(phase), BLOCK)).tolist()
        # For rewards and for costs: coefficients as (K, n + 1, outputs), the upper limits, and the array to fill.
        targets = []
        for coefficients, most in ((self.rewards, [self.problem.reward_max]), (self.costs, self.problem.cost_max)):
            columns = coefficients.reshape(len(coefficients), -1, vectors.shape[1]).transpose(0, 2, 1).copy()
            limits: Floats = np.tile(np.repeat(most, self.arms), (BLOCK, 1))
            targets.append((columns, limits, np.empty((len(phase), columns.shape[2]))))
        # One matrix product per block, then the link function, both written in place.
        for begin, end in zip(cuts, [*cuts[1:], len(phase)], strict=True):
            rows = _rows_at(vectors, context[begin:end])
            for columns, limits, means in targets:
                values = np.matmul(rows, columns[phase[begin]], out=means[begin:end])
                self._link(values, limits[: end - begin])
        (_, _, rewards), (_, _, costs) = targets
        return rewards, costs.reshape(len(phase), self.resources, self.arms)

    def _link(self, values: Floats, most: Floats) -> None:
        """Apply the link function in place: clip to [0, most], or most / (1 + exp(-values))."""
        if self.means == "linear":
            np.clip(values, 0.0, most, out=values)
            return
        np.clip(values, -500.0, 500.0, out=values)
        np.exp(np.negative(values, out=values), out=values)
        values += 1.0
        np.divide(most, values, out=values)

    @classmethod
    def by_table(
        cls,
        contexts: Contexts,
        rewards: npt.ArrayLike,
        costs: npt.ArrayLike,
        budget: Amounts,
        horizon: int | None = None,
        **settings: Any,
    ) -> ContextualInstance:
        """Build an instance from the means of every arm at every context, for example from a full-information log.

        Args:
            contexts: (N, n) numbers; N mappings or a Polars data frame, which also need ``features``; or
                a function that draws them.
            rewards: (N, m) mean rewards, or (K, N, m) for each phase.
            costs: (N, d, m) mean costs, or (K, N, d, m) for each phase.
            budget: The budget of each resource, by name or in order; a single number applies to all of them.
            horizon: The number of rounds, each of which draws a context. None to use every context once, in order.
            **settings: As in :meth:`linear`.
        """
        gains, uses = _phases(rewards, "rewards", 2), _phases(costs, "costs", 3)
        return cls._build("table", contexts, gains, uses, budget, horizon, **settings)

    @classmethod
    def linear(
        cls,
        contexts: Contexts,
        rewards: npt.ArrayLike,
        costs: npt.ArrayLike,
        budget: Amounts,
        horizon: int | None = None,
        logistic: bool = False,
        **settings: Any,
    ) -> ContextualInstance:
        """Build an instance whose means are linear or logistic in the context.

        Args:
            contexts: As in :meth:`by_table`.
            rewards: (m, n + 1) coefficients of each arm, intercept last, or (K, m, n + 1) for each phase.
            costs: (d, m, n + 1) coefficients, or (K, d, m, n + 1).
            budget: As in :meth:`by_table`.
            horizon: As in :meth:`by_table`.
            logistic: Whether the means are logistic in the context; otherwise they are linear and clipped.
            **settings: ``lengths`` (K,), the rounds of each phase (default: equal); ``weights`` (K, N) or (N,), the
                probabilities of the contexts; ``noise``; ``reward_max``, ``cost_max``, ``arm_names`` and
                ``resource_names`` as in :class:`Problem`; ``features``, names or an :class:`Encoder`; ``pool`` and
                ``seed``, the number and the seed of contexts that a function draws.
        """
        gains, uses = _phases(rewards, "coefficients of rewards", 2), _phases(costs, "coefficients of costs", 3)
        means = "logistic" if flag(logistic, "logistic") else "linear"
        return cls._build(means, contexts, gains, uses, budget, horizon, **settings)

    @classmethod
    def _build(
        cls,
        means: str,
        contexts: Contexts,
        rewards: Floats,
        costs: Floats,
        budget: Amounts,
        horizon: int | None,
        lengths: Sequence[int] | None = None,
        weights: npt.ArrayLike | None = None,
        noise: str = "bernoulli",
        reward_max: float = 1.0,
        cost_max: Amounts = 1.0,
        arm_names: Sequence[str] | None = None,
        resource_names: Sequence[str] | None = None,
        features: int | Sequence[str] | Encoder | None = None,
        pool: int = 4096,
        seed: int = 0,
    ) -> ContextualInstance:
        # The contexts as numbers; without a horizon each occurs once, in order.
        table = _table(contexts, features, pool, seed)
        rounds = len(table) if horizon is None else whole(horizon, "horizon", at_least=1)
        # The number of arms and of resources follow from the shapes.
        table_means = means == "table"
        arms, resources = rewards.shape[2 if table_means else 1], costs.shape[2 if table_means else 1]
        amounts = budget if isinstance(budget, Mapping) else vector(budget, "budget", resources)
        problem = Problem(
            horizon=rounds,
            arms=arms,
            budget=amounts,
            reward_max=reward_max,
            cost_max=cost_max,
            arm_names=arm_names,
            resource_names=resource_names,
            features=table.shape[1] if features is None else features,
        )
        # Weights of a single phase apply to all phases.
        shares = None if weights is None else _phases(weights, "weights", 1)
        if shares is not None and len(shares) == 1:
            shares = np.tile(shares, (len(rewards), 1))
        return cls(
            problem,
            table,
            rewards,
            costs,
            _phase(rounds, len(rewards), lengths),
            order=np.arange(rounds, dtype=np.int32) if horizon is None else None,
            weights=shares,
            means=means,
            noise=noise,
        )


def _rows_at(table: Floats, places: Ints) -> Floats:
    """Return rows of a table, as a view if they are consecutive."""
    first, last = int(places[0]), int(places[-1])
    if last - first == places.size - 1 and (np.diff(places) == 1).all():
        return table[first : last + 1]
    return table[places]


def _phases(given: Any, name: str, axes: int) -> Floats:
    """Return an array with phases on the first axis, which is added if there is only one phase."""
    with suppress(ShapeError):
        return floats(given, name, (None,) * (axes + 1))
    return floats(given, name, (None,) * axes)[None]


def _table(contexts: Any, features: Any, pool: int, seed: int) -> Floats:
    """Return the contexts as an (N, n) array."""
    if callable(contexts):
        contexts = contexts(generator(seed), whole(pool, "pool", at_least=1))
    encoder = None if features is None else features_of(features)[1]
    if encoder is not None and hasattr(contexts, "to_dicts"):  # a data frame; its columns may be in another order
        contexts = contexts.to_dicts()
    if isinstance(contexts, Sequence) and contexts and isinstance(contexts[0], Mapping):
        if encoder is None:
            raise SettingError("contexts given as mappings need an encoder; pass features=ds.Encoder(...).")
        return np.array([checked_context(encoder, encoder.size, context) for context in contexts])
    return floats(contexts, "contexts", (None, None))


def _phase(rounds: int, phases: int, lengths: Sequence[int] | None) -> Phase:
    """Return the phase of each round (T,)."""
    if lengths is None:
        return (np.arange(rounds) * phases // rounds).astype(np.int32)
    listed = isinstance(lengths, (Sequence, np.ndarray))
    counts = [whole(length, "each length", at_least=0) for length in lengths] if listed else []
    if len(counts) != phases or sum(counts) != rounds:
        raise ShapeError(f"lengths must be {phases} integers that sum to {rounds}, got {lengths!r:.80}.")
    return np.repeat(np.arange(phases, dtype=np.int32), counts)
