"""Batches: several decisions asked for, or several outcomes told, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import floats
from driftsack.core.decision import SKIP, Decisions, read_only
from driftsack.core.errors import OutOfRangeError, UnknownDecisionError
from driftsack.core.names import by_name
from driftsack.core.problem import Problem
from driftsack.game import steps
from driftsack.policies.learner import arguments
from driftsack.policies.learner.clock import Clock
from driftsack.policies.learner.engine import LearnerEngine
from driftsack.policies.learner.refusals import refuse_round
from driftsack.policies.learner.register import Register

BatchCosts = npt.ArrayLike | Mapping[str, npt.ArrayLike] | Sequence[Mapping[str, float]]


def ask_batch(
    engine: LearnerEngine,
    register: Register,
    clock: Clock,
    features: Floats,
    at: float | datetime | None,
    opened: tuple[float, float],
) -> Decisions:
    """Begin a round for each row of ``features``; ``opened`` is the result of ``open_request`` for the first."""
    problem, before = engine.problem, engine.begun
    batch = steps.new_batch(features, engine.desk.mix.size, problem.resources)
    filled = _begin(engine, clock, batch, at, *opened)
    if filled == 0:
        refuse_round(engine, int(batch.arms[0]))
    # Keep the slots of the decisions that are not to skip.
    rounds = np.arange(before + 1, before + 1 + filled)
    kept = batch.slots[:filled] >= 0
    register.slots.update(zip(rounds[kept].tolist(), batch.slots[:filled][kept].tolist(), strict=True))
    # Convert them to the problem's units.
    mixes, prices = batch.mixes[:filled, : problem.arms], batch.prices[:filled] * register.price_unit
    arms = batch.arms[:filled]
    reserved = (engine.most_amounts(engine.terms.worst) if engine.altered else engine.most)[arms]
    for part in (rounds, arms, mixes, prices, reserved, features):
        read_only(part)
    given = features[:filled] if problem.features else None
    must = bool(engine.terms.must[0])
    return Decisions(rounds, arms, mixes, prices, reserved, problem.arm_names, register.source, given, must)


def _begin(
    engine: LearnerEngine, clock: Clock, batch: steps.AskedBatch, at: Any, seconds: float, rounds_left: float
) -> int:
    """Begin the rounds of a batch, in groups with the same expected number of rounds; return their number."""
    size, filled = batch.arms.size, 0
    engine.make_room(size)
    while True:
        stop = filled + 1 + clock.repeat(seconds, size - filled - 1)
        filled = engine.begin_many(batch, filled, stop, seconds, rounds_left)
        if filled < stop or filled == size:
            return filled
        seconds, rounds_left = clock.advance(at)


def without_skips(decisions: Any, rewards: Floats, costs: Floats) -> tuple[Decisions, Floats, Floats]:
    """Return the decisions of a batch that are not to skip, with their outcomes."""
    made = decisions.arms != SKIP
    return (decisions, rewards, costs) if made.all() else (decisions[made], rewards[made], costs[made])


def slots_of(register: Register, decisions: Decisions, rewards: Floats, costs: Floats) -> Ints:
    """(n,) the slots of the decisions of a batch, -1 for those that were told before; raise if one was not made."""
    rounds = decisions.rounds.tolist()
    slots = np.fromiter(map(register.slots.get, rounds, repeat(-1)), dtype=np.int64, count=len(rounds))
    register.check_batch(decisions, rewards, costs, slots)
    return slots


def checked_batch(problem: Problem, decisions: Any, rewards: npt.ArrayLike, costs: BatchCosts) -> tuple[Floats, Floats]:
    """(n,) rewards and (n, d) costs, which are given as rows, as columns by name, or as one mapping for each row."""
    if not isinstance(decisions, Decisions):
        raise UnknownDecisionError(f"tell_many needs the Decisions of ask_many, got {decisions!r:.80}.")
    gains = floats(rewards, "rewards", (len(decisions),))
    uses = _costs_in_order(problem, len(decisions), costs)
    if (uses < 0).any():
        raise OutOfRangeError(f"costs must be 0 or more, got {uses.min():g}.")
    return gains, uses


def checked_parts(
    problem: Problem, decisions: Any, rewards: Any, costs: Any
) -> tuple[Decisions, Floats | None, Floats | None]:
    """The decisions of a batch that are not to skip, with their (n,) rewards or their (n, d) costs; None as given."""
    if rewards is None and costs is None:
        arguments.part_of(problem, rewards, costs)
    count = len(decisions) if isinstance(decisions, Decisions) else 0
    some = (
        np.zeros(count) if rewards is None else rewards,
        np.zeros((count, problem.resources)) if costs is None else costs,
    )
    gains, uses = checked_batch(problem, decisions, *some)
    decisions, gains, uses = without_skips(decisions, gains, uses)
    return decisions, None if rewards is None else gains, None if costs is None else uses


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
