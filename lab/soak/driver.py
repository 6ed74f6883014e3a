"""The soak: random sequences of operations on learners of every policy, compared with exact arithmetic.

Each learner has a number. The seed and that number determine its policy, its problem and its operations: single and
batched requests, optional features, outcomes in any order, forfeits, seasons, added and retired arms, copies, files,
forks and misuse. After each operation its budgets, reservations and overruns are compared with those of a reference
ledger in integers (:mod:`lab.soak.accounts`), and encoded features with those of :mod:`lab.soak.features`. Every
decision that is asked for or told counts as one operation, and so does every other call.

A finding is one of these: an amount that differs in any bit; a budget that is overspent although ``safe`` is set and no
cost of that season exceeded its reservation; the choice of an arm that must be closed; an unexpected error; an error
that changes the learner; the end of a process.

A run in which little happens finds nothing, so :func:`shortfalls` lists the operations that were too rare.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import multiprocessing
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.errors import InfeasibleError
from driftsack.simulation.precompile import variants
from lab.soak.model import SoakCounts
from lab.soak.operations import step as do_one
from lab.soak.player import Player
from lab.soak.worlds import World, random_world

MOST_STEPS: Final = 150  # of one learner
LARGEST_BATCH: Final = 10_000
MOST_FINDINGS: Final = 20

Progress = Callable[[int, int], None]  # operations so far, findings so far

# Minimum numbers in a million operations; a shorter run needs proportionally fewer.
PER_MILLION: Final[dict[str, int]] = {
    "ask": 100,
    "ask with open": 20,
    "ask with caps": 20,
    "ask with at": 20,
    "ask_many": 250_000,
    "tell": 20,
    "late tell": 50,
    "tell after forfeit": 5,
    "tell in parts": 10,
    "tell_many": 200_000,
    "repeated tell": 20,
    "cancel": 10,
    "cancel with costs": 10,
    "forfeit": 20,
    "expire": 5,
    "misuse": 10,
    "tell a skip": 2,
    "add_arm": 3,
    "retire_arm": 3,
    "reopen_arm": 10,
    "grant": 20,
    "renew": 10,
    "revise": 5,
    "to_bytes and from_bytes": 1,
    "save and load": 1,
    "deepcopy": 1,
    "pickle": 1,
    "fork": 1,
    "decisions for an arm": 250_000,
    "rounds admitted at exactly the limit": 10,
    "exhausted budgets": 20,
    "refused because of the horizon or a budget": 20,
    "renewed with pending decisions": 5,
    "overruns": 20,
    "missing values": 15,
}


class Report(NamedTuple):
    """The counts and findings of a soak."""

    operations: int
    seconds: float  # wall time
    learners: int
    kinds: dict[str, int]  # operations by kind
    events: dict[str, int]  # by kind
    errors: dict[str, int]  # expected ones by class
    policies: dict[str, int]  # learners by policy
    findings: tuple[str, ...]  # each with the number of its learner
    interrupted: bool


def soak(
    operations: int,
    seed: int = 0,
    processes: int = 1,
    largest_batch: int | None = None,
    progress: Progress = lambda done, findings: None,
) -> Report:
    """Play learners until they have done the given number of operations.

    Args:
        seed: Together with the number of a learner, it determines everything that the learner does.
        processes: The number of processes; with 1, learners are played in this process, which a crash would end.
        largest_batch: The maximum number of decisions in one request. Smaller batches make single operations more
            frequent. Default: it grows with the square root of the operations.
        progress: Called after each learner with the numbers of operations and findings so far.

    Returns:
        The report; after a ``KeyboardInterrupt``, that of the operations until then.
    """
    begun, tally, interrupted = time.perf_counter(), SoakCounts(), False
    largest = min(math.isqrt(operations) + 1, LARGEST_BATCH) if largest_batch is None else largest_batch

    def enter(more: SoakCounts) -> bool:
        tally.add(more)
        progress(tally.operations, len(tally.findings))
        return tally.operations < operations and len(tally.findings) < MOST_FINDINGS

    with tempfile.TemporaryDirectory() as directory:
        try:
            if processes == 1:
                number = 0
                while enter(play(seed, number, Path(directory), largest)):
                    number += 1
            else:
                _play_apart(enter, processes, (seed, directory, largest))
        except KeyboardInterrupt:
            interrupted = True
    return Report(
        operations=tally.operations,
        seconds=time.perf_counter() - begun,
        learners=tally.policies.total(),
        kinds=dict(tally.kinds.most_common()),
        events=dict(tally.events.most_common()),
        errors=dict(tally.errors.most_common()),
        policies=dict(sorted(tally.policies.items())),
        findings=tuple(tally.findings),
        interrupted=interrupted,
    )


def shortfalls(report: Report) -> tuple[str, ...]:
    """List the operations and events that were too rare, and the policies that had no learner."""
    share = min(report.operations / 1e6, 1.0)
    found = report.kinds | report.events
    rare = [
        f"{kind}: {found.get(kind, 0)}, expected at least {int(count * share)}"
        for kind, count in PER_MILLION.items()
        if found.get(kind, 0) < int(count * share)
    ]
    unused = [f"no learner of {name}" for name in variants() if not report.policies.get(name) and share == 1.0]
    return (*rare, *unused)


def play(seed: int, number: int, directory: Path, largest_batch: int) -> SoakCounts:
    """Play the learner of a seed and a number until its end or the first finding."""
    rng, tally = np.random.default_rng([seed, number]), SoakCounts()
    known = variants()
    name = list(known)[number % len(known)]
    world, step = random_world(name, known[name], rng), 0
    tally.policies[name] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            player = Player(world, rng, tally, directory, largest_batch)
            for step in range(int(rng.integers(10, MOST_STEPS))):  # noqa: B007
                do_one(player)
                if player.over:
                    break
            tally.events["overruns"] += player.model.overruns
        except InfeasibleError as error:
            if step or not _lacks_budget(world):
                tally.findings.append(_described(seed, number, world, step, error))
            tally.errors["InfeasibleError"] += 1
        except Exception as error:  # every unexpected error is a finding
            tally.findings.append(_described(seed, number, world, step, error))
    return tally


def _lacks_budget(world: World) -> bool:
    """Whether a safe learner cannot be started because its budgets do not pay for the fallback arm."""
    problem = world.problem
    if not world.safe or problem.fallback is None:
        return False
    most = problem.cost_max_by_arm[:, problem.fallback]
    return bool((most * problem.horizon > np.asarray(problem.budget) * (1 - 1e-9)).any())


def _described(seed: int, number: int, world: World, step: int, error: Exception) -> str:
    """Describe a finding."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    what = f"{type(error).__name__} at {where}: {error}"
    safe = "safe" if world.safe else "not safe"
    return (
        f"learner {number} of seed {seed}, step {step}: {what:.400} | {world.policy!r:.60}, {safe}, {world.problem!r}"
    )


def _play_apart(enter: Callable[[SoakCounts], bool], processes: int, settings: tuple[Any, ...]) -> None:
    """Play learners in processes; the end of a process is a finding, and another one replaces it."""
    context = multiprocessing.get_context("spawn")
    workers: dict[Any, tuple[BaseProcess, int]] = {}
    numbers, going = itertools.count(), True

    def start() -> tuple[Any, BaseProcess]:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, *settings), daemon=True)
        process.start()
        theirs.close()
        return ours, process

    def give(pipe: Any, process: BaseProcess) -> None:
        workers[pipe] = process, next(numbers)
        pipe.send(workers[pipe][1])

    try:
        for _ in range(processes):
            give(*start())
        while workers:
            for pipe in wait(list(workers)):
                process, number = workers.pop(pipe)
                tally = _received(pipe, process, number)
                going = enter(tally) and going
                if going:
                    give(*((pipe, process) if process.is_alive() else start()))
                else:
                    pipe.close()  # type: ignore[union-attr]
    finally:
        for process, _ in workers.values():
            process.terminate()


def _received(pipe: Any, process: BaseProcess, number: int) -> SoakCounts:
    """Receive the tally of a learner from its process; if the process has ended, that is a finding."""
    try:
        tally: SoakCounts = pipe.recv()
    except EOFError:
        process.join()
        return SoakCounts(findings=[f"learner {number}: the process ended with {process.exitcode}"])
    return tally


def _work(pipe: Any, seed: int, directory: str, largest_batch: int) -> None:
    """Play the learners whose numbers arrive through a pipe, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles it
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send(play(seed, pipe.recv(), Path(directory), largest_batch))
