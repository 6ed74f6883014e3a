"""Learner files of layout 3, which had a ledger of floats and no seasons, in the form of the present layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.checks import whole
from driftsack.core.problem import Problem
from driftsack.game.amounts import whole_units
from driftsack.game.desk import PENDING
from driftsack.game.ledger import grid_exponents, open_ledger
from driftsack.game.records import new_terms
from driftsack.game.state_tree import arrays

Stored = dict[str, npt.NDArray[Any]]


def upgraded(content: dict[str, Any], stored: Stored, problem: Problem, state: Any) -> tuple[dict[str, Any], Stored]:
    """Convert the content of a file.

    Args:
        content: The header of the file.
        stored: Its arrays.
        problem: Its problem.
        state: The policy's state before its first round, as it is now.

    Returns:
        Header and arrays as the present layout has them; nothing is checked beyond what the conversion needs.
    """
    rounds = whole(content["round"], "round", at_least=0, at_most=problem.horizon)
    ledger, terms = open_ledger(problem), new_terms(problem)
    spent = np.asarray(stored["ledger.spent"], dtype=np.float64) * problem.cost_max
    if not (np.isfinite(spent) & (spent >= 0.0)).all():
        raise ValueError("ledger.spent must be finite and 0 or more")
    charged = [
        whole_units(amount, k, up=True) for amount, k in zip(spent.tolist(), grid_exponents(problem), strict=True)
    ]
    arms = stored["pending.arms"]
    if arms.ndim != 1 or not ((arms >= 0) & (arms < problem.arms)).all():
        raise ValueError(f"pending.arms must lie in [0, {problem.arms - 1}]")
    count, one = len(arms), np.ones(1, dtype=np.int64)
    mixes = stored["pending.mixes"]
    current = {
        **state_arrays(stored, state),
        "desk.begun": rounds * one,
        "desk.clock": rounds * one,
        "desk.season": 0 * one,
        "desk.last": problem.horizon * one,
        "desk.cost_unit": np.asarray(problem.cost_max),
        **{f"terms.{name}": getattr(terms, name) for name in ("rate", "end", "open", "version")},
        "pending.status": np.full(count, PENDING),
        "pending.number": stored["pending.rounds"],
        "pending.t": stored["pending.rounds"] - 1,
        "pending.arm": arms,
        "pending.season": np.zeros(count, dtype=np.int64),
        "pending.epoch": np.zeros(count, dtype=np.int64),
        "pending.probability": mixes[np.arange(count), arms],
        "pending.at": np.full(count, np.nan),
        "pending.reserved": terms.worst[:, arms].T.copy(),
        "pending.mixes": mixes,
        "pending.prices": stored["pending.prices"] * np.asarray(problem.cost_max) / problem.reward_max,
        "settled.number": np.zeros(0, dtype=np.int64),
        "settled.epoch": np.zeros(0, dtype=np.int64),
        "settled.kind": np.zeros(0, dtype=np.int64),
        "settled.outcome": np.zeros((0, 1 + problem.resources)),
        "settled.total": 0 * one,
        "overruns.decisions": 0 * one,
        "overruns.excess": np.zeros(problem.resources, dtype=np.int64),
        "overruns.clipped": 0 * one,
        "ledgers.granted": ledger.granted[None],
        "ledgers.charged": np.array([charged]),
        "ledgers.seasons": 0 * one,
        "arms.offered": np.ones(problem.arms, dtype=np.bool_),
        "arms.worst": terms.worst,
    }
    header = {"lineage": "0" * 16, "start": 0.0, "latest": None, "rollovers": []}
    return {**content, **header}, current


def state_arrays(stored: Stored, state: Any) -> Stored:
    """The arrays of the policy's state; the memory of wrapped policies has gained the versions of open arms.

    Args:
        stored: The arrays of the file.
        state: The policy's state as it is now.

    Returns:
        The arrays in their present shapes; those that did not exist are left out.
    """
    found = {name: array for name, array in stored.items() if name.startswith("state.")}
    memory = getattr(state, "memory", None)
    if memory is None:
        return found
    versions = [array for name, array in arrays(state).items() if name.endswith(".version")]
    places = sorted((array.ctypes.data - memory.ints.ctypes.data) // array.itemsize for array in versions)
    for name in ("state.memory.ints", "state.waiting.ints"):
        if name in found and found[name].shape[-1] == memory.ints.size - len(places):
            for place in places:
                found[name] = np.insert(found[name], place, -1, axis=-1)
    return found
