"""Learners under fork, signals, interruptions and asyncio."""

from __future__ import annotations

import asyncio
import dataclasses
import dis
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import ReentrantCallError
from driftsack.game.protocol import callable_kernel
from driftsack.game.records import new_outcome
from driftsack.game.steps import SETTLED, charge_decision, release_slot
from driftsack.policies.learner import core
from driftsack.policies.learner.engine import LearnerEngine

PROBLEM = ds.Problem(horizon=10_000, arms=2, budget=[10_000.0], cost_max=1.0)
COST = 0.25  # sums of it are exact
NOP = dis.opmap["NOP"]
FILES = (
    "learner.py",
    "core.py",
    "register.py",
    "out_of_range.py",
    "engine.py",
    "arguments.py",
    "batches.py",
    "clock.py",
    "teaching.py",
    "desk.py",
    "steps.py",
    "state_growth.py",
)


def started(horizon: int = PROBLEM.horizon) -> ds.Learner:
    """A learner that has been asked and told, so that everything is compiled."""
    problem = dataclasses.replace(PROBLEM, horizon=horizon, budget=(float(horizon),))
    learner = ds.policies.EpsilonGreedy().start(problem, seed=1, safe=True)
    for _ in range(4):
        learner.tell(learner.ask(), 0.5, COST)
    return learner


def told(learner: ds.Learner) -> int:
    """The number of outcomes that were learnt; each must have been charged, and all others must be pending."""
    count = int(learner.state.pulls.sum())
    assert learner.problem.budget[0] - learner.remaining[0] == COST * count
    return count


def exit_code(child: Callable[[], object], seconds: int = 20) -> int:
    """Run a function in a child of fork; a child that hangs is ended by SIGALRM."""
    number = os.fork()
    if number == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        try:
            child()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def ask_and_tell(learner: ds.Learner) -> None:
    learner.tell(learner.ask(), 0.5, COST)
    told(learner)


@pytest.mark.parametrize("safe", [True, False])
def test_a_child_of_fork_does_not_wait_for_a_thread_that_it_does_not_have(safe: bool) -> None:
    """Another thread has the lock at the fork; a lock that fork does not know about is the planted fault."""
    learner = started()
    if not safe:
        learner._lock = threading.RLock()
    taken = threading.Event()

    def work() -> None:
        with learner._lock:
            taken.set()
            time.sleep(0.3)

    thread = threading.Thread(target=work)
    thread.start()
    taken.wait()
    code = exit_code(lambda: ask_and_tell(learner), seconds=20 if safe else 1)
    thread.join()
    assert code == (0 if safe else -signal.SIGALRM)
    ask_and_tell(learner)


def test_children_of_a_busy_process_work() -> None:
    learner = started(horizon=10**8)  # more than the threads can play
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set() and not learner.done:
            learner.tell(learner.ask(), 0.5, COST)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    codes = [exit_code(lambda: ask_and_tell(learner)) for _ in range(12)]
    stop.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 12
    assert told(learner) + len(learner.pending) == learner.round


class Interrupter:
    """Calls something before the k-th instruction of the code of learners."""

    def __init__(self, after: int, action: Callable[[], object]) -> None:
        self.left = after
        self.action = action

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if Path(frame.f_code.co_filename).name not in FILES:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_code[frame.f_lasti] != NOP:  # at which no signal is delivered
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                self.action()
        return self.trace

    def run(self, function: Callable[[], object]) -> bool:
        """Run a function; return whether it was interrupted."""
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            function()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        return self.left <= 0


def interrupt() -> None:
    raise KeyboardInterrupt


def keep_copy(learner: ds.Learner, saved: list[bytes]) -> None:
    saved.append(learner.to_bytes())


def points(stride: int = 1) -> Any:
    """Instructions at which to interrupt, until there are no more."""
    return range(1, 2_000, stride)


@pytest.mark.slow
def test_tell_and_cancel_are_settled_once_wherever_they_are_interrupted() -> None:
    origin = started()
    origin.ask()
    whole = origin.to_bytes()
    ends = set()
    ways: list[Callable[[ds.Learner, ds.Decision], None]] = [
        lambda own, decision: own.tell(decision, 0.5, COST),
        lambda own, decision: own.cancel(decision, COST),
    ]
    for settle in ways:
        expected = ds.Learner.from_bytes(whole)
        settle(expected, expected.pending[0])
        for after in points(2):
            learner = ds.Learner.from_bytes(whole)
            decision = learner.pending[0]
            interrupted = Interrupter(after, interrupt).run(partial(settle, learner, decision))
            ends.add("repeated" if learner.pending else "complete")
            settle(learner, decision)
            assert learner.state_hash() == expected.state_hash()
            assert (learner.pending, learner.reserved[0]) == ((), 0.0)
            if not interrupted:
                break
        assert after > 50
    assert ends == {"repeated", "complete"}


def test_an_interrupted_ask_leaves_no_reservation_behind() -> None:
    whole = started().to_bytes()
    for after in points(3):
        learner = ds.Learner.from_bytes(whole)
        interrupted = Interrupter(after, interrupt).run(learner.ask)
        assert learner.reserved[0] == len(learner.pending)
        learner.ask()
        assert learner.reserved[0] == len(learner.pending) <= learner.round - 4
        if not interrupted:
            break
    assert after > 50


def test_a_handler_saves_a_whole_learner_wherever_it_interrupts() -> None:
    """Signals arrive at every instruction of ask and tell, in turn; the file is loaded and checked."""
    learner = started()
    saved: list[bytes] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: saved.append(learner.to_bytes()))
    try:
        for after in points(2):
            if not Interrupter(after, lambda: signal.raise_signal(signal.SIGUSR1)).run(lambda: ask_and_tell(learner)):
                break
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(saved) > 50
    for data in saved:
        other = ds.Learner.from_bytes(data)
        assert other.round - 1 <= told(other) + len(other.pending) <= other.round  # a decision may not be made yet
    assert told(learner) == learner.round


CHANGES: dict[str, Callable[[ds.Learner], object]] = {
    "renew": lambda learner: learner.renew(rollover=0.5),
    "grant": lambda learner: learner.grant(3.0),
    "revise": lambda learner: learner.revise(50),
    "add an arm": lambda learner: learner.add_arm("new"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_rare_changes_are_made_wholly_or_not_at_all(name: str) -> None:
    """Interrupted by a handler that saves, or by an exception, at every instruction in turn."""
    origin = started()
    origin.ask()
    whole = origin.to_bytes()
    complete = ds.Learner.from_bytes(whole)
    CHANGES[name](complete)
    possible = {origin.state_hash(), complete.state_hash()}
    for after in points(17):
        learner, saved = ds.Learner.from_bytes(whole), list[bytes]()
        handler = Interrupter(after, partial(keep_copy, learner, saved))
        if not handler.run(partial(CHANGES[name], learner)):
            break
        assert {ds.Learner.from_bytes(data).state_hash() for data in saved} <= possible
        assert learner.state_hash() == complete.state_hash()
        stopped = ds.Learner.from_bytes(whole)
        Interrupter(after, interrupt).run(partial(CHANGES[name], stopped))
        assert stopped.state_hash() in possible
        stopped.tell(stopped.pending[0], 0.5, COST)
        stopped.ask()
    assert after > 20


LATE: dict[str, Callable[[ds.Learner, ds.Decisions], object]] = {
    "tell": lambda learner, batch: learner.tell(batch[0], 0.5, COST),
    "cancel": lambda learner, batch: learner.cancel(batch[1], COST),
    "tell_many": lambda learner, batch: learner.tell_many(batch, [0.5, 0.5], [[COST], [COST]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LATE)
def test_an_outcome_of_an_earlier_season_moves_its_rest_once_wherever_it_is_interrupted(name: str) -> None:
    """Two ledgers change: that of its season, and the present one, to which what it did not use is added."""
    origin = started()
    batch = origin.ask_many(2)
    origin.renew(rollover=1.0)
    whole = origin.to_bytes()
    complete = ds.Learner.from_bytes(whole)
    LATE[name](complete, batch)
    possible = {origin.state_hash(), complete.state_hash()}
    assert complete.budget[0] > origin.budget[0]
    for after in points(11):
        learner, saved = ds.Learner.from_bytes(whole), list[bytes]()
        handler = Interrupter(after, partial(keep_copy, learner, saved))
        if not handler.run(partial(LATE[name], learner, batch)):
            break
        assert {ds.Learner.from_bytes(data).state_hash() for data in saved} <= possible
        assert learner.state_hash() == complete.state_hash()
        stopped = ds.Learner.from_bytes(whole)
        Interrupter(after, interrupt).run(partial(LATE[name], stopped, batch))
        LATE[name](stopped, batch)
        assert stopped.state_hash() == complete.state_hash()
    assert after > 50


def test_the_interrupter_finds_a_rest_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: nothing is undone if an outcome of an earlier season is interrupted between two ledgers."""
    monkeypatch.setattr(ds.Learner, "_all_or_nothing", lambda self: nullcontext(self._engine))
    origin = started()
    batch = origin.ask_many(2)
    origin.renew(rollover=1.0)
    whole = origin.to_bytes()
    budgets = set()
    for after in points(5):
        learner = ds.Learner.from_bytes(whole)
        if not Interrupter(after, interrupt).run(partial(learner.tell, batch[0], 0.5, COST)):
            break
        learner.tell(batch[0], 0.5, COST)
        budgets.add(float(learner.budget[0]))
    assert len(budgets) > 1


@pytest.mark.parametrize("safe", [True, False])
def test_a_handler_does_not_wait_for_the_thread_that_it_interrupted(
    safe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that is not re-entrant is the planted fault."""
    learner = started()

    def child() -> None:
        if not safe:
            learner._lock = threading.Lock()  # type: ignore[assignment]
            monkeypatch.setattr(core, "has_taken", lambda _: False)
        signal.signal(signal.SIGTERM, lambda *_: learner.save(tmp_path / "learner"))
        Interrupter(60, lambda: signal.raise_signal(signal.SIGTERM)).run(learner.ask)

    assert exit_code(child, seconds=20 if safe else 1) == (0 if safe else -signal.SIGALRM)
    if safe:
        assert told(ds.Learner.load(tmp_path / "learner")) == 4


def test_a_handler_that_asks_in_the_middle_of_a_call_is_refused() -> None:
    learner = started()
    decision = learner.ask()
    seen: list[str] = []

    def handler(*_: Any) -> None:
        for call in (learner.ask, lambda: learner.tell(decision, 0.5, COST), lambda: learner.cancel(decision)):
            try:
                call()
            except ReentrantCallError as error:
                seen.append(str(error))

    Interrupter(80, handler).run(learner.ask)
    assert len(seen) == 3
    assert "may save the learner" in seen[0]
    assert learner.round == 6
    learner.tell(decision, 0.5, COST)
    assert told(learner) == 5


def test_tasks_of_asyncio_share_a_learner(tmp_path: Path) -> None:
    learner = started()

    async def request(number: int) -> None:
        decision = learner.ask()
        await asyncio.sleep(0.0001 * (number % 7))
        learner.tell(decision, 0.5, COST)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, learner.save, tmp_path / "on-signal")
        saving = asyncio.create_task(asyncio.to_thread(learner.save, tmp_path / "meanwhile"))
        tasks = [request(number) for number in range(100)]
        signal.raise_signal(signal.SIGUSR1)
        await asyncio.gather(saving, *tasks)
        loop.remove_signal_handler(signal.SIGUSR1)

    asyncio.run(serve())
    assert told(learner) == learner.round == 104
    for name in ("on-signal", "meanwhile"):
        other = ds.Learner.load(tmp_path / name)
        assert told(other) + len(other.pending) == other.round


def test_the_interrupter_finds_what_is_settled_in_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: learn and charge in two calls, as they were once."""
    origin = started()
    origin.ask()
    whole = origin.to_bytes()

    def in_two_steps(self: LearnerEngine, slot: int, reward: float, told: bool) -> int:
        desk, awaited = self.desk, self.desk.awaited
        chance = float(awaited.probability[slot])
        outcome = new_outcome(self.terms, int(awaited.t[slot]), int(awaited.arm[slot]), chance, reward, desk.given)
        callable_kernel(self.state, "learn")(self.state, outcome)
        desk.units[:] = self.units(desk.given)
        charge_decision(self.ledger, self.terms, desk, slot)
        release_slot(awaited, slot)
        return SETTLED

    monkeypatch.setattr(LearnerEngine, "settle", in_two_steps)
    found = set()
    for after in points(5):
        learner = ds.Learner.from_bytes(whole)
        decision = learner.pending[0]
        tracer = Interrupter(after, interrupt)
        monkeypatch.setattr(sys.modules[__name__], "FILES", (*FILES, Path(__file__).name))
        interrupted = tracer.run(partial(learner.tell, decision, 0.5, COST))
        found.add((int(learner.state.pulls.sum()), float(np.round(10_000 - learner.remaining[0], 9))))
        if not interrupted:
            break
    assert (5, 4 * COST) in found
