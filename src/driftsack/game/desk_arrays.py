"""The desk of a learner as arrays for a file, and back, with checks before a kernel uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Ints
from driftsack.core.checks import LARGEST_FLOAT, LARGEST_INT, LARGEST_OUTCOME, ROUNDING
from driftsack.core.encoder import LARGEST_FEATURE
from driftsack.game.amounts import MOST_UNITS
from driftsack.game.desk import (
    FORFEITED,
    FREE,
    MOST_EPOCHS,
    PENDING,
    SETTLED_KEPT,
    AwaitedTable,
    DecisionDesk,
    new_awaited,
)
from driftsack.game.expected_costs import LARGEST
from driftsack.game.ledger import Ledger
from driftsack.game.listed_costs import KEPT, LARGEST_FACTOR, LISTS
from driftsack.game.records import Terms
from driftsack.game.state_checks import check_array

Stored = dict[str, npt.NDArray[Any]]
DESK: Final = ("begun", "clock", "season", "last")
TERMS: Final = ("rate", "end", "open", "version", "delay", "must_share")
ROWS: Final = AwaitedTable._fields[:-6]  # all but factors, contexts, parts of outcomes and the free slots
PARTS: Final = ("reward", "costs")  # stored only if a part of an outcome was told
FACTORS: Final = "factors"  # kept only if costs were listed
CONTEXTS: Final = "contexts"  # kept only if requests have features
SETTLED: Final = ("number", "epoch", "kind", "outcome")
LARGEST_RATE: Final = 1e70  # in units of cost_max; the grid of a ledger allows no larger budgets
OVERRUNS: Final = ("decisions", "excess", "clipped", "forced")
RARE: Final = ("overruns.costs", "overruns.outside", "desk.blocked")  # stored only if they are not 0
RECORD: Final = ("seen", "top", "means", "squares")  # of costs; stored only in the statistical mode
FLOORS: Final = ("gained", "counted")  # stored only with floors
LARGEST_COSTS: Final = dict(
    zip([f"costs.{name}" for name in RECORD], (float(LARGEST_INT), LARGEST, LARGEST, LARGEST**2), strict=True)
)
SUMS: Final = 1e-9  # relative error of a sum of floats, over more rounds than are ever played


def desk_arrays(desk: DecisionDesk, terms: Terms) -> Stored:
    """Return the arrays of a file; the order of decisions does not depend on their slots."""
    awaited, settled = desk.awaited, desk.settled
    used = np.flatnonzero(awaited.status != FREE)
    used = used[np.argsort(awaited.number[used])]
    count, size = int(settled.total[0]), settled.number.size
    latest = (count + np.arange(size)) % size if count >= size else np.arange(count)  # oldest first
    found = {f"desk.{name}": getattr(desk, name) for name in (*DESK, "cost_unit")}
    found |= {f"terms.{name}": getattr(terms, name) for name in TERMS}
    listed = {f"listed.{name}": getattr(terms.prices, name) for name in KEPT}
    found |= listed if terms.prices.active[0] else {}
    found |= {f"pending.{name}": getattr(awaited, name)[used] for name in _rows(awaited, terms)}
    if np.any(_parts(awaited)):
        found |= {f"pending.{name}": getattr(awaited, name)[used] for name in PARTS}
    found |= {f"settled.{name}": getattr(settled, name)[latest] for name in SETTLED}
    found |= {"settled.total": settled.total}
    found |= {f"overruns.{name}": getattr(desk.overruns, name) for name in OVERRUNS}
    found |= {name: array for name, array in _rare(desk).items() if array.any()}
    return found | _floors(terms) | (_record(terms) if terms.costs.on[0] else {})


def _rare(desk: DecisionDesk) -> Stored:
    """The counts of rare events."""
    return dict(zip(RARE, (desk.overruns.costs, desk.overruns.outside, desk.blocked), strict=True))


def _record(terms: Terms) -> Stored:
    """The costs of each arm so far."""
    return {f"costs.{name}": getattr(terms.costs, name) for name in RECORD}


def _floors(terms: Terms) -> Stored:
    """What counts towards each floor so far."""
    return {f"floors.{name}": getattr(terms.floors, name) for name in FLOORS if terms.floors.least.size}


def _rows(awaited: AwaitedTable, terms: Terms) -> tuple[str, ...]:
    """The fields that are always kept of each decision."""
    rows = (*ROWS, CONTEXTS) if awaited.contexts.shape[1] else ROWS
    return (*rows, FACTORS) if terms.prices.active[0] else rows


def _parts(awaited: AwaitedTable) -> tuple[Bools, Bools]:
    """(n,) the decisions whose reward was told without costs, and those whose costs were told without a reward."""
    used = awaited.status != FREE
    return used & ~np.isnan(awaited.reward), used & ~np.isnan(awaited.costs).any(axis=1)


def put_back(targets: Mapping[str, npt.NDArray[Any]], stored: Mapping[str, npt.NDArray[Any]]) -> None:
    """Copy arrays of a file into those of a new learner, some of which may share memory."""
    for name, target in targets.items():
        if name not in stored:
            raise ValueError(f"the array {name} is missing")
        if stored[name].shape != target.shape or stored[name].dtype != target.dtype:
            raise ValueError(f"array {name} has another shape or type than this problem needs")
        target[...] = stored[name]
    for name, target in targets.items():
        if target.tobytes() != stored[name].tobytes():
            raise ValueError(f"array {name} shares memory with another one that differs")


def fill_desk(desk: DecisionDesk, terms: Terms, stored: Stored, arms: int) -> DecisionDesk:
    """Fill the desk and the terms of a new learner from the arrays of a file; return the desk.

    Raises:
        ValueError: An array has another shape or type, or values that are not possible.
    """
    # Counters, terms and overruns
    put_back({f"desk.{name}": getattr(desk, name) for name in DESK}, stored)
    put_back({f"terms.{name}": getattr(terms, name) for name in TERMS}, stored)
    put_back({f"overruns.{name}": getattr(desk.overruns, name) for name in OVERRUNS}, stored)
    put_back({name: array for name, array in _rare(desk).items() if name in stored}, stored)
    put_back(_record(terms) if terms.costs.on[0] else {}, stored)
    put_back(_floors(terms), stored)
    begun, clock = int(desk.begun[0]), int(desk.clock[0])
    check_array("desk.clock", desk.clock, (0, LARGEST_INT))
    check_array("desk.begun", desk.begun, (0, clock))
    check_array("desk.season", desk.season, (0, LARGEST_INT))
    check_array("desk.last", desk.last, (-1, LARGEST_INT))
    check_array("terms.open", terms.open, (False, True))
    check_array("terms.rate", terms.rate, (0.0, LARGEST_RATE))
    check_array("terms.end", terms.end, (0.0, float(LARGEST_INT)))
    check_array("terms.version", terms.version, (0, LARGEST_INT))
    check_array("terms.delay", terms.delay, (0.0, float(LARGEST_INT)))
    check_array("terms.must_share", terms.must_share, (0.0, 1.0))
    for name in desk.overruns._fields:
        check_array(f"overruns.{name}", getattr(desk.overruns, name), (0, LARGEST_INT))
    check_array("desk.blocked", desk.blocked, (0, begun))
    for name, array in _record(terms).items():
        check_array(name, array, (0.0, LARGEST_COSTS[name]))
    for name, array in _floors(terms).items():
        check_array(name, array, (0.0, float(LARGEST_INT) * LARGEST_OUTCOME))
    _fill_settled(desk, stored, begun)
    _fill_prices(terms, stored, clock)
    awaited = _awaited(stored, arms, desk, terms)
    # Pending decisions of the present season, by arm
    present = (awaited.status == PENDING) & (awaited.season == desk.season[0])
    terms.pending[:] = np.bincount(awaited.arm[present], minlength=arms)
    unpaid = present & ~_parts(awaited)[1]
    terms.unpaid[:] = np.bincount(awaited.arm[unpaid], minlength=arms)
    if terms.costs.on[0]:
        np.add.at(terms.costs.owed.T, awaited.arm[unpaid], np.maximum(awaited.reserved[unpaid], 0))
    return desk._replace(awaited=awaited)


def _fill_prices(terms: Terms, stored: Stored, clock: int) -> None:
    """Fill the record of price lists."""
    prices = terms.prices
    if "listed.active" not in stored:
        return
    put_back({f"listed.{name}": getattr(prices, name) for name in KEPT}, stored)
    check_array("listed.active", prices.active, (True, True))
    for name in ("factors", "usual"):
        check_array(f"listed.{name}", getattr(prices, name), (0.0, LARGEST_FACTOR**2))
    check_array("listed.lists", prices.lists, (0.0, LISTS))
    for name in ("reference", "common"):
        check_array(f"listed.{name}", getattr(prices, name), (0.0, LARGEST_RATE))
    check_array("listed.swing", prices.swing, (0.0, LARGEST_RATE))
    check_array("listed.round", prices.round, (-1, clock - 1))


def _fill_settled(desk: DecisionDesk, stored: Stored, begun: int) -> None:
    """Fill the record of settled decisions."""
    settled, total = desk.settled, stored["settled.total"]
    put_back({"settled.total": settled.total}, stored)
    check_array("settled.total", total, (0, begun))
    rows = min(int(total[0]), SETTLED_KEPT)
    first = int(total[0]) % SETTLED_KEPT if total[0] >= SETTLED_KEPT else 0
    places = (first + np.arange(rows)) % SETTLED_KEPT
    for name in SETTLED:
        target, given = getattr(settled, name), stored[f"settled.{name}"]
        if given.shape != (rows, *target.shape[1:]) or given.dtype != target.dtype:
            raise ValueError(f"array settled.{name} has another shape or type than this problem needs")
        target[places] = given
    check_array("settled.number", settled.number, (0, begun))
    check_array("settled.epoch", settled.epoch, (0, MOST_EPOCHS - 1))
    check_array("settled.kind", settled.kind, (0, 2))
    check_array("settled.outcome", settled.outcome, (-LARGEST_FLOAT, LARGEST_FLOAT))


def _awaited(stored: Stored, arms: int, desk: DecisionDesk, terms: Terms) -> AwaitedTable:
    """The table of decisions that wait for an outcome."""
    begun, clock = int(desk.begun[0]), int(desk.clock[0])
    count = len(stored["pending.number"])
    capacity = 16
    while capacity < count:
        capacity *= 2
    table = new_awaited(capacity, arms, desk.prices.size, desk.awaited.contexts.shape[1])
    names = (*_rows(table, terms), *(PARTS if "pending.reward" in stored else ()))
    for name in names:
        target, given = getattr(table, name), stored[f"pending.{name}"]
        if given.shape != (count, *target.shape[1:]) or given.dtype != target.dtype:
            raise ValueError(f"array pending.{name} has another shape or type than this problem needs")
        target[:count] = given
    table.left[0] = capacity - count
    # Every field must be within its bounds.
    bounds: dict[str, tuple[Any, Any]] = {
        "status": (PENDING, FORFEITED),
        "number": (1, begun),
        "t": (0, clock - 1),
        "arm": (0, arms - 1),
        "season": (0, LARGEST_INT),
        "epoch": (0, MOST_EPOCHS - 1),
        "probability": (0.0, 1.0 + ROUNDING),
        "reserved": (-1, MOST_UNITS),
        "must": (0, 1),
        FACTORS: (0.0, LARGEST_FACTOR**2),
        "mixes": (0.0, 1.0 + ROUNDING),
        "prices": (-LARGEST_FLOAT, LARGEST_FLOAT),
        CONTEXTS: (-LARGEST_FEATURE, LARGEST_FEATURE),
    }
    for name, limits in bounds.items():
        check_array(f"pending.{name}", getattr(table, name)[:count], limits)
    check_array("pending.at", np.nan_to_num(table.at[:count], nan=0.0), (-LARGEST_FLOAT, LARGEST_FLOAT))
    _check_parts(table, count)
    # The decisions must be consistent.
    mixes = table.mixes[:count]
    if (np.diff(table.number[:count]) <= 0).any() or (np.diff(table.t[:count]) <= 0).any():
        raise ValueError("pending decisions must be of different rounds, in order")
    if (mixes.sum(axis=1) > 1.0 + ROUNDING).any():
        raise ValueError("the mixes of pending decisions must sum to at most 1")
    if (mixes[np.arange(count), table.arm[:count]] != table.probability[:count]).any():
        raise ValueError("the probability of a pending decision must be that of its mix")
    return table


def _check_parts(table: AwaitedTable, count: int) -> None:
    """Check the parts of outcomes, of which at most one was told."""
    earned, paid = _parts(table)
    if (earned & paid).any() or not np.isnan(table.costs[:count][~paid[:count]]).all():
        raise ValueError("of a pending outcome either the reward or all costs may have been told")
    check_array("pending.reward", table.reward[earned], (-LARGEST_FLOAT, LARGEST_FLOAT))
    check_array("pending.costs", table.costs[paid], (0.0, LARGEST_FLOAT))


def check_ledgers(desk: DecisionDesk, past: Mapping[int, Ledger], ledger: Ledger) -> None:
    """Check the ledgers of all seasons, and derive their reservations from the pending decisions.

    Raises:
        ValueError: A decision belongs to a season without a ledger, or amounts are not possible.
    """
    ledgers = {**past, int(desk.season[0]): ledger}
    used = np.flatnonzero(desk.awaited.status != FREE)
    seasons = desk.awaited.season[used]
    if not set(seasons.tolist()) >= set(past) or not set(seasons.tolist()) <= set(ledgers):
        raise ValueError("every pending decision needs the ledger of its season, and no other season has one")
    for number, own in ledgers.items():
        check_array("ledgers.granted", own.granted, (0, MOST_UNITS))
        check_array("ledgers.charged", own.charged, (0, MOST_UNITS))
        rounded = desk.begun[0] + 1 + SUMS * own.charged  # the exact amounts are rounded up to the grid
        if not (np.abs(own.spent * own.per_cost - own.charged) <= rounded).all():
            raise ValueError("the sums of floats in ledgers.spent must be near the exact ones in ledgers.charged")
        owed = (desk.awaited.status[used] == PENDING) & ~_parts(desk.awaited)[1][used]
        slots = used[(seasons == number) & owed]
        own.reserved[:] = _reserved(desk.awaited.reserved[slots])


def _reserved(reserved: Ints) -> list[int]:
    """Return the reservations of each resource."""
    totals = [sum(row) for row in np.maximum(reserved, 0).T.tolist()]  # in Python, where no sum overflows
    if any(total > MOST_UNITS for total in totals):
        raise ValueError("more is reserved than a ledger can hold")
    return totals
