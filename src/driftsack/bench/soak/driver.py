"""The soak: random sequences of operations on learners of every policy, with exact arithmetic beside them.

Each learner has a number. From the seed and that number follow its policy, its problem and its operations: requests one
by one and in batches, outcomes in any order, forfeits, seasons, arms that come and go, copies, files, forks and misuse.
After each operation its budgets, reservations and overruns are compared with those of a reference ledger in integers
(:mod:`driftsack.bench.soak.accounts`). Every decision that is asked for or told counts as one operation, and so does
every other call.

What counts as a finding: an amount that differs in any bit; a budget that is overspent although ``safe`` is set and no
cost of that season exceeded its reservation; an arm that is chosen although it must be closed; an error other than the
one that is expected; an error that changes the learner; a process that ends.

A run in which nothing happens finds nothing, so :func:`shortfalls` says which kinds of operations were too rare.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import multiprocessing
import os
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

from driftsack.bench.soak.model import Tally
from driftsack.bench.soak.operations import step as do_one
from driftsack.bench.soak.player import Player
from driftsack.bench.soak.worlds import World, random_world, variants
from driftsack.core.errors import InfeasibleError

MOST_STEPS: Final = 150  # of one learner
LARGEST_BATCH: Final = 10_000
MOST_FINDINGS: Final = 20

Progress = Callable[[int, int], None]  # operations so far, findings so far

# What a million operations must contain; a shorter run needs proportionally less.
PER_MILLION: Final[dict[str, int]] = {
    "ask": 100,
    "ask with open": 20,
    "ask with caps": 20,
    "ask with at": 20,
    "ask_many": 250_000,
    "tell": 20,
    "late tell": 50,
    "tell after forfeit": 5,
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
}


class Report(NamedTuple):
    """What a soak did.

    Attributes:
        operations: The number of operations.
        seconds: The wall time.
        learners: The number of learners.
        kinds: The operations by kind.
        events: What happened meanwhile, by kind.
        errors: The expected errors by class.
        policies: The learners of each policy.
        findings: What learners did that they must not do, with the number of the learner.
        interrupted: Whether the run was interrupted before its end.
    """

    operations: int
    seconds: float
    learners: int
    kinds: dict[str, int]
    events: dict[str, int]
    errors: dict[str, int]
    policies: dict[str, int]
    findings: tuple[str, ...]
    interrupted: bool


def soak(
    operations: int,
    seed: int = 0,
    processes: int = 1,
    largest_batch: int | None = None,
    progress: Progress = lambda done, findings: None,  # noqa: ARG005
) -> Report:
    """Play learners until there were so many operations.

    Args:
        operations: The number of operations.
        seed: The seed of everything that is random.
        processes: The number of processes; 1 for this one, in which a crash is not survived.
        largest_batch: The most decisions in one request. With smaller batches, single operations are more frequent; if
            it is omitted, it grows with the square root of the operations.
        progress: Called after each learner with the number of operations and of findings so far.

    Returns:
        What happened. If it is interrupted (``KeyboardInterrupt``), what happened until then.
    """
    begun, tally, interrupted = time.perf_counter(), Tally(), False
    largest = min(math.isqrt(operations) + 1, LARGEST_BATCH) if largest_batch is None else largest_batch

    def enter(more: Tally) -> bool:
        tally.add(more)
        progress(tally.operations, len(tally.findings))
        return tally.operations < operations and len(tally.findings) < MOST_FINDINGS

    with tempfile.TemporaryDirectory() as folder:
        try:
            if processes == 1:
                number = 0
                while enter(play(seed, number, Path(folder), largest)):
                    number += 1
            else:
                _play_apart(enter, processes, (seed, folder, largest))
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
    """Say what happened too rarely for a run to show anything.

    Args:
        report: The report of a run.

    Returns:
        A sentence for each kind of operation or event that was too rare, and for policies that had no learner.
    """
    share = min(report.operations / 1e6, 1.0)
    found = report.kinds | report.events
    rare = [
        f"{kind}: {found.get(kind, 0)}, expected at least {int(count * share)}"
        for kind, count in PER_MILLION.items()
        if found.get(kind, 0) < int(count * share)
    ]
    unused = [f"no learner of {name}" for name in variants() if not report.policies.get(name) and share == 1.0]
    return (*rare, *unused)


def play(seed: int, number: int, folder: Path, largest_batch: int) -> Tally:
    """Play one learner.

    Args:
        seed: The seed of the soak.
        number: The number of the learner.
        folder: Where it may be saved.
        largest_batch: The most decisions in one request.

    Returns:
        What happened; if there was a finding, the learner is left at once.
    """
    rng, tally = np.random.default_rng([seed, number]), Tally()
    known = variants()
    name = list(known)[number % len(known)]
    world, step = random_world(name, known[name], rng), 0
    tally.policies[name] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            player = Player(world, rng, tally, folder, largest_batch)
            for step in range(int(rng.integers(10, MOST_STEPS))):  # noqa: B007
                do_one(player)
                if player.over:
                    break
            tally.events["overruns"] += player.model.overruns
        except InfeasibleError as error:
            if step or not _lacks_budget(world):
                tally.findings.append(_described(seed, number, world, step, error))
            tally.errors["InfeasibleError"] += 1
        except Exception as error:  # every error that was not expected is a finding
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
    """A finding in words."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    what = f"{type(error).__name__} at {where}: {error}"
    safe = "safe" if world.safe else "not safe"
    return (
        f"learner {number} of seed {seed}, step {step}: {what:.400} | {world.policy!r:.60}, {safe}, {world.problem!r}"
    )


def _play_apart(enter: Callable[[Tally], bool], processes: int, settings: tuple[Any, ...]) -> None:
    """Play learners in processes; one that ends is a finding, and another one takes its place."""
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


def _received(pipe: Any, process: BaseProcess, number: int) -> Tally:
    """What a process sends about a learner, or that it ended."""
    try:
        tally: Tally = pipe.recv()
    except EOFError:
        process.join()
        return Tally(findings=[f"learner {number}: the process ended with {process.exitcode}"])
    return tally


def _work(pipe: Any, seed: int, folder: str, largest_batch: int) -> None:
    """Play the learners whose numbers arrive, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one decides
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send(play(seed, pipe.recv(), Path(folder), largest_batch))


def cores() -> int:
    """The number of processes that can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
