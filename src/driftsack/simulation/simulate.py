"""``simulate``: run many trials of a policy on an instance, with the same results for any number of threads."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator, SeedSequence

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import flag, of_type, whole
from driftsack.core.contextual import ContextualInstance
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError, SettingError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.contextual_world import ContextualWorld
from driftsack.game.ledger import Ledger, can_pay, open_ledger, spent_amounts
from driftsack.game.nature import AnyInstance, AnyWorld, draw_outcome, for_trial, new_world
from driftsack.game.records import new_terms
from driftsack.game.state_tree import copy_state
from driftsack.game.trial import Randomness, Tally, book, end_round, end_trial, new_tally, run_rounds, run_trial
from driftsack.game.trial_loop import TrialLoop
from driftsack.game.units import units_of
from driftsack.numerics.curves import curve_times
from driftsack.policies.policy import Policy
from driftsack.simulation.feedback import Feedback, loosened, new_feedback
from driftsack.simulation.results import Run


class Startable(Protocol):
    """A policy in plain Python: ``start`` returns an object with ``ask`` and ``tell``."""

    def start(self, problem: Problem, seed: SeedSequence) -> Any:
        """Start a learner on a problem; all randomness must come from the seed."""


class Result(NamedTuple):
    """The results of one trial."""

    tally: Tally
    ledger: Ledger
    lp_rescues: int  # step LPs that HiGHS had to solve


Trial = Callable[[AnyWorld, Tally, Ledger, Generator, SeedSequence, bool], int]


def simulate(
    instance: AnyInstance,
    policy: Policy | Startable,
    trials: int | range = 100,
    seed: int = 0,
    threads: int | None = None,
    safe: bool = False,
    progress: Callable[[int], None] | None = None,
    feedback: Feedback = Feedback(),  # noqa: B008
) -> Run:
    """Simulate independent trials of a policy; trial k depends only on ``(seed, k)``.

    The paper's stop rule applies: the round whose costs exceed a budget earns nothing and ends the trial. A policy of
    the library runs compiled; any other object whose ``start`` returns an object with ``ask`` and ``tell`` runs
    in plain Python.

    Args:
        instance: The instance; that of each trial draws its own contexts, if it has contexts that are drawn.
        policy: The policy.
        trials: Number of trials, or the range of their indices to simulate a block of a larger set of trials.
        seed: The same seed gives the same results bit for bit, for any number of threads.
        threads: Threads for compiled policies; None for one per core.
        safe: Whether a trial ends when a remaining budget is below ``cost_max``, so that no budget is overspent.
        progress: Called with the number of trials that are finished.
        feedback: Whether outcomes arrive late and whether the policy is told loose maxima.

    >>> import driftsack as ds
    >>> world = ds.instances.example_2(horizon=1_000)
    >>> run = simulate(world, ds.NaiveUCB(scale=0.1), trials=10, seed=0)
    >>> run.reward.shape, run.curve.shape, bool((run.spent <= world.problem.budget).all())
    ((10,), (10, 512), True)
    """
    if not isinstance(instance, ContextualInstance):
        of_type(instance, Instance, "instance")
    indices = _indices(trials)
    whole(seed, "seed", at_least=0)
    is_safe, count = flag(safe, "safe"), len(indices)
    of_type(feedback, Feedback, "feedback")
    late, factor = feedback.delay, feedback.loose
    workers = whole(threads, "threads", at_least=1) if threads is not None else cores()
    stop = Event()
    # A policy of the library runs in the compiled loop, anything else with ``start`` in plain Python.
    if isinstance(policy, Policy):
        one_trial = _compiled_trial(policy, instance, feedback, is_safe, count, stop)
    elif not isinstance(policy, type) and callable(getattr(policy, "start", None)):
        if is_safe and (late or factor > 1.0):
            raise SettingError("safe with delay or loose needs a policy of the library, which keeps reservations.")
        one_trial, workers = _plain_trial(policy, instance, late, factor), 1  # more threads would wait for the GIL
    else:
        hint = f"; did you mean {policy.__name__}()?" if isinstance(policy, type) else "."
        raise SettingError(f"policy must be a driftsack policy or have a start method, got {policy!r:.80}{hint}")
    # Each trial has its own random streams, tally and ledger, and writes its row of the curve.
    world, times = new_world(instance), curve_times(instance.horizon)
    curve = np.zeros((count, times.size))

    def job(trial: int) -> Result:
        nature, learner = trial_seeds(seed, indices[trial])
        tally, ledger = new_tally(instance.problem, times, curve[trial]), open_ledger(instance.problem)
        rng = generator(nature)
        lp_rescues = one_trial(for_trial(instance, world, rng), tally, ledger, rng, learner, is_safe)
        return Result(tally, ledger, lp_rescues)

    # Run the trials in threads, and collect the results in order.
    done = []
    with ThreadPoolExecutor(min(workers, count)) as pool:
        try:
            for result in map(job, range(count)) if workers == 1 else pool.map(job, range(count)):
                done.append(result)
                if progress is not None:
                    progress(len(done))
        except BaseException:  # such as Ctrl-C: trials that run end at their next pause, others do not begin
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return _collect(instance, policy, seed, done, times, curve)


def _indices(trials: int | range) -> range:
    """The indices of the trials."""
    if not isinstance(trials, range):
        return range(whole(trials, "trials", at_least=1))
    whole(len(trials), "the number of trials", at_least=1)
    whole(min(trials), "the first trial", at_least=0)
    return trials


def _compiled_trial(
    policy: Policy, instance: AnyInstance, feedback: Feedback, safe: bool, trials: int, stop: Event
) -> Trial:
    """Return a function that runs one trial in the compiled loop."""
    delay, loose = feedback.delay, feedback.loose
    told, problem = loosened(instance, loose), instance.problem
    policy.refuse_floors(problem)
    initial = policy.state_on(told)  # copied for each trial
    if not hasattr(initial, "_fields"):
        raise SettingError(f"new_state of {policy} must return a NamedTuple of arrays, got {initial!r:.80}.")
    if delay > 0 or loose > 1.0:
        initial = new_feedback(initial, told.problem, delay, loose, safe)
    loop = TrialLoop(run_rounds, initial, trials * problem.horizon, str(policy), stop)

    def trial(world: AnyWorld, tally: Tally, ledger: Ledger, nature: Generator, seed: SeedSequence, safe: bool) -> int:
        state, terms = copy_state(initial), new_terms(problem)
        return run_trial(state, ledger, terms, world, tally, Randomness(nature, generator(seed)), safe, loop)

    return trial


def _plain_trial(policy: Startable, instance: AnyInstance, delay: int, loose: float) -> Trial:
    """Return a function that runs one trial by ``ask`` and ``tell`` in plain Python, with the same rules."""
    problem, told = instance.problem, loosened(instance, loose).problem
    units = units_of(problem)

    def trial(world: AnyWorld, tally: Tally, ledger: Ledger, nature: Generator, seed: SeedSequence, safe: bool) -> int:
        learner = policy.start(told, seed=seed)
        pending: deque[tuple[int, Any, float, Floats]] = deque()  # (round of arrival, decision, reward, costs)
        for t in range(problem.horizon):
            # Choose an arm.
            if safe and not can_pay(ledger, 1):
                break
            decision = learner.ask(**_context(world, t))
            arm = _arm_of(decision, problem.arms, t)
            # Draw and charge the outcome; a round that exceeds a budget ends the trial.
            if arm != SKIP:
                reward = draw_outcome(world, t, arm, tally.costs, nature)
                if not book(tally, ledger, t, arm, reward):
                    break
                pending.append((t + delay, decision, reward * units.reward, tally.costs * units.costs))
            # Deliver the outcomes that arrive in this round.
            while pending and pending[0][0] <= t:
                _, earlier, gain, costs = pending.popleft()
                learner.tell(earlier, reward=gain, costs=costs)
            end_round(tally, t + 1)
        end_trial(tally)
        return 0

    return trial


def _context(world: AnyWorld, t: int) -> dict[str, Floats]:
    """Return the keyword arguments of ``ask`` in a round (from 0): its context, if any."""
    return {"context": world.contexts[world.order[t]]} if isinstance(world, ContextualWorld) else {}


def _arm_of(decision: Any, arms: int, t: int) -> int:
    """Return the arm chosen by the ``ask`` of a plain policy, which returns a decision or a number."""
    arm = getattr(decision, "arm", decision)
    if isinstance(arm, bool) or not isinstance(arm, (int, np.integer)) or not SKIP <= arm < arms:
        raise OutOfRangeError(
            f"ask must return an arm in [0, {arms - 1}], SKIP (-1), or a decision with such an arm; "
            f"in round {t + 1} it returned {decision!r:.80}."
        )
    return int(arm)


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _collect(instance: AnyInstance, policy: Any, seed: int, done: list[Result], times: Ints, curve: Floats) -> Run:
    """Combine the results of the trials, in the problem's units."""
    tallies, units = [result.tally for result in done], units_of(instance.problem)
    lp_rescues = np.array([result.lp_rescues for result in done])
    if lp_rescues.any():
        warnings.warn(
            f"{lp_rescues.sum()} step LPs of {policy} could not be certified and were solved by HiGHS.",
            RuntimeWarning,
            stacklevel=3,
        )
    return Run(
        instance=instance,
        policy=policy,
        seed=seed,
        reward=np.concatenate([tally.reward for tally in tallies]) * units.reward,
        stopping_time=np.concatenate([tally.stopping_time for tally in tallies]),
        spent=np.array([spent_amounts(result.ledger) for result in done]),
        overshoot=np.array([tally.overshoot for tally in tallies]) * units.costs,
        pulls=np.array([tally.pulls for tally in tallies]),
        pulls_first_half=np.array([tally.pulls_first_half for tally in tallies]),
        times=times,
        curve=np.multiply(curve, units.reward, out=curve),
        lp_rescues=lp_rescues,
    )
