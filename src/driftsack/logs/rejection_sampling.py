r"""Off-policy evaluation of any policy, including learning ones, by rejection sampling.

The method follows Li, Chu, Langford and Wang (2011). Each logged round is offered to the policy. With :math:`p_0` the
smallest propensity, an offer is accepted if the policy's arm is the logged arm, with probability :math:`q_t / p_t`; if
the policy skips, with probability :math:`q_t`. So round :math:`t` is accepted with probability :math:`q_t` whatever the
policy does. The policy plays a horizon :math:`h` with budgets in proportion. With :math:`k` rounds accepted so far and
:math:`n - t` left in the log,

.. math:: q_t = \min\Bigl(\frac{h - k}{n - t},\; p_0\Bigr), \qquad h = p_0 n - 2\sqrt{n p_0 (1 - p_0)}.

Without the minimum these would be :math:`h` rounds drawn uniformly from the whole log. It seldom binds before the end:
the last tenth of the log is accepted 12% less often than its share at :math:`h = 50`, and 3% less at :math:`h = 1000`.
A game may then end with the log, on average 1.7% and 0.4% of its rounds early, and its rewards are divided by the
number of accepted rounds.

A policy that decides by the context is asked again for each row, with its context, and is restored if the row is
rejected. Acceptance depends neither on the context nor on the draws of the policy, so the accepted rows follow the
distribution of requests in the log.

The policy learns from fewer rounds than the log has, so the estimate is that of a shorter game. The reward per round
includes the rounds after a budget was exceeded, in which nothing is earned. Games on one log share its randomness, and
the first outcomes matter much to a learner. The standard error is therefore that of single games on bootstrapped logs
(rows drawn with replacement, in order). The log must pass the checks of :mod:`driftsack.logs.propensities`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Floats
from driftsack.core.checks import of_type, whole
from driftsack.core.decision import SKIP, Decision
from driftsack.core.errors import CannotAnswerError
from driftsack.core.names import Amounts
from driftsack.core.problem import Problem
from driftsack.core.seeding import generator, trial_seeds
from driftsack.game.ledger import charge_or_stop, open_ledger, spent_amounts
from driftsack.game.units import units_of
from driftsack.logs.evaluation import MIN_SAMPLE_SIZE, Evaluation, full_problem
from driftsack.logs.log import Log
from driftsack.logs.outcome_model import known_contexts
from driftsack.logs.propensities import check_propensities, check_propensities_by_feature, known_propensities
from driftsack.policies import Policy
from driftsack.policies.learner import Learner
from driftsack.policies.learner.bookmark import Bookmark


class ThinnedGame(NamedTuple):
    """The result of one game on the accepted rounds of a log."""

    reward: float  # total reward
    spent: Floats  # (d,) total costs
    accepted: int  # number of accepted rounds
    rounds: int  # rounds that totals are divided by: the horizon, or the accepted rounds if the log ended first
    requested: Bools  # (m,) whether the policy chose each arm at least once, accepted or not


def evaluate(log: Log, policy: Policy, budget: Amounts, trials: int = 20, seed: int = 0) -> Evaluation:
    """Evaluate a policy, learning or not, by rejection sampling.

    Args:
        log: A log with propensities.
        policy: The policy to evaluate. Arms and resources that it names are matched with those of the log by name.
        budget: Budget for as many rounds as the log has, one number for all resources or one for each, in their order
            or by name.
        trials: Number of games, which differ in the accepted rounds and in the policy's own randomness.
        seed: Seed; the same seed gives the same estimate.

    Returns:
        The estimate; ``effective`` is the mean number of accepted rounds.

    Raises:
        CannotAnswerError: If the log has no propensities, they are inconsistent with the arms played, or too few rounds
            are accepted; or the policy needs contexts and the log has none, or propensities that are wrong at some.

    >>> import driftsack as ds
    >>> world = ds.Instance.stationary([0.2, 0.8], [[0.5, 0.5]], horizon=4_000, budget=4_000.0)
    >>> estimate = evaluate(ds.gather(world), ds.policies.AlwaysArm(1), budget=4_000.0, trials=5)
    >>> abs(estimate.reward - 0.8) < 0.05, round(estimate.effective, -2)
    (True, 1900.0)
    """
    of_type(log, Log, "log")
    of_type(policy, Policy, "policy")
    whole_log = full_problem(log, budget)
    if policy.needs_context:
        whole_log = replace(whole_log, features=known_contexts(log).shape[1], encoder=log.features)
    propensities = known_propensities(log)
    smallest = float(propensities[log.arm != SKIP].min())
    problem = _shortened(log, whole_log, smallest)

    # Play on the log, then check that it supports the arms that the policy chose.
    trials = whole(trials, "trials", at_least=2)
    games = [_play_thinned(log, policy, problem, smallest, seed, trial) for trial in range(trials)]
    requested: Bools = np.any([game.requested for game in games], axis=0)
    check_propensities(log, propensities, requested)
    if policy.needs_context:
        check_propensities_by_feature(log, propensities, requested)
    _check_lengths(games, problem.horizon)

    # The standard error comes from games on bootstrapped logs.
    rng = generator(seed)
    bootstrapped = [
        _play_thinned(_bootstrap(log, rng), policy, problem, smallest, seed, trial) for trial in range(trials)
    ]
    return Evaluation(
        method="rejection sampling",
        reward=float(np.array([game.reward / game.rounds for game in games]).mean()),
        reward_se=float(np.std([game.reward / game.rounds for game in bootstrapped], ddof=1)),
        costs=np.mean([game.spent / game.rounds for game in games], axis=0),
        effective=float(np.mean([game.accepted for game in games])),
        rounds=len(log),
        lasts=float(len(log)),
    )


class Offers:
    """The decisions of a policy for the rows of a log, until one of them is accepted.

    Without ``contexts`` (n, features) the policy decides before it sees a row.
    """

    def __init__(self, learner: Learner, contexts: Floats | None) -> None:
        self._learner, self._contexts = learner, contexts
        self._decision: Decision | None = None
        self._start: Bookmark | None = None
        self.accept()

    def decide(self, row: int) -> Decision:
        """Return the decision for a row, as if the rejected rows had not been offered."""
        if self._decision is not None:
            if self._start is None:
                return self._decision
            self._start.go_back()
        self._decision = self._learner.ask(context=None if self._contexts is None else self._contexts[row])
        return self._decision

    def accept(self) -> None:
        """Begin the next round, after a row was accepted and its outcome told."""
        self._decision = None
        self._start = None if self._contexts is None else Bookmark(self._learner)


def _shortened(log: Log, whole_log: Problem, smallest: float) -> Problem:
    """Return the problem of as many rounds as are nearly always accepted, with budgets in proportion."""
    horizon = int(smallest * len(log) - 2.0 * np.sqrt(len(log) * smallest * (1.0 - smallest)))
    if horizon < MIN_SAMPLE_SIZE:
        raise CannotAnswerError(
            f"with a smallest propensity of {smallest:.2g}, about {max(horizon, 0)} of {len(log):,} rounds are "
            f"accepted, and {MIN_SAMPLE_SIZE} are needed; gather a longer log, or one that plays every arm more often."
        )
    budget = np.asarray(whole_log.budget) * (horizon / len(log))
    return replace(whole_log, horizon=horizon, budget=tuple(budget.tolist()))


def _play_thinned(log: Log, policy: Policy, problem: Problem, smallest: float, seed: int, trial: int) -> ThinnedGame:
    """Play one game; trials differ in the random numbers for acceptance and for the policy."""
    propensities, units = known_propensities(log), units_of(problem)
    ledger, overshoot = open_ledger(problem), np.zeros(problem.resources)
    acceptance_seed, learner_seed = trial_seeds(seed, trial)
    uniforms = generator(acceptance_seed).random(len(log))
    learner = policy.start(problem, seed=learner_seed)
    offers = Offers(learner, log.contexts if policy.needs_context else None)
    reward, accepted, rounds = 0.0, 0, problem.horizon
    requested = np.zeros(problem.arms, dtype=bool)
    for t in range(len(log)):
        decision = offers.decide(t)
        skips = decision.arm == SKIP
        requested[decision.arm] |= not skips  # SKIP indexes the last arm
        # Accept the row with probability q_t, whatever the policy does.
        rate = min((problem.horizon - accepted) / (len(log) - t), smallest)
        if not (skips or decision.arm == log.arm[t]) or uniforms[t] >= (rate if skips else rate / propensities[t]):
            continue
        # Play an accepted row.
        accepted += 1
        if not skips:
            if not charge_or_stop(ledger, log.costs[t] / units.costs, overshoot):
                break
            reward += log.reward[t]
            learner.tell(decision, reward=log.reward[t], costs=log.costs[t])
        if accepted == problem.horizon:
            break
        offers.accept()
    else:
        rounds = max(accepted, 1)  # the log ended before the game
    spent = spent_amounts(ledger)
    return ThinnedGame(reward, spent, accepted, rounds, requested)


def _bootstrap(log: Log, rng: np.random.Generator) -> Log:
    """Draw as many rows from the log with replacement, in order."""
    return log.part(np.sort(rng.integers(len(log), size=len(log))))


def _check_lengths(games: list[ThinnedGame], horizon: int) -> None:
    """Raise if the log ended clearly before the games did; games that end because of a budget are complete."""
    lasted = np.mean([game.accepted if game.rounds < horizon else horizon for game in games])
    needed = max(MIN_SAMPLE_SIZE, horizon - 3.0 * np.sqrt(horizon))
    if lasted < needed:
        raise CannotAnswerError(
            f"the log ended after {lasted:.0f} of {horizon} rounds of the game, and {needed:.0f} are needed: it plays "
            "the arms that the policy chooses too rarely; gather a longer log, or one that plays every arm more often."
        )
