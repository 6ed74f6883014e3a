r"""What a policy that did not gather a log would have earned on it: three answers, and a refusal where there is none.

*Replay* (:meth:`Log.as_instance`) needs every arm's outcome in every round.

*Rejection sampling* judges any policy, learning ones too, on a log with propensities (after Li, Chu, Langford and Wang
2011). Each logged round is offered to the policy; with :math:`p_0` the smallest propensity, an offer counts if the
policy's arm is the logged arm and a coin of :math:`q_t / p_t` falls right, and, if the policy skips, if a coin of
:math:`q_t` does. So round :math:`t` counts with probability :math:`q_t` whatever the policy does. The policy is told a
horizon :math:`h` and budgets in proportion; with :math:`k` rounds counted so far and :math:`n - t` left in the log,

.. math:: q_t = \min\Bigl(\frac{h - k}{n - t},\; p_0\Bigr), \qquad h = p_0 n - 2\sqrt{n p_0 (1 - p_0)}.

Without the minimum these would be :math:`h` rounds drawn evenly from all of the log. It seldom binds before the end:
the last tenth of the log counts 12% less than its share at :math:`h = 50` and 3% less at :math:`h = 1000`. Then a game
ends with the log, on average 1.7% and 0.4% of its rounds early, and is taken to be as long as the rounds that counted.
The policy learns from fewer rounds than the log has, so its result is that of a shorter game. The reward a round
counts the rounds after a budget was broken, with nothing earned. Games on one log share its luck, and a learner's first
luck decides much; so the standard error is that of single games on logs drawn anew from this one (rows with
replacement, in order: the bootstrap).

*Self-normalised importance weights* judge a fixed mix :math:`x` on all rows,

.. math:: \hat r(x) = \Bigl(\sum_i x_i\Bigr) \frac{\sum_t w_t r_t}{\sum_t w_t}, \qquad w_t = x_{a_t} / p_t,

costs likewise, with effective sample size :math:`(\sum w)^2 / \sum w^2`. Bias is of order 1 over that size.

Both need every arm in question to have had a chance in every round, and the propensities to be those chances. Then

.. math:: M_t = \sum_{s \le t} \Bigl(\frac{1\{a_s = i\}}{p_s} - 1\Bigr)

is a martingale, whoever gathered the log and however it learned, with a variance that
:math:`\hat V = \sum_{a_s = i} (1 - p_s) / p_s^2` estimates without bias. The log is refused where

.. math:: \max_t |M_t| > z \sqrt{\hat V} + \frac{z^2}{2} c + \frac{n}{100}, \qquad z = 5,

with :math:`c` the largest :math:`\sqrt{1 - p_s} / p_s` of the arm, or of the log as far as :math:`z^2 c / 2 \le n / 5`:
where pulls are rare, :math:`\hat V` is small just when :math:`M` is, and an arm goes unseen for :math:`c z^2 / 2`
rounds with probability :math:`e^{-z^2 / 2}`, 4 in a million. The maximum over time finds arms that came late or went
early, and propensities that are right only on average. Skipped rounds are among the :math:`n`: an arm that had a chance
in them makes up for them elsewhere, one that had none is not known there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats
from driftsack.core.checks import floats, of_type, vector, whole, within
from driftsack.core.decision import SKIP
from driftsack.core.errors import CannotAnswerError, OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator, trial_seeds
from driftsack.logs.log import Log
from driftsack.policies import Policy

FEWEST: Final = 50  # rounds that count, or effective sample size, below which a log cannot answer
MARGIN: Final = 5.0  # standard errors: an honest log is not refused
UNSEEN: Final = 0.2  # of the rounds may pass without an arm that is rare there, if as rare ones were seen elsewhere
SLACK: Final = 0.01  # of the rounds may lack an arm, such as the first ones, in which each arm is tried once


class Evaluation(NamedTuple):
    """An estimate from a log, a round and in people's units."""

    method: str
    reward: float  # a round
    reward_se: float
    costs: Floats  # (d,) a round
    effective: float  # sample size: rounds that counted, or that of the weights
    rounds: int  # of the log
    lasts: float  # rounds that the budgets last at this pace, at most those of the log; the log's without budgets

    @property
    def total(self) -> float:
        """What is earned until a budget is gone or the log ends."""
        return self.reward * self.lasts


class Game(NamedTuple):
    """One game on an even thinning of the log."""

    earned: float
    used: Floats  # (d,)
    counted: int  # rounds
    rounds: int  # over which the reward is spread: the horizon, or those that counted where the log ended first
    asked: Bools  # (m,) arms that the policy wanted to play


def evaluate_mix(log: Log, mix: npt.ArrayLike, budget: Sequence[float] | Floats | float | None = None) -> Evaluation:
    """Judge a fixed mix of the arms by self-normalised importance weights; what is left of 1 is skipped.

    >>> import driftsack as ds
    >>> log = ds.gather(ds.Instance.stationary([0.2, 0.8], [[0.5, 0.5]], horizon=4_000, budget=1_000.0))
    >>> found = evaluate_mix(log, [0.25, 0.75], budget=1_000.0)
    >>> abs(found.reward - 0.65) < 4 * found.reward_se, round(found.effective) > 2_000, found.lasts < 2_200
    (True, True, True)
    """
    of_type(log, Log, "log")
    shares = within(floats(mix, "mix", (len(log.arms),)), 0.0, 1.0, "mix")
    if shares.sum() > 1.0 + 1e-9:
        raise OutOfRangeError(f"mix must sum to at most 1, got {shares.sum():g}.")
    amounts = None if budget is None else np.asarray(_whole_game(log, budget).budget)
    chance, played = known_chances(log), log.arm != SKIP
    never = [log.arms[i] for i in np.flatnonzero(shares) if not (log.arm[played] == i).any()]
    if never:
        raise CannotAnswerError(
            f"the mix plays {', '.join(never)}, which the log never tried: it cannot say what it gives."
        )
    _check_chances(log, chance, shares > 0)
    weights = np.where(played, shares[log.arm] / chance, 0.0)
    total = weights.sum()
    effective = float(total**2 / (weights**2).sum()) if total > 0 else 0.0
    if total > 0 and effective < FEWEST:
        raise CannotAnswerError(
            f"the mix is so unlike what was tried that {len(log):,} rounds count as {effective:.0f}, and {FEWEST} are "
            "needed; judge a mix nearer to the log's, or gather a log that tries its arms more often."
        )
    active = float(shares.sum())
    share = weights / total if total > 0 else weights
    reward = float(share @ log.reward)
    error = float(np.sqrt((share**2 * (log.reward - reward) ** 2).sum()))
    costs = active * (share @ log.costs)
    return Evaluation(
        "importance weights", active * reward, active * error, costs, effective, len(log), _lasts(log, costs, amounts)
    )


def evaluate(
    log: Log, policy: Policy, budget: Sequence[float] | Floats | float, trials: int = 20, seed: int = 0
) -> Evaluation:
    """Judge a policy, learning or not, by rejection sampling; ``budget`` is for as many rounds as the log has.

    >>> import driftsack as ds
    >>> world = ds.Instance.stationary([0.2, 0.8], [[0.5, 0.5]], horizon=4_000, budget=4_000.0)
    >>> found = evaluate(ds.gather(world), ds.AlwaysArm(1), budget=4_000.0, trials=5)
    >>> abs(found.reward - 0.8) < 0.05, round(found.effective, -2)
    (True, 1900.0)
    """
    of_type(log, Log, "log")
    of_type(policy, Policy, "policy")
    whole_game = _whole_game(log, budget)
    chance, played = known_chances(log), log.arm != SKIP
    least = float(chance[played].min())
    horizon = int(least * len(log) - 2.0 * np.sqrt(len(log) * least * (1.0 - least)))  # as many as nearly always count
    if horizon < FEWEST:
        raise CannotAnswerError(
            f"with a smallest propensity of {least:.2g}, {len(log):,} rounds count as {max(horizon, 0)}, and {FEWEST} "
            "are needed; gather a longer log, or one that tries every arm more often."
        )
    scaled = np.asarray(whole_game.budget) * (horizon / len(log))
    problem = Problem(horizon, len(log.arms), scaled, log.reward_max, log.cost_max)
    games = [_thinned(log, policy, problem, least, seed, trial) for trial in range(whole(trials, "trials", at_least=2))]
    _check_chances(log, chance, np.any([game.asked for game in games], axis=0))
    _check_lengths(games, problem.horizon)
    rewards = np.array([game.earned / game.rounds for game in games])
    rng = generator(seed)
    redrawn = [_thinned(_redrawn(log, rng), policy, problem, least, seed, trial) for trial in range(trials)]
    return Evaluation(
        method="rejection sampling",
        reward=float(rewards.mean()),
        reward_se=float(np.std([game.earned / game.rounds for game in redrawn], ddof=1)),
        costs=np.mean([game.used / game.rounds for game in games], axis=0),
        effective=float(np.mean([game.counted for game in games])),
        rounds=len(log),
        lasts=float(len(log)),
    )


def known_chances(log: Log) -> Floats:
    """(n,) propensities, 1 in skipped rounds, or a refusal."""
    if log.propensity is None:
        raise CannotAnswerError(
            "the log has no column propensity, the probability with which each arm was chosen, so nobody can say how a "
            "policy that chooses otherwise would have done; write it down when you gather the next log."
        )
    if not (log.arm != SKIP).any():
        raise CannotAnswerError("every round of the log was skipped, so it says nothing of any arm.")
    return np.where(log.arm != SKIP, log.propensity, 1.0)


def _thinned(log: Log, policy: Policy, problem: Problem, least: float, seed: int, trial: int) -> Game:
    """One game; trials differ in the coins and in the policy's own."""
    chance = known_chances(log)
    nature, learner_seed = trial_seeds(seed, trial)
    coins = generator(nature).random(len(log))
    learner = policy.start(problem, seed=learner_seed)
    earned, used, counted, rounds = 0.0, np.zeros(problem.resources), 0, problem.horizon
    asked = np.zeros(problem.arms, dtype=bool)
    decision: Any = learner.ask()
    for t in range(len(log)):
        skips = decision.arm == SKIP
        asked[decision.arm] |= not skips  # SKIP is the last arm's index
        rate = min((problem.horizon - counted) / (len(log) - t), least)
        if not (skips or decision.arm == log.arm[t]) or coins[t] >= (rate if skips else rate / chance[t]):
            continue
        counted += 1
        if not skips:
            if (used + log.costs[t] > np.asarray(problem.budget) * (1 + 1e-12)).any():
                break  # the round that breaks a budget earns nothing and ends the game
            earned, used = earned + log.reward[t], used + log.costs[t]
            learner.tell(decision, reward=log.reward[t], costs=log.costs[t])
        if counted == problem.horizon:
            break
        decision = learner.ask()
    else:
        rounds = max(counted, 1)  # the log ended before the game
    return Game(earned, used, counted, rounds, asked)


def _redrawn(log: Log, rng: np.random.Generator) -> Log:
    """A log of as many rows, drawn from this one with replacement, in order."""
    rows = np.sort(rng.integers(len(log), size=len(log)))
    return replace(
        log,
        time=log.time[rows],
        arm=log.arm[rows],
        reward=log.reward[rows],
        costs=log.costs[rows],
        propensity=None if log.propensity is None else log.propensity[rows],
    )


def _check_chances(log: Log, chance: Floats, arms: Bools) -> None:
    """Refuse unless each of the ``arms`` can have had the chances that the log says, in every round."""
    rounds = np.arange(1, len(log) + 1)
    spread = np.sqrt(1.0 - chance) / chance  # 0 in skipped rounds
    for i in np.flatnonzero(arms):
        pulls = log.arm == i
        stands_for = np.cumsum(pulls / chance)  # rounds
        unseen = MARGIN**2 / 2.0 * np.array([spread[pulls].max(initial=0.0), spread.max()])
        rare = max(unseen[0], min(unseen[1], UNSEEN * len(log)))
        bound = MARGIN * np.sqrt((spread[pulls] ** 2).sum()) + rare + SLACK * len(log)
        worst = int(np.abs(stands_for - rounds).argmax())
        if abs(stands_for[worst] - rounds[worst]) > bound:
            raise CannotAnswerError(
                f"by its propensities arm {log.arms[i]} stands for {stands_for[worst]:,.0f} of the first "
                f"{rounds[worst]:,} rounds, and chance explains {rounds[worst]:,} ± {bound:,.0f}: it could not be "
                "chosen in some of them, or not with these propensities; correct them, leave out the rounds in which "
                "it could not be chosen, or gather a log that gives every arm a chance in every round."
            )


def _check_lengths(games: list[Game], horizon: int) -> None:
    """Refuse if the log ended clearly before the games did; a budget may end them as early as it will."""
    lasted = np.mean([game.counted if game.rounds < horizon else horizon for game in games])
    needed = max(FEWEST, horizon - 3.0 * np.sqrt(horizon))
    if lasted < needed:
        raise CannotAnswerError(
            f"the log ended after {lasted:.0f} of {horizon} rounds that were to count, and {needed:.0f} are needed: it "
            "too seldom tried what the policy wants; gather a longer log, or one that tries every arm more often."
        )


def _whole_game(log: Log, budget: Sequence[float] | Floats | float) -> Problem:
    """The game of all the log's rounds, with budgets that were checked."""
    amounts = vector(budget, "budget", len(log.resources))
    return Problem(len(log), len(log.arms), amounts, log.reward_max, log.cost_max)


def _lasts(log: Log, costs: Floats, budget: Floats | None) -> float:
    """Rounds until the first budget is gone at this pace, at most those of the log."""
    if budget is None:
        return float(len(log))
    paces = np.divide(budget, costs, out=np.full(len(budget), np.inf), where=costs > 0)
    return float(min(paces.min(), len(log)))
