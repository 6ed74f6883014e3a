"""``simulate``: many trials of a policy on an instance, the same bits for any number of threads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.random import Generator, SeedSequence

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import flag, of_type, whole
from driftsack.core.decision import SKIP
from driftsack.core.errors import DriftsackError, OutOfRangeError, SettingError
from driftsack.core.instance import NOISES, Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import Ledger, affordable, open_ledger, without_rounding
from driftsack.numerics.compiled import OPTIONS
from driftsack.numerics.curves import curve_times
from driftsack.policies.policy import STUCK, Policy, copied, covered, unstick
from driftsack.simulation.loop import NO_SUCH_ARM, Tally, World, close, note, play, realise, settle
from driftsack.simulation.run import Run

_fresh_play = njit(**OPTIONS)(getattr(play, "py_func", play))  # for states written outside the package


class Startable(Protocol):
    """What ``simulate`` needs of a policy in plain Python: ``start(problem, seed)`` gives ``ask`` and ``tell``."""

    def start(self, problem: Problem, seed: SeedSequence) -> Any:
        """Begin on a problem; all randomness must come from the seed."""


class Result(NamedTuple):
    """What one trial leaves behind."""

    tally: Tally
    ledger: Ledger
    fallbacks: int  # step LPs that HiGHS had to solve


Trial = Callable[[World, Tally, Ledger, Generator, SeedSequence, bool], int]


def simulate(
    instance: Instance,
    policy: Policy | Startable,
    trials: int = 100,
    seed: int = 0,
    threads: int | None = None,
    safe: bool = False,
    progress: Callable[[int], None] | None = None,
    first: int = 0,
) -> Run:
    """Play ``trials`` independent trials, from trial ``first`` on; trial k depends on ``(seed, k)`` alone.

    The paper's stop rule: the round whose cost breaks a budget earns nothing and ends the trial. With
    ``safe=True`` a round is skipped when a remaining budget is below ``cost_max``, so no budget is overspent.
    A policy of the library runs compiled, in ``threads`` threads (default: one a core); any other object with
    ``start``, and ``ask`` and ``tell`` on what it starts, runs in plain Python. ``progress`` is called with the
    number of trials done.

    >>> import driftsack as ds
    >>> world = ds.instances.example_2(horizon=1_000)
    >>> run = simulate(world, ds.NaiveUCB(scale=0.1), trials=10, seed=0)
    >>> run.reward.shape, run.curve.shape, bool((run.spent <= world.problem.budget).all())
    ((10,), (10, 512), True)
    """
    of_type(instance, Instance, "instance")
    count = whole(trials, "trials", at_least=1)
    whole(seed, "seed", at_least=0)
    begin = whole(first, "first", at_least=0)
    careful = flag(safe, "safe")
    workers = whole(threads, "threads", at_least=1) if threads is not None else cores()
    if isinstance(policy, Policy):
        one_trial = _compiled_trial(policy, instance)
    elif not isinstance(policy, type) and callable(getattr(policy, "start", None)):
        one_trial, workers = _plain_trial(policy, instance.problem), 1  # threads would only wait for the GIL
    else:
        hint = f"; did you mean {policy.__name__}()?" if isinstance(policy, type) else "."
        raise SettingError(f"policy must be a driftsack policy or have a start method, got {policy!r:.80}{hint}")
    world = World(instance.unit_rewards, instance.unit_costs, instance.phase, NOISES.index(instance.noise))

    times = curve_times(instance.horizon)
    curve = np.zeros((count, times.size))

    def job(trial: int) -> Result:
        nature, learner = trial_seeds(seed, begin + trial)
        tally = new_tally(instance, times, curve[trial])
        ledger = open_ledger(instance.problem.unit_budget, instance.horizon)
        fallbacks = one_trial(world, tally, ledger, generator(nature), learner, careful)
        return Result(tally, ledger, fallbacks)

    done = []
    with ThreadPoolExecutor(min(workers, count)) as pool:
        for result in map(job, range(count)) if workers == 1 else pool.map(job, range(count)):
            done.append(result)
            if progress is not None:
                progress(len(done))
    return _collect(instance, policy, seed, done, times, curve)


def _compiled_trial(policy: Policy, instance: Instance) -> Trial:
    """Trials by the compiled loop."""
    fresh = policy.state_on(instance)  # once: every trial starts from a copy
    if not hasattr(fresh, "_fields"):
        raise SettingError(f"new_state of {policy} must return a NamedTuple of arrays, got {fresh!r:.80}.")
    loop = play if covered(fresh) else _fresh_play

    def trial(world: World, tally: Tally, ledger: Ledger, nature: Generator, seed: SeedSequence, safe: bool) -> int:
        state, learner, stuck, fallbacks = copied(fresh), generator(seed), -1, 0
        while (end := loop(state, ledger, world, tally, nature, learner, safe)) == STUCK:
            if stuck == tally.clock[0]:
                raise DriftsackError(f"choose of {policy} is stuck in round {stuck + 1} although HiGHS solved its LP.")
            stuck = tally.clock[0]
            fallbacks += unstick(state)
        if end == NO_SUCH_ARM:
            raise OutOfRangeError(
                f"choose of {policy} must return an arm in [0, {instance.arms - 1}], SKIP (-1) or STUCK (-2); "
                f"in round {tally.clock[0] + 1} it returned something else."
            )
        return fallbacks

    return trial


def _plain_trial(policy: Startable, problem: Problem) -> Trial:
    """Trials by ``ask`` and ``tell`` in plain Python; the same rules as :func:`loop.play`."""
    most = np.asarray(problem.cost_max)

    def trial(world: World, tally: Tally, ledger: Ledger, nature: Generator, seed: SeedSequence, safe: bool) -> int:
        learner = policy.start(problem, seed=seed)
        for t in range(problem.horizon):
            if safe and not affordable(ledger, 1):
                break
            decision = learner.ask()
            arm = _arm_of(decision, problem.arms, t)
            if arm != SKIP:
                reward = realise(world, t, arm, tally.costs, nature)
                if not settle(tally, ledger, t, arm, reward):
                    break
                learner.tell(decision, reward=reward * problem.reward_max, costs=tally.costs * most)
            note(tally, t + 1)
        close(tally)
        return 0

    return trial


def _arm_of(decision: Any, arms: int, t: int) -> int:
    """The arm of what a plain policy's ``ask`` returned: a decision, or the arm itself."""
    arm = getattr(decision, "arm", decision)
    if isinstance(arm, bool) or not isinstance(arm, (int, np.integer)) or not SKIP <= arm < arms:
        raise OutOfRangeError(
            f"ask must return an arm in [0, {arms - 1}], SKIP (-1), or a decision with such an arm; "
            f"in round {t + 1} it returned {decision!r:.80}."
        )
    return int(arm)


def new_tally(instance: Instance, times: Ints, curve: Floats) -> Tally:
    """An empty tally for one trial."""
    resources = instance.resources
    clock = np.array([0, instance.horizon + 1, 0])
    pulls = np.zeros(instance.arms, dtype=np.int64)
    return Tally(
        clock=clock,
        reward=np.zeros(1),
        pulls=pulls,
        overshoot=np.zeros(resources),
        times=times,
        curve=curve,
        costs=np.zeros(resources),
        mix=np.zeros(instance.arms),
        prices=np.zeros(resources),
    )


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _collect(instance: Instance, policy: Any, seed: int, done: list[Result], times: Ints, curve: Floats) -> Run:
    """Put the trials together and back into people's units."""
    tallies = [result.tally for result in done]
    most = np.asarray(instance.problem.cost_max)
    gain = instance.problem.reward_max
    fallbacks = np.array([result.fallbacks for result in done])
    if fallbacks.any():
        warnings.warn(
            f"{fallbacks.sum()} step LPs of {policy} could not be certified and were solved by HiGHS.",
            RuntimeWarning,
            stacklevel=3,
        )
    return Run(
        instance=instance,
        policy=policy,
        seed=seed,
        reward=np.concatenate([tally.reward for tally in tallies]) * gain,
        stopping_time=np.array([tally.clock[1] for tally in tallies]),
        spent=np.array([without_rounding(result.ledger) for result in done]) * most,
        overshoot=np.array([tally.overshoot for tally in tallies]) * most,
        pulls=np.array([tally.pulls for tally in tallies]),
        times=times,
        curve=np.multiply(curve, gain, out=curve),
        fallbacks=fallbacks,
    )
