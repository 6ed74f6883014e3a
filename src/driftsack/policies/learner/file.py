"""Learner files: their content, and the checks that it passes before a kernel uses it.

A file may be malicious, and anyone can compute its checksum (decision 19). Policy and problem are built by their own
constructors, sizes are limited before anything is allocated, every array must have the shape and type that it has in a
new learner, and its values must be possible (:mod:`driftsack.game.state_checks`, :mod:`driftsack.game.desk_arrays`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from driftsack.core import file_format
from driftsack.core.checks import number, safety, share, whole
from driftsack.core.errors import FileFormatError
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.game.amounts import MOST_UNITS
from driftsack.game.arrivals import ArrivalArrays, Arrivals
from driftsack.game.desk_arrays import check_ledgers, desk_arrays, fill_desk, put_back
from driftsack.game.ledger import planning_units
from driftsack.game.state_checks import check_array, check_state
from driftsack.game.state_tree import arrays, copy_state
from driftsack.numerics.compiled import interpreted
from driftsack.policies.learner.clock import Clock
from driftsack.policies.learner.engine import LearnerEngine, PastSeason
from driftsack.policies.policy import Policy, from_spec

LAYOUT: Final = 7
KIND: Final = "learner"
LEDGER_ARRAYS: Final = ("granted", "charged", "spent")
LARGEST_HORIZON: Final = 2**53
SMALL: Final = 10**5  # table entries that may be allocated for a file of any length
HEX_DIGITS: Final = 16  # of a lineage


class Snapshot(NamedTuple):
    """The parts of a learner that are saved."""

    engine: LearnerEngine  # arrays, policy, problem and random generator
    clock: Clock  # the times of requests
    lineage: str  # the identity of the learner, shared with its copies


def encode(snapshot: Snapshot) -> bytes:
    """Return the bytes of a file."""
    return file_format.encode(KIND, LAYOUT, _content(snapshot) | {"lineage": snapshot.lineage}, _arrays(snapshot))


def state_hash(snapshot: Snapshot) -> str:
    """Return a hash of the state that determines future decisions; epochs are excluded."""
    decisive = {name: array for name, array in _arrays(snapshot).items() if not name.endswith(".epoch")}
    return file_format.digest(_content(snapshot), decisive)


def _content(snapshot: Snapshot) -> dict[str, Any]:
    """Return the header of a file, without the lineage."""
    engine, clock = snapshot.engine, snapshot.clock
    return {
        "policy": engine.policy.to_spec(),
        "problem": engine.problem.to_dict(),
        "safe": engine.safe,
        "fallbacks": engine.lp_rescues,
        "rng": engine.rng.bit_generator.state,
        "start": clock.start,
        "latest": clock.latest if np.isfinite(clock.latest) else None,
        "rollovers": [season.rollover for _, season in _past(engine)],
    }


def _past(engine: LearnerEngine) -> list[tuple[int, PastSeason]]:
    """Return the earlier seasons with decisions that are not settled; a signal may come before others are forgotten."""
    needed = engine.awaited_seasons()
    return [(number, season) for number, season in sorted(engine.past.items()) if number in needed]


def _arrays(snapshot: Snapshot) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file."""
    engine = snapshot.engine
    found = arrays(engine.state, "state") | desk_arrays(engine.desk, engine.terms)
    past = _past(engine)
    ledgers = [season.ledger for _, season in past] + [engine.ledger]
    for name in LEDGER_ARRAYS:
        found[f"ledgers.{name}"] = np.array([getattr(ledger, name) for ledger in ledgers])
    found["ledgers.seasons"] = np.array([*(number for number, _ in past), int(engine.desk.season[0])])
    found |= {"arms.offered": engine.offered, "arms.worst": engine.worst}
    if engine.usual.counts.size:
        found |= arrays(engine.usual, "features")
    if snapshot.clock.arrivals is not None:
        found |= arrays(snapshot.clock.arrivals.to_arrays(), "arrivals")
    return {name: np.array(array) for name, array in found.items()}


def decode(data: bytes, name: str) -> Snapshot:
    """Read and check the bytes of a file; errors call them ``name``.

    Raises:
        FileFormatError: The bytes are damaged, of another kind or version, or not possible.
    """
    content, stored = file_format.decode(data, KIND, LAYOUT, name)
    try:
        return _checked(content, stored, len(data))
    except Exception as error:  # constructors of policies raise errors of many kinds on settings that make no sense
        raise FileFormatError(f"{name} holds a learner that is inconsistent: {error}") from error


def _checked(content: dict[str, Any], stored: dict[str, npt.NDArray[Any]], size: int) -> Snapshot:
    """Build a snapshot from the content of a file of ``size`` bytes, or raise an error."""
    # Limit the sizes before anything is allocated, then build problem and policy.
    for count in ("arms", "slots", "features"):
        given = content["problem"].get(count, 0)
        if isinstance(given, int) and given > max(SMALL, size):  # before the names of the arms are made
            raise ValueError("the learner would be larger than its file")
    if None in content["problem"].values():
        raise ValueError("the problem has a setting without a value")
    problem, policy = Problem.from_dict(content["problem"]), from_spec(content["policy"])
    _check_sizes(policy, problem, size)
    # Build a new learner and fill its arrays.
    unit = stored["desk.cost_unit"]
    check_array("desk.cost_unit", unit, (np.finfo(np.float64).tiny, np.asarray(problem.cost_max)))
    same = unit.shape == (problem.resources,) and (unit == problem.cost_max).all()
    safe, rng = safety(content["safe"]), _generator(content["rng"])
    engine = LearnerEngine(policy, problem, safe, rng, None if same else unit)
    new_state = copy_state(engine.state)
    _fill(engine, stored)
    # Check what it holds.
    _check_plan(engine)
    for season, rollover in zip(engine.past.values(), content["rollovers"], strict=True):
        season.rollover = share(rollover, "rollover")
    engine.lp_rescues = whole(content["fallbacks"], "fallbacks", at_least=0)
    check_state(engine.state, new_state, int(engine.desk.clock[0]))
    clock, lineage = _clock(problem, content, stored), content["lineage"]
    if len(lineage) != HEX_DIGITS or int(lineage, 16) < 0:
        raise ValueError("the lineage must have 16 hexadecimal digits")
    # Derive the rest. The learner must have exactly the arrays of its file.
    engine.most = engine.most_amounts(engine.worst)
    engine.restore_terms()
    engine.pin()
    snapshot = Snapshot(engine, clock, lineage)
    _check_same(_arrays(snapshot), stored)
    return snapshot


def _generator(given: dict[str, Any]) -> Generator:
    """Return the random generator with a state from a file."""
    rng = generator(0)
    rng.bit_generator.state = given
    if rng.bit_generator.state != given or not given["state"]["inc"] % 2:
        raise ValueError("the state of the randomness is not one of PCG64")
    return rng


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


def _fill(engine: LearnerEngine, stored: dict[str, npt.NDArray[Any]]) -> None:
    """Copy the arrays of a file into those of a new learner."""
    known = arrays(engine.state, "state")
    given = {name for name in stored if name.startswith("state.")}
    if known.keys() != given:
        raise ValueError(f"expected arrays {sorted(known)}, got {sorted(given)}")
    put_back(known, stored)
    put_back({"arms.offered": engine.offered, "arms.worst": engine.worst}, stored)
    check_array("arms.worst", engine.worst, (-1, MOST_UNITS))
    if engine.usual.counts.size:
        put_back(arrays(engine.usual, "features"), stored)
        engine.usual.check()
    engine.desk = fill_desk(engine.desk, engine.terms, stored, engine.offered.size)
    _fill_ledgers(engine, stored)
    check_ledgers(engine.desk, {number: season.ledger for number, season in engine.past.items()}, engine.ledger)


def _fill_ledgers(engine: LearnerEngine, stored: dict[str, npt.NDArray[Any]]) -> None:
    """Rebuild the ledgers of the present and of earlier seasons."""
    seasons = stored["ledgers.seasons"]
    if seasons.ndim != 1 or not seasons.size or (np.diff(seasons) <= 0).any() or seasons[-1] != engine.desk.season[0]:
        raise ValueError("the seasons must be in order and end with the present one")
    ledgers = [copy_state(engine.ledger) for _ in seasons[:-1]] + [engine.ledger]
    for name in LEDGER_ARRAYS:
        like = getattr(engine.ledger, name)
        put_back({f"ledgers.{name}": np.zeros((seasons.size, like.size), dtype=like.dtype)}, stored)
        for ledger, row in zip(ledgers, stored[f"ledgers.{name}"], strict=True):
            getattr(ledger, name)[:] = row
    for ledger in ledgers:
        for j in range(ledger.granted.size):
            ledger.budget[j] = interpreted(planning_units)(ledger, j, ledger.granted[j])
    engine.past = {int(n): PastSeason(ledger, 0.0) for n, ledger in zip(seasons[:-1], ledgers[:-1], strict=True)}


def _check_plan(engine: LearnerEngine) -> None:
    """Raise if a policy that follows a plan for one horizon could reach a round after it."""
    desk = engine.desk
    if not engine.policy.open_ended and (desk.last[0] != engine.problem.horizon or desk.clock[0] != desk.begun[0]):
        raise ValueError("a plan for one horizon has other rounds than those of the problem")


def _clock(problem: Problem, content: dict[str, Any], stored: dict[str, npt.NDArray[Any]]) -> Clock:
    """Return the times of requests."""
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
