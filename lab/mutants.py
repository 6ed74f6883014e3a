"""Plant faults in the measures, benchmarks, radii, windows and bounds of the library, and see whether `verify` notices.

A mutant replaces one function or property by a false one, wherever it is bound in the package. It is caught if a row
of ``driftsack verify`` no longer has its documented verdict. The rows that are named with a mutant are tried first, and
then all others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from driftsack import oco, theory
from driftsack.benchmarks import (
    dynamic_program,
    fixed_distribution,
    hard_fixed_distribution,
    lp_dynamic,
    lp_static,
    single_step,
)
from driftsack.measures import PriceInterval, Variation
from driftsack.oco.variation import global_variation
from driftsack.theory.refined import gamma
from driftsack.verify import STATEMENTS, Effort, Statement
from driftsack.verify.statement import FAILS, Case

Function = Callable[..., Any]


QUICK: Final = Effort(quick=True)


class Mutant(NamedTuple):
    """A fault: a false version of a function, or of a property of ``Variation``."""

    name: str
    rows: str  # a part of the names of the rows to try first
    original: Function | str  # a function, or the name of the property
    false: Function  # of the true result or, for a property, of the measures and the true value


def measure(name: str, label: str, false: Function) -> Mutant:
    """A false property of the measures."""
    return Mutant(label, "measures", name, false)


def result(row: str, original: Function, label: str, false: Function) -> Mutant:
    """A false result of a function; ``false`` gets the true result, then the arguments."""
    return Mutant(label, row, original, false)


def valued(factor: float) -> Function:
    """Multiply the value of a benchmark."""
    return lambda true, *_args, **_options: replace(true, value=factor * true.value)


def scaled(factor: float) -> Function:
    """Multiply a number."""
    return lambda true, *_args, **_options: factor * true


def with_value_of(other: Function) -> Function:
    """Use the value of another benchmark."""
    return lambda true, world, *_args, **_options: replace(true, value=other(world).value)


def printed_lower_bound(true: theory.LowerBounds, horizon: int, _arms: int, rate: float, *_: Any) -> theory.LowerBounds:
    """Theorem 2 (ii) as printed, with 1/b."""
    return true._replace(cost_drift=min(true.cost_drift * rate ** (-1 / 3), horizon))


MUTANTS: Final[tuple[Mutant, ...]] = (
    # Measures.
    measure("v1", "V1 halved", lambda _, true: 0.5 * true),
    measure("v1", "V1 doubled", lambda _, true: 2.0 * true),
    measure("v2", "V2 := V2^Σ", lambda moves, _: moves.v2_sum),
    measure("v2", "V2 halved", lambda _, true: 0.5 * true),
    measure("v2_sum", "V2^Σ := V2", lambda moves, _: moves.v2),
    measure("v2_sum", "V2^Σ doubled", lambda _, true: 2.0 * true),
    measure("w1", "W1 doubled", lambda _, true: 2.0 * true),
    measure("w1", "W1 := W1_min", lambda moves, _: moves.w1_min),
    measure("w2", "W2 doubled", lambda _, true: 2.0 * true),
    measure("w2", "W2 halved", lambda _, true: 0.5 * true),
    measure("w1_min", "W1_min := W1", lambda moves, _: moves.w1),
    measure("w2_min", "W2_min := W2", lambda moves, _: moves.w2),
    measure("w1_pair", "W1_pair halved", lambda _, true: 0.5 * true),
    measure("w1_pair", "W1_pair := W1", lambda moves, _: moves.w1),
    measure("w2_pair", "W2_pair halved", lambda _, true: 0.5 * true),
    measure("w2_pair", "W2_pair := W2", lambda moves, _: moves.w2),
    measure("q_bar", "q̄ := 0", lambda _moves, _true: 0.0),
    measure("q_bar", "q̄ doubled", lambda _, true: 2.0 * true),
    measure("q_bar_full", "q̄ with the mean := 0", lambda _moves, _true: 0.0),
    measure("q_bar_interval", "interval of q̄ := {0}", lambda _moves, _true: PriceInterval(0.0, 0.0)),
    measure("q_bar_interval", "interval of q̄ := {largest}", lambda _, true: PriceInterval(true.largest, true.largest)),
    measure(
        "q_bar_full_interval", "interval with the mean := {least}", lambda _, true: PriceInterval(*[true.least] * 2)
    ),
    # Benchmarks.
    result("benchmarks", lp_dynamic, "LP-Dynamic × 1.1", valued(1.1)),
    result("benchmarks", lp_dynamic, "LP-Dynamic × 0.9", valued(0.9)),
    result("benchmarks", lp_dynamic, "LP-Dynamic := even allocation", with_value_of(single_step)),
    result("benchmarks", lp_static, "LP-Static := LP-Dynamic", with_value_of(lp_dynamic)),
    result("benchmarks", lp_static, "LP-Static × 0.9", valued(0.9)),
    result("benchmarks", single_step, "even allocation × 0.9", valued(0.9)),
    result("benchmarks", single_step, "even allocation := LP-Static", with_value_of(lp_static)),
    result("benchmarks", fixed_distribution, "OPT_FD (fluid) := LP-Static", with_value_of(lp_static)),
    result("benchmarks", hard_fixed_distribution, "OPT_FD (hard) × 0.9", valued(0.9)),
    result("benchmarks", dynamic_program, "OPT_DP := LP-Dynamic", with_value_of(lp_dynamic)),
    # Radii.
    result("radii", theory.radius_constant, "radius halved", scaled(0.5)),
    result("radii", theory.radius_constant, "radius doubled", scaled(2.0)),
    result("radii", theory.radius_constant, "radius without the 2", scaled(0.5**0.5)),
    result("radii", theory.refined_radius, "refined radius halved", scaled(0.5)),
    result("radii", gamma, "γ halved", scaled(0.5)),
    result("radii", theory.log_term, "L := 2L/3", scaled(2 / 3)),
    result("radii", theory.epsilon, "ε halved", scaled(0.5)),
    # Windows.
    result("radii", theory.window, "windows doubled", lambda true, *_a, **_o: 2 * true),
    result("radii", theory.window, "windows halved", lambda true, *_a, **_o: max(true // 2, 1)),
    result("radii", theory.window, "windows := T", lambda _true, horizon, *_a, **_o: horizon),
    # Bounds.
    result("radii", theory.stopping_time_bound, "Corollary 1 halved", scaled(0.5)),
    result(
        "radii", theory.concentration_bounds, "Lemma 3, rewards halved", lambda t, *_: t._replace(rewards=t.rewards / 2)
    ),
    result("radii", theory.regret_bound, "Theorem 1 without learning", lambda t, *_: t._replace(reward_learning=0.0)),
    result("radii", theory.repaired_regret_bound, "R1 without timing", lambda t, *_: t._replace(budget_timing=0.0)),
    result(
        "radii",
        theory.regret_lower_bounds,
        "Theorem 2 (ii) as printed",
        printed_lower_bound,
    ),
    result("radii", theory.repaired_refined_bound, "R3 without drift", lambda t, *_: t._replace(cost_drift=0.0)),
    result("radii", theory.remaining_pace_bound, "N3 without drift", lambda t, *_: t._replace(cost_drift=0.0)),
    result("radii", theory.remaining_pace_bound, "N3, costs not over b", lambda t, *_: t._replace(cost_learning=1.0)),
    # Convex optimisation.
    result("proposition-2", oco.static_optimum, "OPT := OPT'", lambda _t, problem: oco.restricted_optimum(problem)),
    result("proposition-2", global_variation, "W doubled", valued(2.0)),
)
"""The faults: at least forty, of every kind."""


def clear_caches() -> None:
    """Forget results that checks have cached."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("driftsack.verify", "driftsack.paper")):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def bindings(function: Function) -> Iterator[tuple[Any, str]]:
    """Every module of the package, with the names under which it has a function."""
    for name, module in list(sys.modules.items()):
        if name == "driftsack" or name.startswith("driftsack."):
            for key, value in list(vars(module).items()):
                if value is function:
                    yield module, key


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """Replace a function or a property by the false one."""
    clear_caches()
    original, false = mutant.original, mutant.false
    if isinstance(original, str):
        attribute = vars(Variation)[original]
        true = attribute.func if isinstance(attribute, cached_property) else attribute.fget
        setattr(Variation, original, property(lambda moves: false(moves, true(moves))))
        try:
            yield
        finally:
            setattr(Variation, original, attribute)
            clear_caches()
        return
    places = list(bindings(original))

    def wrong(*args: Any, **options: Any) -> Any:
        return false(original(*args, **options), *args, **options)

    for module, name in places:
        setattr(module, name, wrong)
    try:
        yield
    finally:
        for module, name in places:
            setattr(module, name, original)
        clear_caches()


def notices(statement: Statement, effort: Effort) -> bool:
    """Whether a row has another verdict than the documented one, or fails with an error, or becomes weak or vacuous."""
    try:
        finding = statement.check(effort, Case.STATEMENT)
    except Exception:  # a fault may break any check in any way
        return True
    return finding.verdict is FAILS


def catch(mutant: Mutant, statements: Sequence[Statement] = STATEMENTS, effort: Effort = QUICK) -> str | None:
    """Return the name of the first row that notices a mutant; None if it survives."""
    first = [statement for statement in statements if mutant.rows in statement.name]
    others = [statement for statement in statements if mutant.rows not in statement.name]
    with planted(mutant):
        for statement in [*first, *others]:
            if notices(statement, effort):
                return statement.name
    return None


def catch_all(show: Callable[[str, str | None], None]) -> list[str]:
    """Try every mutant; return the names of the survivors."""
    survivors = []
    for mutant in MUTANTS:
        row = catch(mutant)
        show(mutant.name, row)
        if row is None:
            survivors.append(mutant.name)
    return survivors
