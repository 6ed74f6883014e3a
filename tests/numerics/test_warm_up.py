"""Kernels interpreted first: the same bits as machine code, whole steps, and a child that compiles meanwhile."""

from __future__ import annotations

import ast
import asyncio
import fcntl
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import CannotPinError, SettingError
from driftsack.core.signals import DeferredSignals
from driftsack.core.stamp import PACKAGE
from driftsack.game.desk import PENDING
from driftsack.numerics import machine_code, warm_up
from driftsack.numerics.compiled import interpreted, mode
from driftsack.numerics.exemplars import describe, exemplar
from driftsack.numerics.powers import power, squared
from driftsack.numerics.sampling import draw
from driftsack.policies import uniform_random
from driftsack.simulation.precompile import RECOMMENDED, variants
from tests.support.in_turn import InTurn

ROUNDS = 2_000
LAST = range(ROUNDS, ROUNDS + 40)


def started(name: str) -> ds.Learner:
    """A learner with contexts; with one resource for a policy that takes one only."""
    budget = {"usd": 700.0} if name == "Exp3BwK" else {"usd": 700.0, "s": 900.0}
    most = dict.fromkeys(budget, 1.0)
    problem = ds.Problem(horizon=2 * ROUNDS, arms=4, budget=budget, cost_max=most, features=3)
    return variants()[name](problem).start(problem, seed=3, safe=True)


def play(learner: ds.Learner, rounds: range, switch: Callable[[ds.Learner], object] | None = None) -> ds.Learner:
    """Masks, contexts, late outcomes, cancellations, batches, and a copy through a file; the same in each call."""
    nature = np.random.default_rng([7, rounds.start])
    late: deque[ds.Decision] = deque(learner.pending)
    for t in rounds:
        if switch is not None and t == rounds.start + len(rounds) // 2:
            switch(learner)
        mask = [arm for arm in range(4) if nature.random() < 0.8] or [0]
        decision = learner.ask(context=nature.random(3), open=None if t % 3 else mask)
        if not decision.skipped:
            late.append(decision)
        while len(late) > 5:
            told = late.popleft()
            costs = nature.random(learner.problem.resources) * (0.1 + 0.2 * told.arm)
            if t % 17:
                learner.tell(told, float(nature.random() < 0.2 + 0.1 * told.arm), costs)
            else:
                learner.cancel(told, costs)
        if t % 50 == 20 and type(learner.policy).__name__ in RECOMMENDED:  # others interpret batches in the tests
            batch = learner.ask_many(3, contexts=nature.random((3, 3)))
            learner.tell_many(batch, np.full(len(batch), 0.5), np.full((len(batch), learner.problem.resources), 0.1))
        if t % 100 == 60:
            learner = ds.Learner.from_bytes(learner.to_bytes())
    return learner


def compiled_from_now(learner: ds.Learner) -> None:
    """What a learner does when its machine code is loaded."""
    learner._engine.kernels.warm_up.compiles_first = True
    learner._engine.pin()


def hash_in_a_child(learner: ds.Learner, rounds: range) -> str:
    """Play on in a child of ``fork``."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, play(learner, rounds).state_hash().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        found = stream.read()
    os.wait()
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::driftsack.core.errors.LooseCostMaxWarning")
@pytest.mark.parametrize("name", variants())
def test_interpreted_then_switched_is_compiled_throughout(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = range(ROUNDS)
    compiled = play(started(name), rounds)
    monkeypatch.setenv("DRIFTSACK_COMPILE", "never")
    switched = play(started(name), rounds, switch=compiled_from_now)
    assert switched.state_hash() == compiled.state_hash()
    assert hash_in_a_child(switched, LAST) == play(compiled, LAST).state_hash()
    assert play(switched, LAST).state_hash() == compiled.state_hash()


def test_a_difference_between_the_forms_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: an interpreted draw that takes the next arm."""
    rounds = range(100)
    compiled = play(started("UniformRandom"), rounds)
    monkeypatch.setenv("DRIFTSACK_COMPILE", "never")
    assert play(started("UniformRandom"), rounds).state_hash() == compiled.state_hash()
    names = interpreted(uniform_random.choose).__globals__
    monkeypatch.setitem(names, "nth_open", lambda round, number: 0)
    assert play(started("UniformRandom"), rounds).state_hash() != compiled.state_hash()


SUMS = {"sum", "mean", "dot", "prod", "var", "std", "cumsum"}


def ambiguous(source: str) -> list[str]:
    """Operations in the kernels of a file whose last bit may differ between compiled code and NumPy or Python."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    kernels = [one for one in functions if any(ast.unparse(mark) == "kernel" for mark in one.decorator_list)]
    found = []
    for node in (node for one in kernels for node in ast.walk(one)):
        exact = isinstance(node, ast.BinOp) and ast.unparse(node.left) == "2.0"
        power = isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow | ast.MatMult)
        total = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SUMS
        if (power and not exact) or total:
            found.append(ast.unparse(node))
    return found


def test_kernels_that_may_be_interpreted_use_no_ambiguous_operations() -> None:
    """Powers come from ``numerics.powers``, and sums are loops."""
    places = [path for part in ("policies", "game", "numerics", "lp") for path in (PACKAGE / part).rglob("*.py")]
    assert len(places) > 100
    assert {path.name: found for path in places if (found := ambiguous(path.read_text()))} == {}
    planted = "@kernel\ndef f(x):\n    return x[0] ** 2 + x.sum() + 2.0 ** x[1] + (x @ x)"
    assert ambiguous(planted) == ["x @ x", "x[0] ** 2", "x.sum()"]


@pytest.mark.parametrize("form", [power, interpreted(power)])
def test_powers_are_products(form: Callable[[float, int], float]) -> None:
    """A base for which the C library and the product differ, and large exponents."""
    bases = np.random.default_rng(0).random(2_000) * 10
    assert any(float(base) ** 2 != base * base for base in bases.tolist())
    assert all(form(float(base), 2) == base * base == squared(float(base)) for base in bases.tolist())
    assert form(0.9, 0) == 1.0
    assert form(0.99999, 100_000) == pytest.approx(0.99999**100_000, rel=1e-12)


FIRST_DECISION = """
import json, sys
import driftsack as ds
contextual = issubclass(getattr(ds, {name!r}), ds.LinearBwK)
problem = ds.Problem(horizon=1_000, arms=4, budget=[90.0], cost_max=[1.0], features=3 if contextual else 0)
learner = getattr(ds, {name!r})().start(problem, seed=0, safe=True)
decision = learner.ask(**({{"context": [1.0, 0.5, 0.2]}} if contextual else {{}}))
learner.tell(decision, 0.5, 0.25)
short = ds.simulate(ds.instances.example_2(horizon=300), ds.NaiveUCB(scale=0.1), trials=2, threads=1)
print(json.dumps({{"numba": "numba" in sys.modules, "reward": short.reward.tolist()}}))
"""


def run_python(code: str, *arguments: str, **environment: str) -> Any:
    """Run a program in a process of its own; return what it printed."""
    return json.loads(process(code, *arguments, **environment).communicate(timeout=600)[0])


def process(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    settings = {**os.environ, "DRIFTSACK_COMPILE": "behind", **environment}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=settings, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", ["Adaptive", "LinearBwK"])
def test_the_first_decision_and_a_short_simulation_need_no_numba(name: str, tmp_path: Path) -> None:
    found = run_python(FIRST_DECISION.format(name=name), NUMBA_CACHE_DIR=str(tmp_path))
    compiled = ds.simulate(ds.instances.example_2(horizon=300), ds.NaiveUCB(scale=0.1), trials=2, threads=1)
    assert found == {"numba": False, "reward": compiled.reward.tolist()}
    assert list(tmp_path.iterdir()) == []  # nothing was compiled


UNTIL_SWITCHED = """
import json, sys, time
import driftsack as ds
from driftsack.numerics import machine_code, warm_up
def play(learner, rounds):
    for _ in range(rounds):
        learner.tell(learner.ask(), 0.5, 0.25)
problem = ds.Problem(horizon=10**6, arms=2, budget=[10.0**6], cost_max=[1.0])
learner = ds.policies.AlwaysArm(1).start(problem, seed=0)
learner.tell(learner.ask(), 0.5, 0.25)
first = "numba" in sys.modules
deadline = time.monotonic() + 500
while type(learner._engine._begin).__name__ != "Pinned" and time.monotonic() < deadline:
    play(learner, 10)
    time.sleep(0.05)
    children = [code.child for code in machine_code._known.values() if code.child is not None]
    print(json.dumps([child.pid for child in children]), file=sys.stderr) if "-v" in sys.argv and children else None
play(learner, 100)
again = ds.policies.AlwaysArm(1).start(problem, seed=0)
play(again, learner.round)
children = [code.child for code in machine_code._known.values()]
print(json.dumps({
    "first": first,
    "switched": type(learner._engine._begin).__name__,
    "same": again.state_hash() == learner.state_hash(),
    "codes": [None if child is None else child.poll() for child in children],
}))
"""


@pytest.mark.slow
def test_a_child_compiles_and_the_next_process_needs_none(tmp_path: Path) -> None:
    """Nothing cached: the learner answers, a child compiles, the learner goes over. Then the cache is used."""
    for codes in ([0], [None]):
        found = run_python(UNTIL_SWITCHED, NUMBA_CACHE_DIR=str(tmp_path))
        assert found == {"first": False, "switched": "Pinned", "same": True, "codes": codes}
    for path in tmp_path.rglob("*.nbc"):  # a mark without machine code is not believed
        path.unlink()
    assert run_python(UNTIL_SWITCHED, NUMBA_CACHE_DIR=str(tmp_path))["switched"] == "Pinned"


@pytest.mark.slow
def test_without_a_writable_cache_the_process_compiles_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "no-directory"
    file.touch()
    found = run_python(UNTIL_SWITCHED, NUMBA_CACHE_DIR=str(file))
    assert found == {"first": False, "switched": "Pinned", "same": True, "codes": [1]}


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_child_waits_for_another_compiler_and_ends_with_its_parent(tmp_path: Path) -> None:
    lock = tmp_path / "driftsack-compiling.lock"
    with lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        settings = {**os.environ, "DRIFTSACK_COMPILE": "behind", "NUMBA_CACHE_DIR": str(tmp_path)}
        parent = subprocess.Popen(
            [sys.executable, "-c", UNTIL_SWITCHED, "-v"], env=settings, stderr=subprocess.PIPE, text=True
        )
        assert parent.stderr is not None
        child = json.loads(parent.stderr.readline())[0]
        time.sleep(1.5)
        assert is_alive(child)
        assert sorted(tmp_path.iterdir()) == [lock]  # it has not compiled
        parent.kill()
        parent.communicate()
        deadline = time.monotonic() + 20
        while is_alive(child) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_alive(child)


class Signals:
    """Sends a signal before every k-th instruction of the package."""

    def __init__(self, every: int) -> None:
        self.every, self.count = every, 0

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if "driftsack" not in frame.f_code.co_filename or Path(frame.f_code.co_filename).name == "signals.py":
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.count += 1
            if self.count % self.every == 0:
                signal.raise_signal(signal.SIGUSR1)
        return self.trace


def learners_seen_by_a_handler() -> list[bool]:
    """Whether each learner that a signal handler saved had reserved exactly what its decisions may cost."""
    problem = ds.Problem(horizon=1_000, arms=2, budget=[900.0], cost_max=[1.0])
    learner = ds.policies.EpsilonGreedy().start(problem, seed=1, safe=True)
    seen = []

    def handler(*_: object) -> None:
        engine = learner._engine
        pending, pulls = engine.count(PENDING), int(learner.state.pulls.sum())
        seen.append(engine.ledger.reserved[0] == pending * engine.worst[0, 0] and pulls + pending <= engine.begun)

    before = signal.signal(signal.SIGUSR1, handler)
    signals = Signals(every=37)
    sys.settrace(signals.trace)
    try:
        for _ in range(6):
            learner.tell(learner.ask(), 0.5, 0.25)
    finally:
        sys.settrace(None)
        signal.signal(signal.SIGUSR1, before)
    return seen


def test_handlers_see_no_half_of_an_interpreted_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTSACK_COMPILE", "never")
    seen = learners_seen_by_a_handler()
    assert len(seen) > 20
    assert all(seen)
    monkeypatch.setattr(warm_up, "DeferredSignals", nullcontext)  # the planted fault
    assert not all(learners_seen_by_a_handler())


def test_deferred_signals_arrive_once_and_handlers_are_put_back() -> None:
    arrived: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: arrived.append(number))
    ours = signal.getsignal(signal.SIGUSR1)
    try:
        with DeferredSignals():
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR1)
            assert arrived == []
        assert arrived == [signal.SIGUSR1]
        assert signal.getsignal(signal.SIGUSR1) is ours
        with pytest.raises(KeyboardInterrupt), DeferredSignals():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_each_deferred_signal_arrives_although_a_handler_raises() -> None:
    """Also those whose handler is asyncio's, once: raising a signal again would write its descriptor twice."""
    arrived: list[int] = []

    def interrupted(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        raise KeyboardInterrupt

    def both() -> None:
        with DeferredSignals():
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR2)

    first = signal.signal(signal.SIGUSR1, interrupted)
    second = signal.signal(signal.SIGUSR2, lambda number, frame: arrived.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            both()
    finally:
        signal.signal(signal.SIGUSR1, first)
        signal.signal(signal.SIGUSR2, second)
    assert arrived == [signal.SIGUSR1, signal.SIGUSR2]


def test_a_handler_of_an_event_loop_runs_once() -> None:
    async def stopped() -> int:
        count, loop = [0], asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, lambda: count.append(1))
        with DeferredSignals():
            signal.raise_signal(signal.SIGUSR1)
        for _ in range(5):
            await asyncio.sleep(0.01)
        loop.remove_signal_handler(signal.SIGUSR1)
        return sum(count)

    assert asyncio.run(stopped()) == 1


def test_directories_that_cannot_be_looked_into_hold_no_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """``Path.exists`` raises for them, and so every ``ask`` would: here for a name that is too long."""
    code = next(iter(machine_code._known.values()), None) or machine_code.MachineCode("nothing", [])
    monkeypatch.setattr(machine_code, "places", lambda: [Path("/" + "x" * 5_000)])
    assert not code.is_marked()
    monkeypatch.undo()
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as without an entry for the user
    assert machine_code.places()[-1] == Path("~/.cache/driftsack")


def test_an_application_is_not_started_again_as_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/application/bin/uwsgi")
    assert machine_code._new_child([0, "nothing", []]) is None


def test_a_large_batch_waits_for_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTSACK_COMPILE", "behind")
    problem = ds.Problem(horizon=10**5, arms=2, budget=[900.0], cost_max=[1.0])
    learner = ds.policies.UniformRandom().start(problem, seed=0)
    ran: list[machine_code.MachineCode] = []
    monkeypatch.setattr(machine_code.MachineCode, "load", lambda code: ran.append(code))  # noqa: PLW0108  (a method)
    learner.ask_many(10)
    assert not ran
    learner.ask_many(warm_up.MANY + 1)
    assert len(ran) == 1


def test_the_mode_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTSACK_COMPILE", "later")
    with pytest.raises(SettingError, match=r"DRIFTSACK_COMPILE must be one of.*first.*behind.*never.*later"):
        mode()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert mode() == "never"


def test_code_outside_the_package_is_compiled_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has checked that both of its forms do the same."""
    monkeypatch.setenv("DRIFTSACK_COMPILE", "behind")
    problem = ds.Problem(horizon=100, arms=2, budget=[90.0], cost_max=[1.0])
    assert InTurn().start(problem)._engine.kernels.warm_up.ready()
    assert not ds.policies.UniformRandom().start(problem)._engine.kernels.warm_up.ready()


def test_arguments_of_the_described_types_are_made_again() -> None:
    arrays: list[Any] = [
        np.zeros((2, 3)),
        np.zeros(4, dtype=np.int32),
        np.zeros((3, 2), order="F"),
        np.zeros((6, 6))[::2, ::2],
    ]
    arrays[1].flags.writeable = False
    values = (*arrays, True, 3, 0.5, np.float32(1), np.random.default_rng(1), (1, 2.0))
    described = describe(values)
    assert describe(exemplar(json.loads(json.dumps(described)))) == described
    with pytest.raises(CannotPinError, match="str"):
        describe(("text",))


def test_kernels_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(draw)) is draw
