"""Saved learners: what a file holds, and the checks that it passes before a kernel sees any of it.

Nothing in a file is trusted, since a digest can be computed by anyone. Policy and problem are built by their own
constructors, sizes are limited before anything is allocated, every array must have the shape and type that it has in a
new learner, and its content must be possible (:mod:`driftsack.game.state_checks`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core import file_format
from driftsack.core.checks import LARGEST_FLOAT, ROUNDING, flag, whole
from driftsack.core.decision import Decision
from driftsack.core.errors import FileFormatError
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator
from driftsack.game.amounts import MOST_UNITS
from driftsack.game.ledger import Ledger, open_ledger
from driftsack.game.state_checks import check_array, check_state
from driftsack.game.state_tree import arrays, copy_state
from driftsack.policies.pending import PendingArrays
from driftsack.policies.policy import Policy, from_spec

LAYOUT: Final = 3
KIND: Final = "learner"
LARGEST_HORIZON: Final = 2**53
LARGEST_SPENDING: Final = 1e300
SMALL: Final = 10**5  # entries of a table of arms and resources that are allocated whatever the length of the file


class Snapshot(NamedTuple):
    """Everything that a learner consists of.

    Attributes:
        policy: The policy.
        problem: The problem.
        safe: Whether no budget may be overspent.
        round: The number of rounds that have begun.
        fallbacks: The number of LPs that HiGHS solved.
        rng: The state of the learner's randomness.
        pending: The decisions whose outcome has not arrived, oldest first.
        state: The policy's state.
        ledger: The ledger, whose reservations follow from the pending decisions.
    """

    policy: Policy
    problem: Problem
    safe: bool
    round: int
    fallbacks: int
    rng: dict[str, Any]
    pending: tuple[Decision, ...]
    state: Any
    ledger: Ledger


def encode(snapshot: Snapshot) -> bytes:
    """The bytes of a file."""
    return file_format.encode(KIND, LAYOUT, _content(snapshot), _arrays(snapshot))


def state_hash(snapshot: Snapshot) -> str:
    """A digest of everything that a learner consists of."""
    return file_format.digest(_content(snapshot), _arrays(snapshot))


def _content(snapshot: Snapshot) -> dict[str, Any]:
    """The header of a file."""
    return {
        "policy": snapshot.policy.to_spec(),
        "problem": snapshot.problem.to_dict(),
        "safe": snapshot.safe,
        "round": snapshot.round,
        "fallbacks": snapshot.fallbacks,
        "rng": snapshot.rng,
    }


def _arrays(snapshot: Snapshot) -> dict[str, npt.NDArray[Any]]:
    """Every array of a file; reservations are left out."""
    pending = PendingArrays.of(snapshot.pending, snapshot.problem)
    found = _targets(snapshot.state, snapshot.ledger) | arrays(pending, "pending")
    return {name: np.array(array) for name, array in found.items()}


def _targets(state: Any, ledger: Ledger) -> dict[str, npt.NDArray[Any]]:
    """The arrays of state and ledger that a file holds."""
    found = arrays(state, "state") | arrays(ledger, "ledger")
    del found["ledger.reserved"]
    return found


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
    content, stored = file_format.decode(data, KIND, LAYOUT, name)
    try:
        return _checked(content, stored, len(data))
    except Exception as error:  # constructors of policies raise errors of many kinds on settings that make no sense
        raise FileFormatError(f"{name} holds a learner that is inconsistent: {error}") from error


def _checked(content: dict[str, Any], stored: dict[str, npt.NDArray[Any]], size: int) -> Snapshot:
    """Build a snapshot from what a file of ``size`` bytes holds, or raise an error."""
    arms = content["problem"]["arms"]
    if isinstance(arms, int) and arms > max(SMALL, size):  # before the names of the arms are made
        raise ValueError("the learner would be larger than its file")
    problem = Problem.from_dict(content["problem"])
    policy = from_spec(content["policy"])
    _check_sizes(policy, problem, size)
    rounds = whole(content["round"], "round", at_least=0, at_most=problem.horizon)
    fallbacks = whole(content["fallbacks"], "fallbacks", at_least=0)
    rng = generator(0)
    rng.bit_generator.state = content["rng"]
    if rng.bit_generator.state != content["rng"] or not content["rng"]["state"]["inc"] % 2:
        raise ValueError("the state of the randomness is not one of PCG64")
    waiting = PendingArrays(*(stored.pop(f"pending.{field}") for field in PendingArrays._fields))
    _check_pending(waiting, problem, rounds)
    state, ledger = policy.new_state(problem), open_ledger(problem)
    new_state, new_ledger = copy_state(state), copy_state(ledger)
    _fill(_targets(state, ledger), stored)
    check_state(state, new_state, rounds)
    _check_ledger(ledger, new_ledger)
    pending = tuple(waiting.decisions(problem.arm_names))
    safe = flag(content["safe"], "safe")
    return Snapshot(policy, problem, safe, rounds, fallbacks, content["rng"], pending, state, ledger)


def _check_sizes(policy: Policy, problem: Problem, size: int) -> None:
    """Raise if the state would be larger than a file of ``size`` bytes can hold."""
    whole(problem.horizon, "horizon", at_least=1, at_most=LARGEST_HORIZON)
    table = (problem.resources + 1) * (problem.arms + problem.resources + 1)
    if table > max(SMALL, size) or 8 * policy.rounds_kept(problem) > size:
        raise ValueError("the learner would be larger than its file")


def _fill(targets: dict[str, npt.NDArray[Any]], stored: dict[str, npt.NDArray[Any]]) -> None:
    """Copy the arrays of a file into those of a new learner, some of which may share memory."""
    if targets.keys() != stored.keys():
        raise ValueError(f"expected arrays {sorted(targets)}, got {sorted(stored)}")
    for name, target in targets.items():
        if stored[name].shape != target.shape or stored[name].dtype != target.dtype:
            raise ValueError(f"array {name} has another shape or type than this problem needs")
        target[...] = stored[name]
    for name, target in targets.items():
        if target.tobytes() != stored[name].tobytes():
            raise ValueError(f"array {name} shares memory with another one that differs")


def _check_ledger(ledger: Ledger, new: Ledger) -> None:
    """Raise unless the budgets are the problem's and the spending is possible."""
    for name in ("budget", "granted"):
        fixed = getattr(new, name)
        check_array(f"ledger.{name}", getattr(ledger, name), (fixed, fixed))
    check_array("ledger.charged", ledger.charged, (0, MOST_UNITS))


def _check_pending(waiting: PendingArrays, problem: Problem, rounds: int) -> None:
    """Raise unless the pending decisions are possible after ``rounds`` rounds."""
    expected = PendingArrays.of((), problem)
    for name, array, like in zip(PendingArrays._fields, waiting, expected, strict=True):
        if array.dtype != like.dtype or array.shape != (len(waiting.rounds), *like.shape[1:]):
            raise ValueError(f"array pending.{name} has another shape or type than this problem needs")
    bounds: dict[str, tuple[float, float]] = {
        "rounds": (1, rounds),
        "arms": (0, problem.arms - 1),
        "mixes": (0.0, 1.0 + ROUNDING),
        "prices": (-LARGEST_FLOAT, LARGEST_FLOAT),
    }
    for name, array in zip(PendingArrays._fields, waiting, strict=True):
        check_array(f"pending.{name}", array, bounds[name])
    if (np.diff(waiting.rounds) <= 0).any() or (waiting.mixes.sum(axis=1) > 1.0 + ROUNDING).any():
        raise ValueError("pending decisions must be of different rounds, in order, and their mixes sum to at most 1")
