"""What callers give to a learner besides outcomes: checked, and brought into the order and units of the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import LARGEST_SETTING, above_zero, at_least_zero, floats, number, vector, whole
from driftsack.core.decision import SKIP
from driftsack.core.encoder import Context, checked_context
from driftsack.core.errors import NamesError, OutOfRangeError, SettingError, ShapeError
from driftsack.core.names import (
    Amounts,
    by_name,
    by_resource_and_arm,
    default_arm_names,
    default_resource_names,
    position,
    positions,
)
from driftsack.core.problem import Problem
from driftsack.game import steps
from driftsack.game.admission import admit
from driftsack.game.amounts import MOST_UNITS, whole_units
from driftsack.game.arrivals import Arrivals
from driftsack.game.ledger import exponents_of
from driftsack.policies.engine import Engine
from driftsack.policies.policy import Policy

DAY: Final = 86_400.0
LARGEST_SQUARE: Final = 1e18  # of the length of a context; then no feature is too large
EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  (of times without a zone)


class PastOutcomes(Protocol):
    """What ``teach`` reads of a log, and ``contexts`` (n, f) if it has them."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of the resources."""

    @property
    def arm(self) -> npt.NDArray[np.int32]:
        """(n,) the arm of each round, or ``SKIP``."""

    @property
    def reward(self) -> Floats:
        """(n,) rewards."""

    @property
    def costs(self) -> Floats:
        """(n, d) costs."""

    @property
    def propensity(self) -> Floats | None:
        """(n,) the probability of each arm when it was chosen, if it is known."""


class PastRounds(NamedTuple):
    """The rounds of a log that are learnt, oldest first, in the order of the problem."""

    arms: Ints  # (n,)
    probabilities: Floats  # (n,)
    rewards: Floats  # (n,)
    costs: Floats  # (n, d)
    contexts: Floats  # (n, f)


class Clock:
    """The times of requests, and the rounds left in a period.

    Args:
        problem: The problem.
    """

    def __init__(self, problem: Problem) -> None:
        self._period = None if problem.period is None else problem.period.total_seconds()
        self._expected = None if problem.guessed else float(problem.horizon)
        self.arrivals: Arrivals | None = None
        self.start = 0.0  # of the period
        self.latest = -np.inf

    def advance(self, at: float | datetime | None) -> tuple[float, float]:
        """Take note of a request.

        Args:
            at: Its time.

        Returns:
            The time in seconds, and the rounds that its period has left from it on; NaN if there is no period.
        """
        if at is None:
            raise SettingError("the problem has a period, so each request needs its time; pass at=datetime.now(...).")
        now, left = seconds(at), math.nan
        if self._period is not None:
            if self.arrivals is None:
                self.start = now
                self.arrivals = Arrivals(self._period, self._expected, day_start(at))
            since = now - self.start
            if since <= self._period:
                self.arrivals.arrive(since)
            left = 1.0 + self.arrivals.rounds_left(since)
        self.latest = max(self.latest, now)
        return now, left

    def repeat(self, now: float, most: int) -> int:
        """Take note of further requests at the time of the latest one, as long as :meth:`advance` returns the same.

        Args:
            now: That time, as :meth:`advance` returned it.
            most: The number of further requests.

        Returns:
            How many of them were counted.
        """
        if self.arrivals is None or self._period is None or not now - self.start <= self._period:
            return most
        return self.arrivals.repeat(most)

    def next_start(self, at: float | datetime | None) -> float:
        """When a new period begins; nothing is changed."""
        start = self.start + (self._period or 0.0) if at is None else seconds(at)
        if self.arrivals is not None and start < min(self.latest, self.start + (self._period or 0.0)):
            raise OutOfRangeError(
                f"a period must begin after the latest request of the last one, at {self.latest:.0f} seconds, got "
                f"{start:.0f}; pass the time of renewal."
            )
        return start

    def renew(
        self, start: float, engine: Engine, period: timedelta | None = None, at: float | datetime | None = None
    ) -> None:
        """Begin a new period.

        Args:
            start: When it begins, as :meth:`next_start` returned it.
            engine: The engine.
            period: Its length; that of the last one if omitted.
            at: When it begins, as the caller said it.
        """
        if self._period is None or (self.arrivals is None and period is None):
            return
        if self.arrivals is None:  # the first guess is for the period of the problem, and becomes a rate
            self.start = start
            self.arrivals = Arrivals(self._period, self._expected, day_start(start if at is None else at))
        length = self._period if period is None else period.total_seconds()
        self.arrivals.renew(start - self.start, length)
        self.start, self._period = start, length
        engine.set_rounds_left(1.0 + self.arrivals.rounds_left(0.0))

    def restore(self, arrivals: Arrivals, period: float) -> None:
        """Go on with arrivals that were saved, in a period of a length in seconds."""
        self.arrivals, self._period = arrivals, period

    def now(self, at: float | datetime | None) -> float:
        """The present time, or that of the latest request."""
        if at is not None:
            return seconds(at)
        if self.latest == -np.inf:
            raise SettingError("no request had a time; pass at=..., to ask as well, or give older_than in rounds.")
        return float(self.latest)


def seconds(at: float | datetime) -> float:
    """A time in seconds; a ``datetime`` without a time zone is taken as it is."""
    if isinstance(at, datetime):
        return at.timestamp() if at.tzinfo is not None else (at - EPOCH).total_seconds()
    return number(at, "at")


def day_start(at: float | datetime) -> float:
    """Seconds from local midnight to a time, counted from a Monday if the time is a date."""
    if not isinstance(at, datetime):
        return seconds(at)
    local = at.replace(tzinfo=UTC)
    return local.weekday() * DAY + local.hour * 3600.0 + local.minute * 60.0 + local.second


def set_request(engine: Engine, open_arms: Any, caps: Any) -> None:
    """Set which arms a request may use and what it may cost."""
    problem = engine.problem
    if open_arms is not None:
        engine.terms.offered[: problem.arms] &= mask_of(problem, open_arms)
        fallback = problem.fallback
        if fallback is not None and not engine.terms.offered[fallback]:
            engine.restore_terms()
            raise SettingError(
                f"open must include the fallback {problem.arm_names[fallback]!r}, which answers every request."
            )
    if caps is not None:
        limits = _units_of_caps(engine, caps)
        worst = engine.terms.worst[:, : problem.arms]
        worst[:] = np.where(worst < 0, limits, np.where(limits < 0, worst, np.minimum(worst, limits)))
        if engine.safe and (worst[:, engine.terms.offered[: problem.arms]] < 0).any():
            engine.restore_terms()
            refuse_unbounded(problem)


def admissible(engine: Engine, open_arms: Any, caps: Any) -> Bools:
    """(m,) the arms that are open to the next request; the terms are those of a request without its own afterwards."""
    terms = engine.terms
    before = terms.open.copy(), terms.version.copy()
    engine.restore_terms()
    try:
        set_request(engine, open_arms, caps)
        admit(engine.ledger, terms, int(engine.desk.clock[0]), engine.safe)
        return terms.open[: engine.problem.arms].copy()
    finally:
        terms.open[:], terms.version[:] = before
        engine.restore_terms()


def set_features(engine: Engine, context: Context | None) -> None:
    """Set the context of a request, to 0 if there is none and the policy does not use it."""
    problem = engine.problem
    if context is None:
        if engine.policy.needs_context:
            refuse_absence(engine.policy, problem)
        engine.terms.context[:] = 0.0
        return
    refuse_features(problem)
    if type(context) is np.ndarray and context.dtype == np.float64 and context.shape == engine.terms.context.shape:
        size = context.dot(context)  # fast; NaN and infinity are not smaller
        if size < LARGEST_SQUARE:
            engine.terms.context[:] = context
            return
    engine.terms.context[:] = checked_context(problem.encoder, problem.features, context)


def contexts_of(policy: Policy, problem: Problem, count: int, contexts: Any) -> Floats:
    """(count, n) the features of several requests."""
    if contexts is None:
        if policy.needs_context:
            refuse_absence(policy, problem)
        return np.zeros((count, problem.features))
    refuse_features(problem)
    if len(contexts) != count:
        raise ShapeError(f"contexts must be one for each of {count} requests, got {len(contexts)}.")
    return np.array([checked_context(problem.encoder, problem.features, context) for context in contexts])


def refuse_features(problem: Problem) -> None:
    """Raise if requests have no features."""
    if not problem.features:
        raise SettingError("the problem has no features, got a context; declare them with Problem(features=...).")


def refuse_absence(policy: Policy, problem: Problem) -> None:
    """Raise: the policy needs the features of each request."""
    shown = problem.features if problem.encoder is None else list(problem.encoder.inputs)
    raise SettingError(
        f"{type(policy).__name__} needs the features of each request ({shown}), got none; pass context=... to ask."
    )


def refuse_unbounded(problem: Problem) -> None:
    """Raise: a safe learner must know the most that an arm may cost."""
    raise SettingError(
        "safe=True reserves the most that a request may cost, which is not known for every one of "
        f"{list(problem.resource_names)}; set cost_max, pass caps for each resource to ask, or start without safe."
    )


def mask_of(problem: Problem, open_arms: Any) -> Bools:
    """(m,) which arms are open, from a mask, names or numbers."""
    if isinstance(open_arms, (str, int, np.integer)) and not isinstance(open_arms, bool):
        raise SettingError(f"open must be a list of arms or a mask, got {open_arms!r:.80}; pass [{open_arms!r:.40}].")
    given = _listed_arms(open_arms)
    if given.dtype == np.bool_:
        if given.shape != (problem.arms,):
            raise ShapeError(f"open must be a mask of {problem.arms} arms, names or numbers, got shape {given.shape}.")
        return given
    if given.ndim != 1:
        raise SettingError(
            f"open must be a list of arms such as {list(problem.arm_names[:2])}, or a mask of {problem.arms} arms, "
            f"got {open_arms!r:.80}."
        )
    mask = np.zeros(problem.arms, dtype=np.bool_)
    mask[[arm_number(problem, arm, "open") for arm in given.tolist()]] = True
    return mask


def _listed_arms(open_arms: Any) -> npt.NDArray[Any]:
    """Arms as an array; a set has no order, which a list of arms does not need."""
    if isinstance(open_arms, Set):
        open_arms = list(open_arms)
    try:
        return np.asarray(open_arms)
    except ValueError:  # rows of different lengths
        return np.empty((0, 0))


def arm_number(problem: Problem, arm: Any, setting: str = "arm") -> int:
    """The number of an arm that is given by name or number."""
    if isinstance(arm, str):
        return position(arm, problem.arm_names, setting)
    return whole(arm, setting, at_least=0, at_most=problem.arms - 1)


def _units_of_caps(engine: Engine, caps: Any) -> Ints:
    """(d, m) caps in grid units; -1 where there is none."""
    problem, names = engine.problem, engine.problem.resource_names
    if isinstance(caps, Mapping):
        unknown = [name for name in caps if name not in names]
        if unknown:
            raise NamesError(f"caps must be for some of the resources {list(names)}, got {unknown}.")
        caps = [caps.get(name, np.inf) for name in names]
    values = by_resource_and_arm(_finite(caps), names, problem.arm_names, "caps")
    if values.ndim == 1:
        values = np.repeat(values[:, None], problem.arms, axis=1)
    if (values < 0).any() and not ((values >= 0) | (values == NO_CAP)).all():
        raise OutOfRangeError(f"caps must be 0 or more, got {values.min():g}.")
    rows = zip(values.tolist(), exponents_of(engine.ledger), strict=True)
    units = [[-1 if cap == NO_CAP else whole_units(cap, k, up=True) for cap in row] for row, k in rows]
    return np.array(units, dtype=np.int64)


NO_CAP: Final = -1e300  # stands for a resource without a cap, which must be a finite number


def _finite(caps: Any) -> Any:
    """Caps with ``NO_CAP`` in place of those that are left out."""
    if isinstance(caps, list):
        return [NO_CAP if isinstance(cap, float) and cap == np.inf else cap for cap in caps]
    return caps


def checked_outcomes(
    problem: Problem,
    count: int,
    rewards: npt.ArrayLike,
    costs: npt.ArrayLike | Mapping[str, npt.ArrayLike] | Sequence[Mapping[str, float]],
) -> tuple[Floats, Floats]:
    """(n,) rewards and (n, d) costs, which are given as rows, as columns by name, or as one mapping for each row."""
    gains = floats(rewards, "rewards", (count,))
    uses = _costs_in_order(problem, count, costs)
    if (uses < 0).any():
        raise OutOfRangeError(f"costs must be 0 or more, got {uses.min():g}.")
    return gains, uses


def _costs_in_order(problem: Problem, count: int, costs: Any) -> Floats:
    """(n, d) finite costs in the order of the budget."""
    names = problem.resource_names
    if isinstance(costs, Mapping):
        columns = zip(names, by_name(costs, names, "costs"), strict=True)
        return np.column_stack([floats(column, f"costs of {name!r}", (count,)) for name, column in columns])
    if isinstance(costs, (list, tuple)) and any(isinstance(row, Mapping) for row in costs):
        costs = [by_name(row, names, "costs") for row in costs]
    if problem.resources == 1 and _is_flat(costs):
        return floats(costs, "costs", (count,))[:, None]
    return floats(costs, "costs", (count, problem.resources))


def _is_flat(costs: Any) -> bool:
    """Whether costs are a single row of numbers; rows of different lengths are not."""
    try:
        return np.ndim(costs) == 1
    except ValueError:
        return False


def settle_batch(engine: Engine, slots: Ints, rewards: Floats, costs: Floats) -> None:
    """Settle decisions that are pending; raise before anything is changed if an amount is too large."""
    desk, ledger = engine.desk, engine.ledger
    ledgers = [ledger, *(season.ledger for season in engine.past.values())]
    held = np.max([np.add(one.charged, one.reserved, dtype=np.float64) for one in ledgers], axis=0)
    kept = np.maximum(desk.awaited.reserved[slots], 0)
    largest = np.maximum(costs * ledger.fine / ledger.coarse - kept, 0.0).sum(axis=0) + held  # in whatever order
    if (largest > MOST_UNITS).any():
        raise OutOfRangeError(
            "costs must be amounts that the ledger can hold; are they in other units than the budget?"
        )
    if not engine.any_in_past(slots):
        steps.settle_many(engine.state, ledger, engine.terms, desk, slots, rewards, costs)
        return
    engine.settle_each(slots, rewards, costs)


def amounts_to_add(problem: Problem, amounts: Amounts | None, by_resource: Mapping[str, float]) -> Floats:
    """(d,) amounts that are given in order, by name, or as keywords, of which some may be left out."""
    given: Any = amounts
    if by_resource and amounts is not None:
        raise SettingError("give the amounts once, in order or by name, got both.")
    if amounts is None or isinstance(amounts, Mapping):
        named = dict(by_resource) if amounts is None else dict(amounts)
        unknown = [name for name in named if name not in problem.resource_names]
        if unknown or not named:
            raise NamesError(f"grant needs amounts of {list(problem.resource_names)}, got {unknown or 'none'}.")
        given = [named.get(name, 0.0) for name in problem.resource_names]
    added = vector(given, "amounts", problem.resources)
    if (added < 0).any():
        raise OutOfRangeError(f"amounts must be 0 or more, got {added.min():g}; a grant adds to a budget.")
    return added


def new_budget(problem: Problem, budget: Amounts | None) -> Floats:
    """(d,) the budgets of a new season."""
    given = problem.budget if budget is None else by_name(budget, problem.resource_names, "budget")
    amounts = vector(given, "budget", problem.resources)
    for amount in amounts.tolist():
        at_least_zero(amount, "budget")
    return amounts


def factors_of(problem: Problem, cost_factor: Amounts) -> Floats:
    """(d,) what the costs of an arm are multiplied by."""
    factors = vector(by_name(cost_factor, problem.resource_names, "cost_factor"), "cost_factor", problem.resources)
    for factor in factors.tolist():
        above_zero(factor, "cost_factor", LARGEST_SETTING)
    return factors


def with_arm(problem: Problem, name: str, cost_max: Amounts | None) -> Problem:
    """The problem with one more arm."""
    if name in problem.arm_names:
        raise NamesError(f"the name of a new arm must differ from {list(problem.arm_names)}, got {name!r}.")
    if cost_max is not None and not problem.bounded:
        raise SettingError("the problem has no cost_max, so an arm cannot have one; give it to Problem as well.")
    most = None
    if problem.bounded:
        given = problem.cost_max if cost_max is None else by_name(cost_max, problem.resource_names, "cost_max")
        column = vector(given, "cost_max", problem.resources)
        by_arm = np.column_stack([problem.cost_max_by_arm, column])
        most = by_arm if problem.arm_cost_max is not None or cost_max is not None else column
    changes: dict[str, Any] = {
        "arms": problem.arms + 1,
        "arm_names": (*problem.arm_names, name),
        "cost_max": most,
        "arm_cost_max": None,
        "slots": max(problem.slots, problem.arms + 1),
    }
    return replace(problem, **changes)


def past_outcomes(policy: Policy, problem: Problem, log: PastOutcomes, half_life: float | None) -> PastRounds:
    """The rounds of a log that are learnt."""
    for name in ("arms", "resources", "arm", "reward", "costs"):
        if not hasattr(log, name):
            raise SettingError(f"log must be a log such as ds.logs.read returns, got {log!r:.80}.")
    arms = positions(
        problem.arm_names, log.arms, default_arm_names(problem.arms), "the arms of the log and the problem"
    )
    default = default_resource_names(problem.resources)
    resources = positions(log.resources, problem.resource_names, default, "the resources of the log and the problem")
    numbers = np.array([*arms, SKIP])[np.asarray(log.arm)]
    rewards = floats(log.reward, "rewards", (len(numbers),))
    costs = floats(np.asarray(log.costs)[:, resources], "costs", (len(numbers), problem.resources))
    if (costs < 0).any():
        raise OutOfRangeError(f"costs must be 0 or more, got {costs.min():g}.")
    chances = np.ones(len(numbers)) if log.propensity is None else np.asarray(log.propensity, dtype=np.float64)
    contexts = contexts_of(policy, problem, len(numbers), getattr(log, "contexts", None) if problem.features else None)
    used = _thinned(len(numbers), half_life)
    return PastRounds(numbers[used].astype(np.int64), chances[used], rewards[used], costs[used], contexts[used])


def _thinned(count: int, half_life: float | None) -> Bools:
    """(n,) which rounds are used: evenly, a share of them that halves with each half-life of age."""
    if half_life is None:
        return np.ones(count, dtype=np.bool_)
    ages = np.arange(count)[::-1]
    mass = np.cumsum(0.5 ** (ages / above_zero(half_life, "half_life"))[::-1])[::-1]  # from each round to the last
    used: Bools = np.floor(mass) > np.floor(np.append(mass[1:], 0.0))
    return used
