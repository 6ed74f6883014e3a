"""One compiled trial: choose, draw, charge and learn in each round until the horizon or the stopping time."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.core.errors import DriftsackError, OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.admission import admit, admits_all, serve, skip_probability
from driftsack.game.floors import note_answer
from driftsack.game.ledger import Ledger, charge_or_stop
from driftsack.game.nature import AnyWorld, draw_outcome, reveal
from driftsack.game.protocol import STUCK, choose, learn
from driftsack.game.records import Terms, new_outcome, open_round
from driftsack.game.state_tree import solve_stuck
from driftsack.game.trial_loop import TrialLoop
from driftsack.numerics.compiled import kernel

FINISHED: Final = 0
NO_SUCH_ARM: Final = -3
PAUSED: Final = -4


class Tally(NamedTuple):
    """The running totals of one trial; only rounds before the stopping time count."""

    played: Ints  # (1,) number of rounds played
    stopping_time: Ints  # (1,) first round, from 1, whose costs exceeded a budget; T + 1 if none did
    reward: Floats  # (1,)
    pulls: Ints  # (m,)
    pulls_first_half: Ints  # (m,) pulls in the first T/2 rounds
    half: int  # T/2
    overshoot: Floats  # (d,) excess over each budget of the round that ended the trial
    times: Ints  # (p,) rounds after which the cumulative reward is recorded
    curve: Floats  # (p,) cumulative reward
    points: Ints  # (1,) number of points recorded so far
    costs: Floats  # (d,) of the current round
    mix: Floats  # (m,) of the current round
    prices: Floats  # (d,) of the current round


class Randomness(NamedTuple):
    """The two random streams of a trial, so that a policy's draws do not change the outcomes."""

    nature: Generator  # draws the outcomes
    policy: Generator  # draws the arms


def new_tally(problem: Problem, times: Ints, curve: Floats) -> Tally:
    """An empty tally that records the cumulative reward after each of ``times`` into ``curve``."""
    arms, resources = problem.arms, problem.resources
    return Tally(
        played=np.zeros(1, dtype=np.int64),
        stopping_time=np.array([problem.horizon + 1]),
        reward=np.zeros(1),
        pulls=np.zeros(arms, dtype=np.int64),
        pulls_first_half=np.zeros(arms, dtype=np.int64),
        half=problem.horizon // 2,
        overshoot=np.zeros(resources),
        times=times,
        curve=curve,
        points=np.zeros(1, dtype=np.int64),
        costs=np.zeros(resources),
        mix=np.zeros(arms),
        prices=np.zeros(resources),
    )


@kernel
def book(tally: Tally, ledger: Ledger, t: int, arm: int, reward: float) -> bool:
    """Charge and count a round whose costs are in ``tally.costs``; return False if it ends the trial."""
    if not charge_or_stop(ledger, tally.costs, tally.overshoot):
        tally.stopping_time[0] = t + 1
        return False
    tally.reward[0] += reward
    tally.pulls[arm] += 1
    if t < tally.half:
        tally.pulls_first_half[arm] += 1
    return True


@kernel
def end_round(tally: Tally, played: int) -> None:
    """Finish round ``played``, and record the cumulative reward if the curve has a point there."""
    tally.played[0] = played
    point = tally.points[0]
    if point < tally.times.size and tally.times[point] == played:
        tally.curve[point] = tally.reward[0]
        tally.points[0] = point + 1


@kernel
def end_trial(tally: Tally) -> None:
    """Fill the rest of the curve with the final reward."""
    tally.curve[tally.points[0] :] = tally.reward[0]


@kernel
def run_rounds(
    state: Any,
    ledger: Ledger,
    terms: Terms,
    world: AnyWorld,
    tally: Tally,
    nature: Generator,
    rng: Generator,
    safe: bool,
    until: int,
) -> int:
    """Run rounds until the horizon or the stopping time; ``STUCK`` and ``NO_SUCH_ARM`` interrupt the trial.

    It pauses (``PAUSED``) before round ``until``, counted from 0, so that Python can handle signals.
    """
    stopped = False
    for t in range(tally.played[0], min(until, world.phase.size)):
        if safe and not admits_all(ledger, terms, t) and admit(ledger, terms, t, safe) == 0:
            stopped = True
            break  # spending never decreases, so every further round would be skipped
        reveal(world, t, terms)
        arm = choose(state, open_round(t, ledger, terms), rng, tally.mix, tally.prices)
        if arm == STUCK:
            return STUCK
        if arm < SKIP or arm >= tally.mix.size:
            return NO_SUCH_ARM
        arm = serve(terms, arm, tally.mix)
        if arm == SKIP:
            for j in range(tally.costs.size):
                tally.costs[j] = 0.0
            learn(state, new_outcome(terms, t, SKIP, skip_probability(tally.mix), 0.0, tally.costs))
        else:
            reward = draw_outcome(world, t, arm, tally.costs, nature)
            if not book(tally, ledger, t, arm, reward):
                stopped = True
                break
            note_answer(terms.floors, arm, reward)
            learn(state, new_outcome(terms, t, arm, tally.mix[arm], reward, tally.costs))
        end_round(tally, t + 1)
    if not stopped and until < world.phase.size:
        return PAUSED
    end_trial(tally)
    return FINISHED


def run_trial(
    state: Any,
    ledger: Ledger,
    terms: Terms,
    world: AnyWorld,
    tally: Tally,
    random: Randomness,
    safe: bool = False,
    loop: TrialLoop | None = None,
) -> int:
    """Run a complete trial on a policy's state; return the number of LPs that HiGHS had to solve.

    Trials may share a ``loop``, which knows the policy's name; by default it is compiled first.
    """
    loop = loop or TrialLoop(run_rounds, state)
    arguments = (state, ledger, terms, world, tally, random.nature, random.policy, safe)
    stuck, lp_rescues = -1, 0
    while (status := loop(int(tally.played[0]), *arguments)) != FINISHED:
        if status == PAUSED:
            continue
        t = int(tally.played[0])
        if status == NO_SUCH_ARM:
            raise OutOfRangeError(
                f"choose of {loop.name} must return an arm in [0, {tally.mix.size - 1}], SKIP (-1) or STUCK (-2); "
                f"in round {t + 1} it returned another value."
            )
        if stuck == t:
            raise DriftsackError(
                f"choose of {loop.name} returned STUCK again in round {t + 1} although HiGHS had solved its LP."
            )
        stuck = t
        lp_rescues += solve_stuck(state)
    return lp_rescues
