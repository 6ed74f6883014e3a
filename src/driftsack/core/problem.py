"""``Problem``: everything that a learner knows before the first round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import above_zero, vector, whole
from driftsack.core.encoder import MOST_FEATURES, Encoder
from driftsack.core.errors import NamesError, NegativeBudgetError, OutOfRangeError, SettingError
from driftsack.core.floors import REWARD, FloorLike, Floors, arm_of, checked_floors, checked_goal
from driftsack.core.names import (
    Amounts,
    ArmAmounts,
    by_name,
    by_resource_and_arm,
    checked_names,
    default_arm_names,
    default_resource_names,
    position,
)

ABSURD: Final = 1_000.0  # times the maximum cost: outcomes above it are refused unless ``refuse_above`` is given
FIRST_GUESS: Final = 10_000  # initial estimate of the rounds of a period
MOST_ARMS: Final = 10**6  # prevents a file from exhausting the memory


@dataclass(frozen=True, init=False, repr=False)
class Problem:
    """The problem that a learner is given: horizon, arms, budgets and units.

    Rewards and costs are given in natural units. Internally they are normalised by ``reward_max`` and ``cost_max``.
    Arms and resources may have names: pass ``arms`` as a list of names and ``budget`` as a mapping from names to
    numbers. Costs, logs and forecasts with names are then matched by name, in any order.

    Attributes:
        horizon: The number T of rounds. With ``period``, a first guess of the number of rounds in it, which may be
            omitted.
        arms: The number m of arms; pass their names to name them.
        budget: The budgets of d resources; a single number if there is one resource. Pass a mapping to name them.
        reward_max: The maximum reward of a round.
        cost_max: The maximum cost of a round in each resource, in the order of ``budget`` or by name; a single number
            applies to all of them. If it differs between arms, pass (d, m) numbers or nested mappings by resource and
            arm, with 0 for an arm that never uses a resource; the attribute is the maximum over the arms. If it is
            omitted, the maximum is unknown: nothing is reserved for a decision, ``safe`` needs ``caps`` with every
            request, and policies that need costs in [0, 1] assume a maximum of 1 and warn at the first larger cost.
        arm_names: The names of the arms; by default ``"0"``, ``"1"``, ... As an argument, the names if ``arms`` is a
            number.
        resource_names: The names of the resources; by default ``"cost_0"``, ``"cost_1"``, ... As an argument, the names
            if ``budget`` is not a mapping.
        fallback: The arm, by name or number, that serves a request which the policy would skip, so that every request
            is answered; None if requests may be skipped. Of several, in order of preference, the first one that a
            request may use serves it. The attribute is the number of the first.
        period: The length of the budget period as a ``timedelta``; None if the horizon is a number of rounds. Pass the
            time of each request to ``ask(at=...)``.
        slots: The capacity for arms, at least their number. Arms that are added later fill free slots. Constants that
            depend on the number of arms use this number.
        arm_cost_max: (d, m) the maximum cost of each arm, if ``cost_max`` was given by arm; otherwise None.
        bounded: Whether ``cost_max`` was given.
        features: The number n of features of each request, passed to ``ask(context=...)``; 0 without contexts. As an
            argument, also their names, or an :class:`Encoder` of numbers, categories and embeddings.
        encoder: Encodes features that have names; None if they have no names.
        guessed: Whether ``period`` was given without a horizon, so that the number of rounds is unknown.
        fallbacks: The numbers of all fallback arms, in order of preference.
        refuse_above: The cost of a round in each resource, in the order of ``budget`` or by name, above which an
            outcome is refused as absurd, such as a bill in the wrong unit; at least ``cost_max``. None for 1,000 times
            ``cost_max``; :attr:`cost_limit` has the limits in force.
        minimise: The resource whose total cost is minimised, subject to ``floor``; None if the reward is maximised. A
            resource that has no budget comes after those in ``budget``, and its entry in the attribute ``budget`` is
            infinite.
        floor: The minimum mean reward of the answered requests, or a mapping with the floors ``"reward"`` and
            ``"share:"`` with the name of an arm, for its minimum share among the answered requests. With a floor,
            requests are answered unless a budget is exhausted. The attribute has pairs of names and values.

    Raises:
        NamesError: Names are repeated or empty, or the names in ``cost_max`` and ``budget`` differ.
        NegativeBudgetError: A budget is below 0.
        OutOfRangeError: The horizon, the number of arms, ``reward_max`` or the largest ``cost_max`` of a resource is
            not positive, or ``refuse_above`` is below ``cost_max``, or a floor cannot be reached.
        SettingError: Neither a horizon nor a period is given, or only one of ``minimise`` and ``floor`` is.
        ShapeError: ``cost_max`` and ``budget`` have different lengths.

    >>> problem = Problem(horizon=10_000, arms=3, budget=[500, 800], cost_max=[1, 0.5])
    >>> problem.resources, problem.rate
    (2, array([0.05, 0.16]))
    >>> named = Problem(horizon=20_000, arms=["small", "large"], budget={"usd": 200, "seconds": 50_000})
    >>> named.arms, named.arm_names, named.resource_names, named.budget
    (2, ('small', 'large'), ('usd', 'seconds'), (200.0, 50000.0))
    >>> Problem(horizon=20_000, arms=["small", "large"], minimise="usd", floor=0.92)
    Problem(horizon=20000, arms=['small', 'large'], reward_max=1.0, minimise='usd', floor={'reward': 0.92})
    """

    horizon: int
    arms: int
    budget: tuple[float, ...]
    reward_max: float
    cost_max: tuple[float, ...]
    arm_names: tuple[str, ...]
    resource_names: tuple[str, ...]
    fallback: int | None
    period: timedelta | None
    slots: int
    arm_cost_max: tuple[tuple[float, ...], ...] | None
    bounded: bool
    features: int
    encoder: Encoder | None
    guessed: bool
    fallbacks: tuple[int, ...]
    refuse_above: tuple[float, ...] | None
    minimise: str | None
    floor: Floors

    def __init__(
        self,
        horizon: int | None = None,
        arms: int | Sequence[str] | npt.NDArray[np.str_] = 0,
        budget: Amounts = (),
        reward_max: float = 1.0,
        cost_max: ArmAmounts | None = None,
        arm_names: Sequence[str] | None = None,
        resource_names: Sequence[str] | None = None,
        fallback: int | str | Sequence[int | str] | None = None,
        period: timedelta | None = None,
        slots: int | None = None,
        arm_cost_max: ArmAmounts | None = None,
        bounded: bool = True,
        features: int | Sequence[str] | Encoder = 0,
        encoder: Encoder | None = None,
        guessed: bool = False,
        fallbacks: tuple[int, ...] = (),
        refuse_above: Amounts | None = None,
        minimise: str | int | None = None,
        floor: FloorLike | None = None,
    ) -> None:
        # Arms and budgets, by name or in order, and the goal.
        count, arm_labels = _count_and_names(arms, arm_names)
        amounts, resource_labels = _budgets(budget, resource_names, minimise)
        most_reward = above_zero(reward_max, "reward_max")
        floors = checked_floors(floor, arm_labels, most_reward)
        goal = checked_goal(minimise, floors, resource_labels)
        # Maximum costs, for each resource or for each resource and arm.
        most, by_arm = _maxima(1.0 if cost_max is None else cost_max, resource_labels, arm_labels)
        known = cost_max is not None and (bool(bounded) or by_arm is not None or set(most) != {1.0})
        if arm_cost_max is not None:  # from dataclasses.replace, which passes every attribute
            largest, finer = _maxima(arm_cost_max, resource_labels, arm_labels)
            by_arm = finer if largest == most else by_arm
        # Arms that answer every request.
        serving = _arms(fallback, arm_labels)
        if fallbacks and serving == fallbacks[:1]:  # from dataclasses.replace, which passes every attribute
            serving = _arms(fallbacks, arm_labels)
        # Features.
        count_of_features, coding = features_of(features, encoder)
        values = {
            "horizon": _rounds(horizon, period),
            "arms": count,
            "budget": tuple(amounts.tolist()),
            "reward_max": most_reward,
            "cost_max": most,
            "arm_names": arm_labels,
            "resource_names": resource_labels,
            "fallback": serving[0] if serving else None,
            "period": period,
            "slots": count if slots is None else whole(slots, "slots", at_least=count, at_most=MOST_ARMS),
            "arm_cost_max": by_arm,
            "bounded": known,
            "features": count_of_features,
            "encoder": coding,
            "guessed": horizon is None or (bool(guessed) and period is not None and horizon == FIRST_GUESS),
            "fallbacks": serving,
            "refuse_above": _limits(refuse_above, resource_labels, most if known else None),
            "minimise": goal,
            "floor": floors,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle through the constructor, which checks everything."""
        return _copied, tuple(getattr(self, part.name) for part in fields(self))

    def __repr__(self) -> str:
        """Show only the arguments that were given, in the form in which they can be passed."""
        arms = list(self.arm_names) if self.named_arms else self.arms
        shown: dict[str, Any] = {} if self.guessed else {"horizon": self.horizon}
        shown |= {"arms": arms} | self._limited() | {"reward_max": self.reward_max}
        if self.bounded:
            shown["cost_max"] = self._labelled(self.cost_max if self.arm_cost_max is None else self.arm_cost_max)
        if self.refuse_above is not None:
            shown["refuse_above"] = self._labelled(self.refuse_above)
        if self.fallback is not None:
            names = [self.arm_names[arm] if self.named_arms else arm for arm in self.fallbacks]
            shown["fallback"] = names if len(names) > 1 else names[0]
        shown |= {"period": self.period} if self.period is not None else {}
        shown |= {"slots": self.slots} if self.slots > self.arms else {}
        shown |= {"features": self.encoder or self.features} if self.features else {}
        shown |= {"minimise": self.minimise, "floor": dict(self.floor)} if self.floor else {}
        return f"Problem({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def _labelled(self, amounts: tuple[Any, ...]) -> Any:
        return dict(zip(self.resource_names, amounts, strict=True)) if self.named_resources else amounts

    def _limited(self) -> dict[str, Any]:
        """Return the argument ``budget``, without the resource that has none."""
        if not np.isinf(self.budget).any():
            return {"budget": self._labelled(self.budget)}
        pairs = zip(self.resource_names, self.budget, strict=True)
        kept = {name: amount for name, amount in pairs if amount < np.inf}
        return {"budget": kept} if kept else {}

    @property
    def named_arms(self) -> bool:
        """Whether the arms were given names."""
        return self.arm_names != default_arm_names(self.arms)

    @property
    def named_resources(self) -> bool:
        """Whether the resources were given names."""
        return self.resource_names != default_resource_names(self.resources)

    @property
    def resources(self) -> int:
        """The number d of budgeted resources."""
        return len(self.budget)

    @property
    def minimised(self) -> int:
        """The number of the resource whose cost is minimised; -1 if the reward is maximised."""
        return -1 if self.minimise is None else self.resource_names.index(self.minimise)

    @property
    def floor_arms(self) -> Ints:
        """(k,) the arm whose share each floor is for; -1 for the floor of the mean reward."""
        return np.array([arm_of(name, self.arm_names) for name, _ in self.floor], dtype=np.int64)

    @property
    def unit_floors(self) -> Floats:
        """(k,) the floors, that of the mean reward in units of ``reward_max``."""
        values = [value if name != REWARD else value / self.reward_max for name, value in self.floor]
        return np.array(values, dtype=np.float64)

    @property
    def unit_budget(self) -> Floats:
        """(d,) budgets in units of ``cost_max``; infinite for a resource without a budget."""
        amounts: Floats = np.asarray(self.budget) / np.asarray(self.cost_max)
        return amounts

    @property
    def rate(self) -> Floats:
        """(d,) budget per round in units of ``cost_max``, b = B/T."""
        rate: Floats = self.unit_budget / self.horizon
        return rate

    @property
    def planning_unit(self) -> Floats:
        """(d,) the budget rate, in which plans measure costs; ``cost_max`` for a resource without a budget."""
        unit: Floats = np.where(np.isinf(self.budget), 1.0, self.rate)
        return unit

    @property
    def cost_max_by_arm(self) -> Floats:
        """(d, m) the maximum cost of each arm in each resource."""
        most = np.asarray(self.cost_max)[:, None] if self.arm_cost_max is None else np.asarray(self.arm_cost_max)
        return np.broadcast_to(most, (self.resources, self.arms)).copy()

    @property
    def cost_limit(self) -> Floats:
        """(d,) the cost of a round above which an outcome is refused; infinite if no maximum is known."""
        if self.refuse_above is not None:
            return np.asarray(self.refuse_above)
        return ABSURD * np.asarray(self.cost_max) if self.bounded else np.full(self.resources, np.inf)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain data, from which :meth:`from_dict` builds an equal problem.

        Returns:
            The arguments that were passed to the constructor.
        """
        found: dict[str, Any] = {
            "horizon": self.horizon,
            "arms": self.arms,
            "budget": [None if np.isinf(amount) else amount for amount in self.budget],
            "reward_max": self.reward_max,
        }
        if self.arm_cost_max is not None:
            found["cost_max"] = [list(row) for row in self.arm_cost_max]
        elif self.bounded:
            found["cost_max"] = list(self.cost_max)
        found |= {"arm_names": list(self.arm_names)} if self.named_arms else {}
        found |= {"resource_names": list(self.resource_names)} if self.named_resources else {}
        if self.fallback is not None:
            found["fallback"] = list(self.fallbacks) if len(self.fallbacks) > 1 else self.fallback
        found |= {"period": self.period.total_seconds()} if self.period is not None else {}
        if self.period is not None and self.horizon == FIRST_GUESS and not self.guessed:
            found["guessed"] = False
        found |= {"slots": self.slots} if self.slots > self.arms else {}
        found |= {"refuse_above": list(self.refuse_above)} if self.refuse_above is not None else {}
        if self.features:
            found["features"] = self.features if self.encoder is None else self.encoder.to_dict()
        found |= {"minimise": self.minimise, "floor": dict(self.floor)} if self.floor else {}
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Problem:
        """Build a problem from the result of :meth:`to_dict`.

        Args:
            data: The arguments of the constructor, with the period in seconds.
        """
        arguments = {"guessed": True, **data}  # the default in files of earlier releases
        if isinstance(arguments.get("budget"), list):
            arguments["budget"] = [np.inf if amount is None else amount for amount in arguments["budget"]]
        if "period" in arguments:
            seconds = above_zero(arguments["period"], "period")
            arguments["period"] = timedelta(seconds=min(seconds, timedelta.max.total_seconds() / 2))
        if isinstance(arguments.get("features"), Mapping):
            arguments["features"] = Encoder.from_dict(arguments["features"])
        return cls(**arguments)


def _copied(*values: Any) -> Problem:
    """Build a copied problem from its attributes, and check that the constructor reproduces each of them."""
    problem = Problem(*values)
    for part, value in zip(fields(problem), values, strict=True):
        own = getattr(problem, part.name)
        if type(own) is not type(value) or own != value:
            raise SettingError(f"{part.name} of a copied problem must be {own!r:.80}, got {value!r:.80}.")
    return problem


def features_of(features: Any, encoder: Encoder | None = None) -> tuple[int, Encoder | None]:
    """Return the number of features and their encoder, given a number, names or an encoder."""
    if isinstance(features, Encoder):
        return features.size, features
    if isinstance(features, Mapping):
        raise SettingError(
            f"features must be a number, a list of names or an Encoder, got the mapping {features!r:.80}; write "
            "features=ds.Encoder(numbers=[...], categories={...})."
        )
    if isinstance(features, Iterable):
        named = Encoder(numbers=checked_names(features, "features"))
        return named.size, named
    count = whole(features, "features", at_least=0, at_most=MOST_FEATURES)
    return count, encoder if encoder is not None and encoder.size == count else None


def _count_and_names(arms: Any, arm_names: Any) -> tuple[int, tuple[str, ...]]:
    """Return the number of arms and their names, given a number or names."""
    if isinstance(arms, Iterable) and getattr(arms, "ndim", None) != 0:
        names = checked_names(arms, "arms")
        if arm_names is not None and checked_names(arm_names, "arm_names") != names:
            raise NamesError(f"arm_names must be omitted or the same as the names in arms, got {arm_names!r:.80}.")
        return len(names), names
    count = whole(arms, "arms", at_least=1, at_most=MOST_ARMS)
    return count, default_arm_names(count) if arm_names is None else checked_names(arm_names, "arm_names", count)


def _budgets(given: Any, names: Sequence[str] | None, minimise: str | int | None) -> tuple[Floats, tuple[str, ...]]:
    """Return the budgets and the names of the resources, with the one that is minimised if it has no budget."""
    if isinstance(given, Mapping) and (given or minimise is None):
        names = checked_names(given if names is None else names, "budget")
        given = by_name(given, names, "budget")
    amounts = np.zeros(0) if minimise is not None and np.size(given) == 0 else _amounts(given, names, minimise)
    labels = default_resource_names(amounts.size)
    if names is not None and len(names) > 0:
        labels = checked_names(names, "resource_names", amounts.size)
    if isinstance(minimise, str) and minimise not in labels:
        checked_names([minimise], "minimise")
        labels, amounts = (*labels, minimise), np.append(amounts, np.inf)
    if amounts.size == 0:
        raise OutOfRangeError("budget must have at least one resource, got none.")
    return amounts, labels


def _amounts(given: Any, names: Sequence[str] | None, minimise: str | int | None) -> Floats:
    """Return the given budgets; that of the minimised resource may be infinite, as in the attribute."""
    finite, unlimited = given, []
    if isinstance(given, (list, tuple)) and np.inf in given:
        labels = names or default_resource_names(len(given))
        pairs = list(zip(labels, given, strict=False))
        unlimited = [j for j, (name, amount) in enumerate(pairs) if name == minimise and amount == np.inf]
        finite = [0.0 if j in unlimited else amount for j, amount in enumerate(given)]
    amounts = vector(finite, "budget")
    if (amounts < 0).any():
        raise NegativeBudgetError(f"budget must be 0 or more, got {amounts.min():g}.")
    amounts[unlimited] = np.inf
    return amounts


def _rounds(horizon: int | None, period: Any) -> int:
    """Return the number of rounds, or the initial estimate if only a period is given."""
    if period is not None and (not isinstance(period, timedelta) or period <= timedelta(0)):
        raise SettingError(f"period must be a timedelta above 0 such as timedelta(days=30), got {period!r:.80}.")
    if horizon is None:
        if period is None:
            raise SettingError(
                "give the horizon, a number of rounds, or the period, such as period=timedelta(days=30); got neither."
            )
        return FIRST_GUESS
    return whole(horizon, "horizon", at_least=1)


def _maxima(
    given: Any, resources: tuple[str, ...], arms: tuple[str, ...]
) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...] | None]:
    """Return the maximum cost of each resource, and of each arm if given by arm."""
    values = by_resource_and_arm(given, resources, arms, "cost_max")
    largest = values if values.ndim == 1 else values.max(axis=1)
    if (largest <= 0).any():
        raise OutOfRangeError(f"cost_max must be above 0 for at least one arm of each resource, got {largest.min():g}.")
    if values.ndim == 1:
        return tuple(values.tolist()), None
    if (values < 0).any():
        raise OutOfRangeError(f"cost_max of an arm must be 0 or more, got {values.min():g}.")
    return tuple(largest.tolist()), tuple(tuple(row) for row in values.tolist())


def _limits(
    given: Amounts | None, resources: tuple[str, ...], most: tuple[float, ...] | None
) -> tuple[float, ...] | None:
    """Return the costs above which outcomes are refused; ``most`` are the maximum costs, None if they are not known."""
    if given is None:
        return None
    limits = vector(by_name(given, resources, "refuse_above"), "refuse_above", len(resources)).tolist()
    for name, limit, least in zip(resources, limits, most or [0.0] * len(limits), strict=True):
        if limit < least or limit <= 0.0:
            raise OutOfRangeError(f"refuse_above of {name!r} must be at least its cost_max, {least:g}, got {limit:g}.")
    return tuple(limits)


def _arms(fallback: Any, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the numbers of the fallback arms, which may be one, several or none."""
    if fallback is None:
        return ()
    several = isinstance(fallback, Iterable) and not isinstance(fallback, str)
    found = tuple(_arm(arm, names) for arm in (fallback if several else [fallback]))
    if several and (not found or len(set(found)) < len(found)):
        raise SettingError(f"fallback must list one or more arms, each of them once, got {fallback!r:.80}.")
    return found


def _arm(arm: Any, names: tuple[str, ...]) -> int:
    """Return the number of a fallback arm."""
    return position(arm, names, "fallback") if isinstance(arm, str) else whole(arm, "fallback", 0, len(names) - 1)
