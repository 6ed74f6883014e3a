"""Saved learners: what a file holds, and the checks that it passes before a kernel sees any of it.

Nothing in a file is trusted, since a digest can be computed by anyone. Policy and problem are built by their own
constructors, sizes are limited before anything is allocated, every array must have the shape and type that it has in a
new learner, and its content must be possible (:mod:`driftsack.game.state_checks`, :mod:`driftsack.game.desk_arrays`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core import file_format
from driftsack.core.checks import flag, number, share, whole
from driftsack.core.errors import FileFormatError
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.game.arrivals import ArrivalArrays, Arrivals
from driftsack.game.desk import FREE
from driftsack.game.desk_arrays import check_ledgers, desk_arrays, fill_desk, put_back
from driftsack.game.ledger import Ledger, planning_units
from driftsack.game.state_checks import check_array, check_state
from driftsack.game.state_tree import arrays, copy_state, parts
from driftsack.policies.engine import Engine, Season
from driftsack.policies.layout_3 import upgraded
from driftsack.policies.policy import Policy, from_spec
from driftsack.policies.requests import Clock

LAYOUT: Final = 5
WITHOUT_DESK: Final = 3
WITHOUT_SUMS: Final = 4  # of floats in the ledgers
OLDER: Final = (WITHOUT_DESK, WITHOUT_SUMS)
KIND: Final = "learner"
LEDGER_ARRAYS: Final = ("granted", "charged", "spent")
LARGEST_HORIZON: Final = 2**53
SMALL: Final = 10**5  # entries of a table of arms and resources that are allocated whatever the length of the file
HEX_DIGITS: Final = 16  # of a lineage


class Snapshot(NamedTuple):
    """Everything that a learner consists of.

    Attributes:
        engine: Arrays, policy, problem and randomness.
        clock: The times of requests.
        lineage: Which learner it is, shared with its copies.
    """

    engine: Engine
    clock: Clock
    lineage: str


def encode(snapshot: Snapshot) -> bytes:
    """The bytes of a file."""
    return file_format.encode(KIND, LAYOUT, _content(snapshot) | {"lineage": snapshot.lineage}, _arrays(snapshot))


def state_hash(snapshot: Snapshot) -> str:
    """A digest of everything that decides what a learner does next; so not of when decisions were made."""
    decisive = {name: array for name, array in _arrays(snapshot).items() if not name.endswith(".epoch")}
    return file_format.digest(_content(snapshot), decisive)


def _content(snapshot: Snapshot) -> dict[str, Any]:
    """The header of a file, without what identifies the learner."""
    engine, clock = snapshot.engine, snapshot.clock
    return {
        "policy": engine.policy.to_spec(),
        "problem": engine.problem.to_dict(),
        "safe": engine.safe,
        "fallbacks": engine.fallbacks,
        "rng": engine.rng.bit_generator.state,
        "start": clock.start,
        "latest": clock.latest if np.isfinite(clock.latest) else None,
        "rollovers": [season.rollover for _, season in _past(engine)],
    }


def _past(engine: Engine) -> list[tuple[int, Season]]:
    """The earlier seasons with decisions that wait; a signal may interrupt a learner before it forgets the others."""
    awaited = engine.desk.awaited
    needed = set(awaited.season[awaited.status != FREE].tolist())
    return [(number, season) for number, season in sorted(engine.past.items()) if number in needed]


def _arrays(snapshot: Snapshot) -> dict[str, npt.NDArray[Any]]:
    """Every array of a file."""
    engine = snapshot.engine
    found = arrays(engine.state, "state") | desk_arrays(engine.desk, engine.terms)
    past = _past(engine)
    ledgers = [season.ledger for _, season in past] + [engine.ledger]
    for name in LEDGER_ARRAYS:
        found[f"ledgers.{name}"] = np.array([getattr(ledger, name) for ledger in ledgers])
    found["ledgers.seasons"] = np.array([*(number for number, _ in past), int(engine.desk.season[0])])
    found |= {"arms.offered": engine.offered, "arms.worst": engine.worst}
    if snapshot.clock.arrivals is not None:
        found |= arrays(snapshot.clock.arrivals.to_arrays(), "arrivals")
    return {name: np.array(array) for name, array in found.items()}


def decode(data: bytes, name: str) -> Snapshot:
    """Read and check the bytes of a file.

    Args:
        data: The bytes.
        name: What errors call them: the path of the file.

    Returns:
        A snapshot that is possible.

    Raises:
        FileFormatError: The bytes are damaged, of another kind or version, or not possible.
    """
    layout, content, stored = file_format.decode_any(data, KIND, (LAYOUT, *OLDER), name)
    try:
        return _checked(layout, content, stored, len(data))
    except Exception as error:  # constructors of policies raise errors of many kinds on settings that make no sense
        raise FileFormatError(f"{name} holds a learner that is inconsistent: {error}") from error


def _checked(layout: int, content: dict[str, Any], stored: dict[str, npt.NDArray[Any]], size: int) -> Snapshot:
    """Build a snapshot from what a file of ``size`` bytes holds, or raise an error."""
    for count in ("arms", "slots", "features"):
        given = content["problem"].get(count, 0)
        if isinstance(given, int) and given > max(SMALL, size):  # before the names of the arms are made
            raise ValueError("the learner would be larger than its file")
    if layout > WITHOUT_DESK and None in content["problem"].values():
        raise ValueError("the problem has a setting without a value")
    problem = Problem.from_dict(content["problem"])
    policy = from_spec(content["policy"])
    _check_sizes(policy, problem, size)
    given = dict(stored)
    if layout == WITHOUT_DESK:
        content, stored = upgraded(content, stored, problem, policy.new_state(problem))
    rng = generator(0)
    rng.bit_generator.state = content["rng"]
    if rng.bit_generator.state != content["rng"] or not content["rng"]["state"]["inc"] % 2:
        raise ValueError("the state of the randomness is not one of PCG64")
    unit = stored.get("desk.cost_unit", np.asarray(problem.cost_max))
    check_array("desk.cost_unit", unit, (np.finfo(np.float64).tiny, np.asarray(problem.cost_max)))
    same = unit.shape == (problem.resources,) and (unit == problem.cost_max).all()
    engine = Engine(policy, problem, flag(content["safe"], "safe"), rng, None if same else unit)
    new_state = copy_state(engine.state)
    _fill(engine, stored, layout=layout)
    _check_plan(engine)
    _set_rollovers(engine, content["rollovers"])
    engine.fallbacks = whole(content["fallbacks"], "fallbacks", at_least=0)
    check_state(engine.state, new_state, int(engine.desk.clock[0]))
    clock = _clock(problem, content, stored)
    engine.most = engine.most_amounts(engine.worst)
    engine.restore_terms()
    engine.pin()
    built = _arrays(Snapshot(engine, clock, ""))
    if layout == WITHOUT_SUMS:
        given["ledgers.spent"] = built["ledgers.spent"]
    if layout > WITHOUT_DESK:
        _check_same(built, given)
    lineage = content["lineage"]
    if len(lineage) != HEX_DIGITS or int(lineage, 16) < 0:
        raise ValueError("the lineage must have 16 hexadecimal digits")
    return Snapshot(engine, clock, lineage)


def _check_same(built: dict[str, npt.NDArray[Any]], given: dict[str, npt.NDArray[Any]]) -> None:
    """Raise unless a learner has exactly the arrays of its file, to the last bit."""
    differing = {name for name in built.keys() & given.keys() if not _same(built[name], given[name])}
    wrong = sorted(differing | (built.keys() ^ given.keys()))
    if wrong:
        raise ValueError(f"the arrays {wrong} are not those of a learner with this problem and policy")


def _same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return (one.shape, one.dtype) == (other.shape, other.dtype) and one.tobytes() == other.tobytes()


def _check_sizes(policy: Policy, problem: Problem, size: int) -> None:
    """Raise if the state would be larger than a file of ``size`` bytes can hold."""
    whole(problem.horizon, "horizon", at_least=1, at_most=LARGEST_HORIZON)
    table = (problem.resources + 1) * (problem.slots + problem.resources + 1)
    if table > max(SMALL, size) or 8 * policy.rounds_kept(problem) > size:
        raise ValueError("the learner would be larger than its file")


def _fill(engine: Engine, stored: dict[str, npt.NDArray[Any]], layout: int) -> None:
    """Copy the arrays of a file into those of a new learner.

    Args:
        engine: The engine of a new learner.
        stored: The arrays; those that are used are removed, except for the arrivals.
        layout: The layout of the file; that of layout 3 may lack arrays of the state, or have others.
    """
    known = arrays(engine.state, "state")
    given = {name: stored.pop(name) for name in list(stored) if name.startswith("state.")}
    if layout > WITHOUT_DESK and known.keys() != given.keys():
        raise ValueError(f"expected arrays {sorted(known)}, got {sorted(given)}")
    shared = known.keys() & given.keys()
    put_back({name: known[name] for name in shared}, {name: given[name] for name in shared})
    if layout == WITHOUT_DESK:
        _derive_accounts(engine.state)
    put_back({"arms.offered": engine.offered, "arms.worst": engine.worst}, stored)
    check_array("arms.worst", engine.worst, (-1, 8 * 10**18))
    engine.desk = fill_desk(engine.desk, engine.terms, stored, engine.offered.size)
    _fill_ledgers(engine, stored, layout)
    check_ledgers(engine.desk, {number: season.ledger for number, season in engine.past.items()}, engine.ledger)


def _derive_accounts(state: Any) -> None:
    """Set the exact amounts of accounts inside a state from an older file, which has them as floats."""
    for _, part in parts(state):
        if isinstance(part, Ledger):
            part.granted[:] = np.rint(part.budget * part.per_cost)
            part.charged[:] = np.rint(part.spent * part.per_cost)


def _fill_ledgers(engine: Engine, stored: dict[str, npt.NDArray[Any]], layout: int) -> None:
    """Rebuild the ledgers of the present and of earlier seasons."""
    seasons = stored["ledgers.seasons"]
    if seasons.ndim != 1 or not seasons.size or (np.diff(seasons) <= 0).any() or seasons[-1] != engine.desk.season[0]:
        raise ValueError("the seasons must be in order and end with the present one")
    ledgers = [copy_state(engine.ledger) for _ in seasons[:-1]] + [engine.ledger]
    if layout < LAYOUT:
        stored["ledgers.spent"] = stored["ledgers.charged"] / engine.ledger.per_cost
    for name in LEDGER_ARRAYS:
        like = getattr(engine.ledger, name)
        put_back({f"ledgers.{name}": np.zeros((seasons.size, like.size), dtype=like.dtype)}, stored)
        for ledger, row in zip(ledgers, stored[f"ledgers.{name}"], strict=True):
            getattr(ledger, name)[:] = row
    for ledger in ledgers:
        for j in range(ledger.granted.size):
            ledger.budget[j] = planning_units(ledger, j, ledger.granted[j])
    engine.past = {int(n): Season(ledger, 0.0) for n, ledger in zip(seasons[:-1], ledgers[:-1], strict=True)}


def _check_plan(engine: Engine) -> None:
    """Raise if a policy that follows a plan for one horizon could come to a round after it."""
    desk = engine.desk
    if not engine.policy.open_ended and (desk.last[0] != engine.problem.horizon or desk.clock[0] != desk.begun[0]):
        raise ValueError("a plan for one horizon has other rounds than those of the problem")


def _set_rollovers(engine: Engine, rollovers: list[Any]) -> None:
    """Set what share of the unused reservations of earlier seasons rolls over."""
    for season, rollover in zip(engine.past.values(), rollovers, strict=True):
        season.rollover = share(rollover, "rollover")


def _clock(problem: Problem, content: dict[str, Any], stored: dict[str, npt.NDArray[Any]]) -> Clock:
    """The times of requests."""
    clock = Clock(problem)
    clock.start = number(content["start"], "start")
    clock.latest = -np.inf if content["latest"] is None else number(content["latest"], "latest")
    fields = [stored[f"arrivals.{name}"] for name in ArrivalArrays._fields if f"arrivals.{name}" in stored]
    if fields:
        if problem.period is None:
            raise ValueError("arrivals are counted only in a period")
        kept = ArrivalArrays(*fields)
        clock.restore(Arrivals.from_arrays(kept), float(kept.period[0]))
    return clock
