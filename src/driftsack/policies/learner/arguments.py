"""Arguments of a learner's methods: validated, and converted to the order and units of the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import LARGEST_SETTING, above_zero, at_least_zero, flag, floats, number, vector, whole
from driftsack.core.encoder import Context, checked_context
from driftsack.core.errors import AbsurdCostError, NamesError, OutcomeError, OutOfRangeError, SettingError, ShapeError
from driftsack.core.names import Amounts, by_name, by_resource_and_arm, position
from driftsack.core.problem import Problem
from driftsack.game.admission import admit
from driftsack.game.amounts import whole_units
from driftsack.game.ledger import exponents_of
from driftsack.game.listed_costs import UNLISTED
from driftsack.game.units import checked_outcome
from driftsack.policies.learner.clock import Clock
from driftsack.policies.learner.engine import LearnerEngine
from driftsack.policies.learner.missing import UsualValues, new_usual_values, note_values
from driftsack.policies.policy import Policy

UNTIMED: Final = (math.nan, math.nan)  # no time, and the expected number of rounds stays
PLAIN: Final = {float, int}
LARGEST_SQUARE: Final = 1e18  # of the norm of a context; below it no feature is too large
NO_CAP: Final = -1e300  # a resource without a cap, which must be a finite number

# Requests


def open_request(
    engine: LearnerEngine,
    clock: Clock,
    open_arms: Any,
    caps: Any,
    at: Any,
    context: Any,
    must: bool = False,
    costs: Any = None,
) -> tuple[float, float]:
    """Set the terms of a request; return its time and the expected remaining rounds.

    Without a time the first is NaN; a second value of NaN keeps the previous estimate.
    """
    problem = engine.problem
    if engine.altered:
        engine.restore_terms()
    if open_arms is not None or caps is not None or must is not False:
        set_request(engine, open_arms, caps, flag(must, "must"))
    if costs is not None:
        set_listed(engine, costs)
    if engine.safe and not (problem.bounded or caps is not None):
        refuse_unbounded(problem)
    if context is not None or problem.features:
        set_features(engine, context)
    if at is None and problem.period is None:
        return UNTIMED
    if at is not None and engine.done:  # the round cannot begin, so it is not an arrival
        return UNTIMED
    return clock.advance(at)


def set_request(engine: LearnerEngine, open_arms: Any, caps: Any, must: bool = False) -> None:
    """Restrict the arms and the maximum costs of a request, and note whether it must be served."""
    problem = engine.problem
    engine.altered = True
    if open_arms is not None:
        engine.terms.offered[: problem.arms] &= mask_of(problem, open_arms)
    if (must or problem.fallbacks) and not engine.terms.offered.any():
        offered = [problem.arm_names[arm] for arm in np.flatnonzero(engine.offered[: problem.arms])]
        engine.restore_terms()
        raise SettingError(
            f"a request that must be served needs an arm that may serve it; open must include one of {offered}."
        )
    engine.terms.must[0] = must
    if caps is not None:
        limits = _units_of_caps(engine, caps)
        worst = engine.terms.worst[:, : problem.arms]
        worst[:] = np.where(worst < 0, limits, np.where(limits < 0, worst, np.minimum(worst, limits)))
        if engine.safe and (worst[:, engine.terms.offered[: problem.arms]] < 0).any():
            engine.restore_terms()
            refuse_unbounded(problem)


def set_listed(engine: LearnerEngine, costs: Any) -> None:
    """Set the listed costs of a request."""
    if not engine.policy.known_costs:
        raise SettingError(
            f"{type(engine.policy).__name__} cannot use listed costs; omit costs, or use Adaptive, or LinearBwK with "
            "contexts."
        )
    listed = listed_amounts(engine.problem, costs)
    engine.altered, prices = True, engine.terms.prices
    prices.given[0] = True
    known = listed >= 0.0
    amounts = listed / engine.desk.cost_unit[:, None]
    prices.listed[:, : engine.problem.arms] = np.where(known, amounts, UNLISTED)


def refuse_unbounded(problem: Problem) -> None:
    """Raise: a safe learner must know the maximum cost of every request."""
    raise SettingError(
        "safe=True reserves the maximum cost of a request, which is not known for every one of "
        f"{list(problem.resource_names)}; set cost_max, pass caps for each resource to ask, or start without safe."
    )


def admissible_arms(engine: LearnerEngine, open_arms: Any, caps: Any) -> Bools:
    """(m,) the arms that are open to the next request; afterwards the terms are those without restrictions."""
    terms = engine.terms
    before = terms.open.copy(), terms.version.copy()
    engine.restore_terms()
    try:
        set_request(engine, open_arms, caps)
        engine.kernels.call(admit, engine.ledger, terms, int(engine.desk.clock[0]), engine.admits)
        return terms.open[: engine.problem.arms].copy()
    finally:
        terms.open[:], terms.version[:] = before
        engine.restore_terms()


# Contexts


def set_features(engine: LearnerEngine, context: Context | None) -> None:
    """Set the context of a request; 0 if there is none and the policy does not use it."""
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
    engine.terms.context[:] = checked_context(problem.encoder, problem.features, context, engine.usual.means)


def contexts_of(
    policy: Policy, problem: Problem, count: int, contexts: Any, usual: UsualValues | None = None
) -> Floats:
    """(count, n) the features of several requests; ``usual`` has the values of missing ones before the first."""
    if contexts is None:
        if policy.needs_context:
            refuse_absence(policy, problem)
        return np.zeros((count, problem.features))
    refuse_features(problem)
    if len(contexts) != count:
        raise ShapeError(f"contexts must be one for each of {count} requests, got {len(contexts)}.")
    encoder, found = problem.encoder, np.empty((count, problem.features))
    seen = new_usual_values(problem) if usual is None else UsualValues(*(part.copy() for part in usual))
    for row, context in zip(found, contexts, strict=True):
        row[:] = checked_context(encoder, problem.features, context, seen.means)
        note_values(seen, encoder, row)
    return found


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


# Arms


def arm_number(problem: Problem, arm: Any, setting: str = "arm") -> int:
    """Return the number of an arm that is given by name or number."""
    if isinstance(arm, str):
        return position(arm, problem.arm_names, setting)
    return whole(arm, setting, at_least=0, at_most=problem.arms - 1)


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
    if isinstance(open_arms, np.ndarray) and given.size == problem.arms > 1 and np.isin(given, (0, 1)).all():
        raise SettingError(
            f"open={given.tolist()} could be a mask or the numbers of arms; pass a mask of bools, "
            f"open={given.astype(bool).tolist()}, or a list of arms."
        )
    mask = np.zeros(problem.arms, dtype=np.bool_)
    mask[[arm_number(problem, arm, "open") for arm in given.tolist()]] = True
    return mask


def _listed_arms(open_arms: Any) -> npt.NDArray[Any]:
    """Arms as an array; of two dimensions if they cannot be one."""
    if isinstance(open_arms, Set):
        open_arms = list(open_arms)
    try:
        return np.asarray(open_arms)
    except ValueError:  # rows of different lengths
        return np.empty((0, 0))


def with_arm(problem: Problem, name: str, cost_max: Amounts | None) -> Problem:
    """Return the problem with one more arm."""
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


# Amounts


def _units_of_caps(engine: LearnerEngine, caps: Any) -> Ints:
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


def _finite(caps: Any) -> Any:
    """Caps with ``NO_CAP`` in place of those that are left out."""
    if isinstance(caps, list):
        return [NO_CAP if isinstance(cap, float) and cap == np.inf else cap for cap in caps]
    return caps


def listed_amounts(problem: Problem, costs: Any) -> Floats:
    """(d, m) listed costs in the problem's units; ``UNLISTED`` where there is none."""
    names, arms = problem.resource_names, problem.arm_names
    if not isinstance(costs, Mapping):
        found = floats(costs, "costs", (problem.resources, problem.arms)).copy()
        _check_listed(found)
        return found
    unknown = [name for name in costs if name not in names]
    if unknown:
        raise NamesError(f"costs must be of some of the resources {list(names)}, got {unknown}.")
    found = np.full((problem.resources, problem.arms), UNLISTED)
    for name, row in costs.items():
        label, j = f"costs of {name!r}", names.index(name)
        if isinstance(row, Mapping):
            given = vector(list(row.values()), label, len(row)) if row else np.zeros(0)
            _check_listed(given)
            found[j, [position(arm, arms, label) for arm in row]] = given
        else:
            given = vector(row, label, 1 if np.ndim(row) == 0 else problem.arms)
            _check_listed(given)
            found[j] = given
    return found


def _check_listed(amounts: Floats) -> None:
    """Raise if a listed cost is negative."""
    if (amounts < 0).any():
        raise OutOfRangeError(f"costs must be 0 or more, got {amounts.min():g}.")


def outcome_of(problem: Problem, reward: float, costs: Any) -> tuple[float, Any]:
    """Return an outcome in the problem's units; values of the usual types are checked by the kernel."""
    if type(reward) in PLAIN:
        names = problem.resource_names
        if type(costs) is dict and len(costs) == len(names):
            try:
                costs = [costs[name] for name in names]
            except KeyError:
                return checked_outcome(problem, reward, costs)
        if type(costs) is list and len(costs) == len(names) and PLAIN.issuperset(map(type, costs)):
            return reward, costs
    return checked_outcome(problem, reward, costs)


def part_of(problem: Problem, reward: Any, costs: Any) -> tuple[float | None, Floats | None]:
    """Return a reward without costs, or (d,) costs without a reward, in the problem's units."""
    if reward is None and costs is None:
        raise OutcomeError("tell needs the reward, the costs, or both; use cancel if neither will arrive.")
    if costs is None:
        return number(reward, "reward"), None
    return None, checked_outcome(problem, 0.0, costs)[1]


def refuse_outcome(problem: Problem, reward: Any, costs: Any) -> None:
    """Raise the error of an outcome that the kernel did not accept."""
    checked_outcome(problem, reward, costs)
    raise OutOfRangeError(
        f"costs must be amounts that the ledger can hold, got {costs}; are they in other units than the budget?"
    )


def refuse_absurd(problem: Problem, costs: Any) -> None:
    """Raise the error of an outcome that costs more than the problem's limit."""
    named = dict(zip(problem.resource_names, np.asarray(costs, dtype=np.float64).tolist(), strict=True))
    limits = dict(zip(problem.resource_names, problem.cost_limit.tolist(), strict=True))
    raise AbsurdCostError(
        f"costs above {limits} are refused as absurd, got {named}; tell the corrected costs, or set "
        "Problem(refuse_above=...) if they are right. Nothing was changed."
    )


def amounts_to_add(
    problem: Problem, amounts: Amounts | None, by_resource: Mapping[str, float], method: str = "grant"
) -> Floats:
    """(d,) amounts that are given in order, by name, or as keywords, of which some may be left out."""
    given: Any = amounts
    if by_resource and amounts is not None:
        raise SettingError("give the amounts once, in order or by name, got both.")
    if amounts is None or isinstance(amounts, Mapping):
        named = dict(by_resource) if amounts is None else dict(amounts)
        unknown = [name for name in named if name not in problem.resource_names]
        if unknown or not named:
            raise NamesError(f"{method} needs amounts of {list(problem.resource_names)}, got {unknown or 'none'}.")
        given = [named.get(name, 0.0) for name in problem.resource_names]
    added = vector(given, "amounts", problem.resources)
    if (added < 0).any():
        adds = "adds to a budget" if method == "grant" else "adds to the spending; use grant for a refund"
        raise OutOfRangeError(f"amounts must be 0 or more, got {added.min():g}; {method} {adds}.")
    return added


def new_budget(problem: Problem, budget: Amounts | None) -> Floats:
    """(d,) the budgets of a new season; infinite for a resource without a budget, which none is given for."""
    amounts = np.array(problem.budget)
    limited = np.flatnonzero(np.isfinite(amounts))
    if budget is not None:
        given = by_name(budget, [problem.resource_names[j] for j in limited], "budget")
        amounts[limited] = vector(given, "budget", limited.size)
    for amount in amounts[limited].tolist():
        at_least_zero(amount, "budget")
    return amounts


def factors_of(problem: Problem, cost_factor: Amounts) -> Floats:
    """(d,) the factors by which the costs of an arm change."""
    factors = vector(by_name(cost_factor, problem.resource_names, "cost_factor"), "cost_factor", problem.resources)
    for factor in factors.tolist():
        above_zero(factor, "cost_factor", LARGEST_SETTING)
    return factors


def check_open_ended(policy: Policy, method: str) -> None:
    """Raise if a policy follows a plan for the horizon that it was started with."""
    if not policy.open_ended:
        raise SettingError(
            f"{method} changes the horizon, but {type(policy).__name__} follows a plan for the horizon that it was "
            "started with; use a policy without such a plan, or start a new learner."
        )
