"""``Decision``, the result of ``ask`` and the first argument of ``tell``, and ``SKIP``, the null arm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, overload

import numpy as np

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import LARGEST_INT, flag, floats, frozen, whole, within
from driftsack.core.errors import NamesError, OutOfRangeError, SettingError, ShapeError
from driftsack.core.names import checked_names

SKIP: Final = -1
"""The null arm: no reward and no cost, always available, never estimated."""


@dataclass(frozen=True, eq=False, slots=True)
class Decision:
    """The choice made in one round. It identifies itself, so feedback may arrive late and out of order.

    A decision is immutable, and so are its arrays.

    Attributes:
        round: The round, from 1.
        arm: The arm, from 0 to m - 1, or ``SKIP``.
        mix: (m,) probabilities of the arms; ``SKIP`` has the remaining probability.
        prices: (d,) dual prices: reward per unit of each resource, in the problem's units.
        name: The name of the arm, or its number as a string if the arms have no names; empty for ``SKIP``.
        source: Identifies the learner and its epoch. Loading, copying or forking a learner starts a new epoch, so that
            decisions made after a snapshot are not confused with those made after loading it.
        reserved: (d,) the amount reserved for the decision, its maximum cost; NaN where that is unknown.
        context: (n,) the features of the request as numbers; None if the problem has none.
        must: Whether the request had to be served.
    """

    round: int
    arm: int
    mix: Floats
    prices: Floats
    name: str = ""
    source: str = ""
    reserved: Floats = field(default_factory=lambda: np.zeros(0))
    context: Floats | None = None
    must: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle through a function that checks everything and makes the arrays read-only."""
        return _decision, tuple(getattr(self, part.name) for part in fields(self))

    @property
    def skipped(self) -> bool:
        """Whether the round was skipped; a skipped round needs no ``tell``."""
        return self.arm == SKIP

    @property
    def id(self) -> str:
        """A globally unique id of the decision."""
        return f"{self.source}-{self.round}"

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain data, for JSON; an unknown reservation is None.

        >>> given = Decision(1, SKIP, np.array([0.5]), np.array([0.0]), source="a")
        >>> Decision.from_dict(given.to_dict()).id
        'a-1'
        """
        data = {part.name: getattr(self, part.name) for part in fields(self)}
        data |= {name: value.tolist() for name, value in data.items() if isinstance(value, np.ndarray)}
        data["reserved"] = [None if math.isnan(amount) else amount for amount in data["reserved"]]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Decision:
        """Return the decision that :meth:`to_dict` wrote, after checking it.

        Args:
            data: The result of :meth:`to_dict`, for example from JSON.

        Raises:
            NamesError: It has other fields than a decision.
            ShapeError: A list is no list of numbers.
        """
        names = [part.name for part in fields(cls)]
        if set(data) != set(names):
            raise NamesError(f"a decision has the fields {names}, got {sorted(map(str, data))}.")
        try:
            reserved = [math.nan if amount is None else amount for amount in data["reserved"]]
            arrays = {name: np.array(data[name], dtype=np.float64) for name in ("mix", "prices")}
            arrays["reserved"] = np.array(reserved, dtype=np.float64)
            context = None if data["context"] is None else np.array(data["context"], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ShapeError(f"mix, prices, reserved and context must be lists of numbers: {error}.") from error
        given = {**data, **arrays, "context": context}
        return _decision(*(given[name] for name in names))


@dataclass(frozen=True, eq=False, slots=True)
class Decisions(Sequence[Decision]):
    """The decisions of ``ask_many`` as arrays; an index selects one :class:`Decision`, a slice or mask several.

    Attributes:
        rounds: (n,) the rounds, from 1.
        arms: (n,) the arms, ``SKIP`` where a round is skipped.
        mixes: (n, m) probabilities of the arms.
        prices: (n, d) dual prices, in the problem's units.
        reserved: (n, d) the amounts reserved for each decision.
        arm_names: The names of the arms.
        source: As in :class:`Decision`.
        contexts: (n, f) the features of the requests; None if the problem has none.
        must: Whether these requests had to be served.
    """

    rounds: Ints
    arms: Ints
    mixes: Floats
    prices: Floats
    reserved: Floats
    arm_names: tuple[str, ...]
    source: str
    contexts: Floats | None = None
    must: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle through a function that checks everything and makes the arrays read-only."""
        return _decisions, tuple(getattr(self, part.name) for part in fields(self))

    @property
    def skipped(self) -> Bools:
        """(n,) whether each round was skipped; skipped rounds need no ``tell``."""
        return np.equal(self.arms, SKIP)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the chosen arms; empty for skipped rounds."""
        by_arm = (*self.arm_names, "")
        return tuple(by_arm[arm] for arm in self.arms.tolist())

    def __len__(self) -> int:
        return len(self.rounds)

    def __iter__(self) -> Iterator[Decision]:
        return (self[k] for k in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Decision: ...

    @overload
    def __getitem__(self, index: slice | Ints | Bools) -> Decisions: ...

    def __getitem__(self, index: int | slice | Ints | Bools) -> Decision | Decisions:
        """Return one decision, or the decisions selected by a slice, a mask (n,) or positions."""
        if isinstance(index, (int, np.integer)):
            arm = int(self.arms[index])
            name = "" if arm == SKIP else self.arm_names[arm]
            rows = self.mixes[index], self.prices[index]
            context = None if self.contexts is None else self.contexts[index]
            reserved = self.reserved[index]
            return Decision(int(self.rounds[index]), arm, *rows, name, self.source, reserved, context, self.must)
        return Decisions(
            rounds=read_only(self.rounds[index]),
            arms=read_only(self.arms[index]),
            mixes=read_only(self.mixes[index]),
            prices=read_only(self.prices[index]),
            reserved=read_only(self.reserved[index]),
            arm_names=self.arm_names,
            source=self.source,
            contexts=None if self.contexts is None else read_only(self.contexts[index]),
            must=self.must,
        )


def _decision(*parts: Any) -> Decision:
    """Build a decision from untrusted fields, after checking them; ``ask`` skips these checks."""
    given = Decision(*parts)
    mix = _mixes(given.mix, (None,))
    return Decision(
        round=whole(given.round, "round", at_least=0, at_most=LARGEST_INT),
        arm=whole(given.arm, "arm", at_least=SKIP, at_most=mix.size - 1),
        mix=mix,
        prices=frozen(floats(given.prices, "prices", (None,))),
        name=_text(given.name, "name"),
        source=_text(given.source, "source"),
        reserved=_reserved(given.reserved, (None,)),
        context=None if given.context is None else frozen(floats(given.context, "context", (None,))),
        must=flag(given.must, "must"),
    )


def _decisions(*parts: Any) -> Decisions:
    """Build decisions from untrusted fields, after checking them."""
    given = Decisions(*parts)
    mixes = _mixes(given.mixes, (None, None))
    count, arms = mixes.shape
    return Decisions(
        rounds=_numbers(given.rounds, "rounds", count, (0, LARGEST_INT)),
        arms=_numbers(given.arms, "arms", count, (SKIP, arms - 1)),
        mixes=mixes,
        prices=frozen(floats(given.prices, "prices", (count, None))),
        reserved=_reserved(given.reserved, (count, None)),
        arm_names=checked_names(given.arm_names, "arm_names", arms),
        source=_text(given.source, "source"),
        contexts=None if given.contexts is None else frozen(floats(given.contexts, "contexts", (count, None))),
        must=flag(given.must, "must"),
    )


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{name} must be a string, got {value!r:.80}.")
    return value


def _mixes(mixes: Any, shape: tuple[None, ...]) -> Floats:
    """Check probabilities (..., m) without clipping them, because a learner compares them exactly."""
    found = frozen(floats(mixes, "mix", shape))
    within(found, 0.0, 1.0, "mix")
    within(found.sum(axis=-1), 0.0, 1.0, "the sum of a mix")
    return found


def _reserved(reserved: Any, shape: tuple[int | None, ...]) -> Floats:
    """Check reserved amounts: 0 or more, or NaN where unknown."""
    given = np.asarray(reserved)
    known = np.where(np.isnan(given), 0.0, given) if given.dtype == np.float64 else reserved
    within(floats(known, "reserved", shape), 0.0, np.inf, "reserved")
    return frozen(np.asarray(given, dtype=np.float64))


def _numbers(numbers: Any, name: str, count: int, limits: tuple[int, int]) -> Ints:
    """Check an array (count,) of integers within limits."""
    found = np.asarray(numbers)
    if found.shape != (count,) or found.dtype != np.int64:
        raise ShapeError(f"{name} must be {count} integers, got {numbers!r:.80}.")
    if count and not (limits[0] <= found.min() and found.max() <= limits[1]):
        raise OutOfRangeError(f"{name} must lie in [{limits[0]}, {limits[1]}], got {found.min()} to {found.max()}.")
    return frozen(found)


def read_only(array: Any) -> Any:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array
