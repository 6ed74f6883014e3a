r"""What a policy that did not gather a log would have earned on it: three answers, and a refusal where there is none.

*Replay* (:meth:`Log.as_instance`) needs every arm's outcome in every round.

*Rejection sampling* judges any policy, learning ones too, on a log with propensities (after Li, Chu, Langford and Wang
2011). Each logged round is offered to the policy; with :math:`p_0` the smallest propensity, an offer counts if the
policy's arm is the logged arm and a coin of :math:`p_0 / p_t` falls right, and, if the policy skips, if a coin of
:math:`p_0` does. So every round counts with probability :math:`p_0` whatever the policy does: what counts is an even
thinning of the log, about :math:`p_0 n` rounds, for which the policy is told a horizon and budgets in proportion. It
learns from fewer rounds than the log has, so its result is that of a shorter game.
The reward a round counts the rounds after a budget was broken, with nothing earned.

*Self-normalised importance weights* judge a fixed mix :math:`x` on all rows,

.. math:: \hat r(x) = \Bigl(\sum_i x_i\Bigr) \frac{\sum_t w_t r_t}{\sum_t w_t}, \qquad w_t = x_{a_t} / p_t,

costs likewise, with effective sample size :math:`(\sum w)^2 / \sum w^2`. Bias is of order 1 over that size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.checks import Floats, floats, of_type, vector, whole, within
from driftsack.core.decision import SKIP
from driftsack.core.errors import CannotAnswerError, OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator, trial_seeds
from driftsack.logs.log import Log
from driftsack.policies import Policy

FEWEST: Final = 50  # rounds that count, or effective sample size, below which a log cannot answer


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
    chance, played = known_chances(log), log.arm != SKIP
    never = [log.arms[i] for i in np.flatnonzero(shares) if not (log.arm[played] == i).any()]
    if never:
        raise CannotAnswerError(
            f"the mix plays {', '.join(never)}, which the log never tried: it cannot say what it gives."
        )
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
        "importance weights", active * reward, active * error, costs, effective, len(log), _lasts(log, costs, budget)
    )


def evaluate(
    log: Log, policy: Policy, budget: Sequence[float] | Floats | float, trials: int = 20, seed: int = 0
) -> Evaluation:
    """Judge a policy, learning or not, by rejection sampling; ``budget`` is for as many rounds as the log has.

    The standard error is that of the mean over ``trials`` thinnings of the same log: it says nothing of how another
    log would have come out.

    >>> import driftsack as ds
    >>> world = ds.Instance.stationary([0.2, 0.8], [[0.5, 0.5]], horizon=4_000, budget=4_000.0)
    >>> found = evaluate(ds.gather(world), ds.AlwaysArm(1), budget=4_000.0, trials=5)
    >>> abs(found.reward - 0.8) < 0.05, round(found.effective, -2)
    (True, 1900.0)
    """
    of_type(log, Log, "log")
    of_type(policy, Policy, "policy")
    amounts = vector(budget, "budget", len(log.resources))
    chance, played = known_chances(log), log.arm != SKIP
    least = float(chance[played].min())
    horizon = int(least * len(log) - 2.0 * np.sqrt(len(log) * least * (1.0 - least)))  # as many as nearly always count
    if horizon < FEWEST:
        raise CannotAnswerError(
            f"with a smallest propensity of {least:.2g}, {len(log):,} rounds count as {max(horizon, 0)}, and {FEWEST} "
            "are needed; gather a longer log, or one that tries every arm more often."
        )
    problem = Problem(horizon, len(log.arms), amounts * (horizon / len(log)), log.reward_max, log.cost_max)
    played_trials = [
        _thinned(log, policy, problem, chance, least, seed, trial)
        for trial in range(whole(trials, "trials", at_least=1))
    ]
    results = np.array(played_trials) / np.array([[trial[-1]] for trial in played_trials])  # a round
    rewards, counted = results[:, 0], np.array([trial[-2] for trial in played_trials])
    return Evaluation(
        method="rejection sampling",
        reward=float(rewards.mean()),
        reward_se=float(rewards.std(ddof=1) / np.sqrt(len(rewards))) if len(rewards) > 1 else 0.0,
        costs=results[:, 1:-2].mean(axis=0),
        effective=float(counted.mean()),
        rounds=len(log),
        lasts=float(len(log)),
    )


def known_chances(log: Log) -> Floats:
    """(n,) propensities, or a refusal."""
    if log.propensity is None:
        raise CannotAnswerError(
            "the log has no column propensity, the probability with which each arm was chosen, so nobody can say how a "
            "policy that chooses otherwise would have done; write it down when you gather the next log."
        )
    if not (log.arm != SKIP).any():
        raise CannotAnswerError("every round of the log was skipped, so it says nothing of any arm.")
    return log.propensity


def _thinned(
    log: Log, policy: Policy, problem: Problem, chance: Floats, least: float, seed: int, trial: int
) -> list[float]:
    """Reward, costs, rounds that counted and rounds of the game, of one game on an even thinning of the log."""
    nature, learner_seed = trial_seeds(seed, trial)
    coins = generator(nature).random(len(log))
    learner = policy.start(problem, seed=learner_seed)
    earned, used, counted, game = 0.0, np.zeros(problem.resources), 0, problem.horizon
    decision: Any = learner.ask()
    for t in range(len(log)):
        matches = decision.arm == SKIP or decision.arm == log.arm[t]
        if not matches or coins[t] >= (least if decision.arm == SKIP else least / chance[t]):
            continue
        counted += 1
        if decision.arm != SKIP:
            if (used + log.costs[t] > np.asarray(problem.budget) * (1 + 1e-12)).any():
                break  # the round that breaks a budget earns nothing and ends the game
            earned, used = earned + log.reward[t], used + log.costs[t]
            learner.tell(decision, reward=log.reward[t], costs=log.costs[t])
        if counted == problem.horizon:
            break
        decision = learner.ask()
    else:
        game = max(counted, 1)  # the log ended before the game
    return [earned, *used.tolist(), counted, game]


def _lasts(log: Log, costs: Floats, budget: Sequence[float] | Floats | float | None) -> float:
    """Rounds until the first budget is gone at this pace, at most those of the log."""
    if budget is None:
        return float(len(log))
    amounts = vector(budget, "budget", len(log.resources))
    paces = np.divide(amounts, costs, out=np.full(len(amounts), np.inf), where=costs > 0)
    return float(min(paces.min(), len(log)))
