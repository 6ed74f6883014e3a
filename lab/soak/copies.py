"""Operations of the soak that copy, save and fork a learner, or misuse it."""

from __future__ import annotations

import copy
import math
import os
import pickle
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from driftsack.core.decision import SKIP, Decision
from driftsack.core.errors import (
    AbsurdCostError,
    AlreadyToldError,
    DriftsackError,
    NamesError,
    NotFiniteError,
    OutcomeError,
    OutOfRangeError,
    SettingError,
    ShapeError,
    UnknownDecisionError,
)
from driftsack.policies.learner import Learner
from lab.soak.model import expect
from lab.soak.outcomes import total_decisions
from lab.soak.player import Errors, Player
from lab.soak.requests import random_context, random_request

FEW: Final = 100  # pending decisions that are counted one by one


def restore(player: Player) -> None:
    """Continue with a copy, made in one of five ways, whose state must be the same."""
    way = int(player.rng.integers(4))
    before = player.learner.state_hash()
    if way == 0:
        player.count("to_bytes and from_bytes")
        twin = Learner.from_bytes(player.learner.to_bytes())
    elif way == 1:
        player.count("save and load")
        path = player.directory / f"learner-{os.getpid()}.npz"
        player.learner.save(path)
        twin = Learner.load(path, read_only=player.chance(0.5))
    elif way == 2:
        player.count("deepcopy")
        twin = copy.deepcopy(player.learner)
    else:
        player.count("pickle")
        twin = pickle.loads(pickle.dumps(player.learner))  # noqa: S301
    # Compare the copy with the learner and the model.
    expect("the state of a copy", twin.state_hash(), before)
    waiting = [held for held in player.model.held if not held.forfeited]
    if total_decisions(waiting) < FEW:
        expect("the number of decisions that a copy waits for", len(twin.pending), total_decisions(waiting))
    for name, learner in (("the learner", player.learner), ("a copy", twin)):
        counted = learner._engine.terms.pending  # also of arms that may be added
        expect(f"the pending decisions of {name}", counted.tolist(), player.model.pending(counted.size))
    if (
        player.model.refusal() is None
        and player.problem.period is None
        and (player.model.bounded or not player.model.safe)
    ):
        check_stranger(player, copy.deepcopy(twin).ask(**random_context(player)))
    player.learner = twin


def check_stranger(player: Player, decision: Decision) -> None:
    """Check that a decision of a copy is refused."""
    if not decision.skipped:
        player.refused(
            lambda: player.learner.tell(decision, 0.0, [0.0] * player.problem.resources), UnknownDecisionError
        )


def fork(player: Player) -> None:
    """Let a forked child ask and exit; its decision must be refused here, and nothing may have changed."""
    if not hasattr(os, "fork"):
        return
    player.count("fork")
    given, _, _ = random_request(player)
    given |= random_context(player)
    if player.problem.period is not None:
        given["at"] = player.now
    before = player.learner.state_hash()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _ask_in_child(player, writer, given)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    _, status = os.waitpid(child, 0)
    expect("the exit code of a child of fork", os.waitstatus_to_exitcode(status), 0)
    expect("the state after a fork", player.learner.state_hash(), before)
    made = pickle.loads(data)  # noqa: S301
    if isinstance(made, Decision):
        check_stranger(player, made)


def _ask_in_child(player: Player, writer: int, given: dict[str, Any]) -> None:
    """Ask in a child, send the decision to the parent, and exit."""
    try:
        made: Decision | None
        try:
            made = player.learner.ask(**given)
        except DriftsackError as error:
            made = None if isinstance(error, player.model.refusal() or ()) else 1 // 0  # type: ignore[assignment]
        os.write(writer, pickle.dumps(made))
        os.close(writer)
        os._exit(0)
    finally:
        os._exit(1)


def misuse(player: Player) -> None:
    """Make a wrong call."""
    player.count("misuse")
    # Calls that every learner refuses.
    d, learner = player.problem.resources, player.learner
    fine = [0.0] * d
    stray = Decision(max(player.model.begun, 1), 0, np.ones(len(player.model.arms)), np.zeros(d), "stray", "nobody-0")
    unknown = (UnknownDecisionError, AlreadyToldError)
    cases: list[tuple[Callable[[], Any], Errors]] = [
        (lambda: learner.tell("nothing", 0.0, fine), UnknownDecisionError),
        (lambda: learner.tell(stray, 0.0, fine), unknown),
        (lambda: learner.tell(stray, math.nan, fine), (NotFiniteError, *unknown)),
        (lambda: learner.cancel(stray, [-1.0] * d), OutOfRangeError),
        (lambda: learner.tell(stray, 0.0, [0.0] * (d + 1)), ShapeError),
        (lambda: learner.tell(stray, 0.0, {"nothing": 0.0}), NamesError),
        (lambda: learner.ask(open=["nothing"]), NamesError),
        (lambda: learner.ask(caps={"nothing": 1.0}), NamesError),
        (lambda: learner.ask_many(0), OutOfRangeError),
        (lambda: learner.grant([-1.0] * d), OutOfRangeError),
        (lambda: learner.grant(nothing=1.0), NamesError),
        (lambda: learner.renew(rollover=1.5), (OutOfRangeError, SettingError)),
        (lambda: learner.revise(-1), (OutOfRangeError, SettingError)),
        (lambda: learner.retire_arm("nothing"), NamesError),
        (lambda: learner.reopen_arm(len(player.model.arms)), OutOfRangeError),
        (lambda: learner.expire(-1), OutOfRangeError),
        (lambda: learner.grant([1e40 * unit for unit in player.typical().tolist()]), OutOfRangeError),
    ]
    if player.problem.period is not None:
        cases.append((learner.ask, SettingError))
    if player.model.safe and not player.model.bounded:
        cases.append((lambda: learner.ask(at=player.now), SettingError))
    if player.model.fallback is not None:
        cases.append((lambda: learner.ask(open=np.zeros(len(player.model.arms), dtype=np.bool_)), SettingError))
    player.refused(*cases[int(player.rng.integers(len(cases)))])
    # Outcomes that no decision may have.
    pending = [held for held in player.model.held if isinstance(held.decisions, Decision)]
    if pending:
        known: Any = pending[-1].decisions
        wrong = [(math.inf, fine), (0.0, [math.nan] * d), (0.0, [-1.0] * d), (0.0, [1e300] * d)]
        reward, costs = wrong[int(player.rng.integers(len(wrong)))]
        player.refused(lambda: learner.tell(known, reward, costs), (AbsurdCostError, NotFiniteError, OutOfRangeError))


def tell_skip(player: Player) -> None:
    """Tell the outcome of a skipped round, which is refused unless it is empty."""
    skip = Decision(player.model.begun, SKIP, np.zeros(len(player.model.arms)), np.zeros(player.problem.resources))
    if player.model.begun == 0 or any((held.rounds == skip.round).any() for held in player.model.held):
        return
    player.count("tell a skip")
    costs = player.typical().tolist()
    player.unchanged(lambda: player.learner.tell(skip, 0.0, [0.0] * len(costs)))
    player.refused(lambda: player.learner.tell(skip, 0.0, costs), OutcomeError)
