r"""Run-length belief: estimates of each arm's mean outcomes when the arm may have changed at an unknown time.

Outcome k = 0 is the reward and k = 1, ..., d are the costs in units of the budget rate b. For each arm a few *runs* are
kept, hypotheses "the arm last changed n pulls ago", each with a weight w and sums S of its outcomes: Bayesian online
change-point detection (Adams and MacKay 2007) with a pruned run length and one belief for all outcomes of an arm.

*Scale-free.* :math:`M_k` is the largest outcome k observed so far and takes the place of a known maximum. With
:math:`g_k` the mean of outcome k over all arms and dispersion

.. math:: \varphi_k = \frac{\sum e^2}{\sum q (1 - q/M_k)} \in [0.05 M_k, M_k], \qquad
          \kappa_k = \max\bigl(3 \varphi_k \max(1/g_k - 1/M_k,\, 1/M_k) - 1,\; 0.5\bigr),

an outcome with mean q has variance :math:`\varphi_k q (1 - q/M_k)`; above :math:`0.9 M_k` the dispersion is taken to be
that of a coin, :math:`M_k`. A new run starts from :math:`q^0 = 0.7\,\text{mean} + 0.3\, g` with the weight of
:math:`\kappa` observations, and a run predicts :math:`q = (S + \kappa q^0)/(n + \kappa)`.

*Update* with an outcome y of round t, the last one being from round l: with the pooled hazard
:math:`h = (1 + \text{changes})/(2000 + m t)` and :math:`s = 1 - v e^{-h (t - l)}`,

.. math:: w_r \leftarrow (1 - s)\, w_r \prod_k \bigl[p^u (1 - p)^{1 - u}\bigr]^{M_k/\varphi_k}, \qquad
          u = y/M_k,\; p = q/M_k,

a new run enters with weight :math:`s` times its likelihood, and weights are normalised. If there is no room, the two
runs closest in relative age are merged; the oldest run is dropped while its weight is below 0.02. If the mean age falls
to less than half, a change is counted, and the trust v of all other arms is multiplied by 0.9: they may have changed
too.

The estimate is the mean of the mixture and its standard deviation. O(K d) per observation for K runs; memory O(m K d).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome
from driftsack.numerics.compiled import kernel

RUNS: Final = 8
PRIOR_ROUNDS: Final = 2000.0  # of the hazard
OWN_SHARE: Final = 0.7  # of the arm's own mean in the prior of a new run
SMALLEST_DISPERSION: Final = 0.05
COIN: Final = 0.9  # a dispersion above this share of the largest outcome is that of a coin
SMALLEST_PRIOR: Final = 0.5  # observations
NEGLIGIBLE: Final = 0.02  # weight below which the oldest run is dropped
CONTAGION: Final = 0.9  # factor on the trust of the other arms at a change
EDGE: Final = 1e-6  # probabilities are kept this far from 0 and 1
TINY: Final = 1e-12


class RunLengths(NamedTuple):
    """The belief about m arms with p = 1 + d outcomes each."""

    weights: Floats  # (m, K) of the runs, oldest first
    counts: Floats  # (m, K) pulls of each run
    sums: Floats  # (m, K, p) outcomes of each run
    live: Ints  # (m,) runs in use
    mean: Floats  # (m, p) estimates
    sd: Floats  # (m, p) their standard deviations
    last: Ints  # (m,) the latest round observed, from 0; -1 for an arm without observations
    trust: Floats  # (m,) v
    total: Floats  # (p,) sums over all arms
    observed: Floats  # (1,) outcomes
    changes: Floats  # (1,) changes counted
    largest: Floats  # (p,) M
    squares: Floats  # (p,) sum of squared errors
    spread: Floats  # (p,) sum of q (1 - q/M)
    overall: Floats  # (p,) g
    dispersion: Floats  # (p,) phi
    prior: Floats  # (p,) kappa
    unit: Floats  # (d,) the budget rate: costs are measured in it
    outcome: Floats  # (p,) scratch: the present outcome
    start: Floats  # (p,) scratch: q0
    likelihood: Floats  # (K,) scratch


def new_run_lengths(problem: Problem) -> RunLengths:
    """A belief without observations."""
    arms, kinds = problem.arms, 1 + problem.resources
    return RunLengths(
        weights=np.zeros((arms, RUNS)),
        counts=np.zeros((arms, RUNS)),
        sums=np.zeros((arms, RUNS, kinds)),
        live=np.zeros(arms, dtype=np.int64),
        mean=np.zeros((arms, kinds)),
        sd=np.zeros((arms, kinds)),
        last=np.full(arms, -1, dtype=np.int64),
        trust=np.ones(arms),
        total=np.zeros(kinds),
        observed=np.zeros(1),
        changes=np.zeros(1),
        largest=np.full(kinds, TINY),
        squares=np.zeros(kinds),
        spread=np.zeros(kinds),
        overall=np.full(kinds, 0.5 * TINY),
        dispersion=np.full(kinds, TINY),
        prior=np.ones(kinds),
        unit=np.maximum(problem.rate, TINY),
        outcome=np.zeros(kinds),
        start=np.zeros(kinds),
        likelihood=np.zeros(RUNS),
    )


@kernel
def changed_unseen(belief: RunLengths, arm: int, t: int) -> float:
    """The probability s that an arm has changed since it was last observed; 1 without observations."""
    if belief.last[arm] < 0:
        return 1.0
    hazard = (1.0 + belief.changes[0]) / (PRIOR_ROUNDS + belief.last.size * (t + 1.0))
    return float(1.0 - belief.trust[arm] * math.exp(-hazard * max(t - belief.last[arm], 0)))


@kernel
def prior_mean(belief: RunLengths, arm: int, k: int) -> float:
    """The mean q0 that a new run of an arm starts from."""
    if belief.last[arm] < 0:
        return float(belief.overall[k])
    return float(OWN_SHARE * belief.mean[arm, k] + (1.0 - OWN_SHARE) * belief.overall[k])


@kernel
def variance(belief: RunLengths, k: int, mean: float, observations: float) -> float:
    """The variance of an estimate of outcome k with the weight of so many observations."""
    spread = max(mean * (1.0 - mean / belief.largest[k]), 0.0)
    return float(belief.dispersion[k] * spread / (observations + belief.prior[k] + 1.0))


@kernel
def observe_outcome(belief: RunLengths, outcome: Outcome) -> None:
    """Update the belief about the arm of an outcome, however late it arrives."""
    arm, t = outcome.arm, outcome.t
    first = belief.last[arm] < 0
    changed = changed_unseen(belief, arm, max(t, belief.last[arm] + 1))
    belief.outcome[0] = outcome.reward
    for j in range(outcome.costs.size):
        belief.outcome[1 + j] = outcome.costs[j] / belief.unit[j]
    for k in range(belief.outcome.size):
        belief.largest[k] = max(belief.largest[k], belief.outcome[k])
        if belief.observed[0] == 0.0:
            belief.overall[k] = 0.5 * belief.largest[k]
            belief.dispersion[k] = belief.largest[k]
            belief.prior[k] = 2.0
        belief.start[k] = prior_mean(belief, arm, k)
    add_run(belief, arm)
    age = reweigh(belief, arm, changed)
    drop_oldest(belief, arm)
    if not first and mean_age(belief, arm) < 0.5 * age:
        belief.changes[0] += 1.0
        for other in range(belief.trust.size):
            belief.trust[other] *= CONTAGION
    belief.trust[arm] = 1.0
    belief.last[arm] = max(belief.last[arm], t)
    update_shared(belief, arm, first)
    for k in range(belief.outcome.size):
        estimate(belief, arm, k)


@kernel
def add_run(belief: RunLengths, arm: int) -> None:
    """Append an empty run of weight 0; without room, merge the two neighbours closest in relative age first."""
    weights, counts, sums = belief.weights[arm], belief.counts[arm], belief.sums[arm]
    live = belief.live[arm]
    if live == weights.size:
        closest, at = np.inf, 0
        for r in range(live - 1):
            ratio = counts[r] / counts[r + 1]
            if ratio < closest:
                closest, at = ratio, r
        heavier = at if weights[at] >= weights[at + 1] else at + 1
        counts[at] = counts[heavier]
        for k in range(sums.shape[1]):
            sums[at, k] = sums[heavier, k]
        weights[at + 1] += weights[at]
        merged = weights[at + 1]
        shift_runs(weights, counts, sums, at + 1, live)
        weights[at] = merged
        live -= 1
    weights[live] = 0.0
    counts[live] = 0.0
    for k in range(sums.shape[1]):
        sums[live, k] = 0.0
    belief.live[arm] = live + 1


@kernel
def shift_runs(weights: Floats, counts: Floats, sums: Floats, first: int, live: int) -> None:
    """Move the runs after ``first`` one place forward, over it."""
    for r in range(first, live - 1):
        weights[r] = weights[r + 1]
        counts[r] = counts[r + 1]
        for k in range(sums.shape[1]):
            sums[r, k] = sums[r + 1, k]


@kernel
def reweigh(belief: RunLengths, arm: int, changed: float) -> float:
    """Multiply the weights by the likelihood of the outcome and add it to all runs; returns the mean age before."""
    weights, counts, sums = belief.weights[arm], belief.counts[arm], belief.sums[arm]
    newest, coins = belief.live[arm] - 1, all_coins(belief)
    largest, age = -np.inf, 0.0
    for r in range(newest + 1):
        age += weights[r] * counts[r]
        weights[r] = changed if r == newest else (1.0 - changed) * weights[r]
        belief.likelihood[r] = coin_likelihood(belief, arm, r) if coins else log_likelihood(belief, arm, r)
        if weights[r] > 0.0:
            largest = max(largest, belief.likelihood[r])
    total = 0.0
    for r in range(newest + 1):
        weights[r] *= belief.likelihood[r] if coins else math.exp(min(belief.likelihood[r] - largest, 0.0))
        total += weights[r]
    for r in range(newest + 1):
        weights[r] /= total
        counts[r] += 1.0
        for k in range(sums.shape[1]):
            sums[r, k] += belief.outcome[k]
    return age


@kernel
def all_coins(belief: RunLengths) -> bool:
    """Whether every outcome is 0 or the largest so far, with the dispersion of a coin: then no logarithm is needed."""
    for k in range(belief.outcome.size):
        between = 0.0 < belief.outcome[k] < belief.largest[k]
        if between or belief.dispersion[k] < belief.largest[k]:
            return False
    return True


@kernel
def coin_likelihood(belief: RunLengths, arm: int, r: int) -> float:
    """The likelihood of the present outcome under a run, all of whose outcomes are coins."""
    total = 1.0
    for k in range(belief.outcome.size):
        most, prior = belief.largest[k], belief.prior[k]
        mean = (belief.sums[arm, r, k] + prior * belief.start[k]) / (belief.counts[arm, r] + prior)
        p = min(max(mean / most, EDGE), 1.0 - EDGE)
        total *= p if belief.outcome[k] > 0.0 else 1.0 - p
    return total


@kernel
def log_likelihood(belief: RunLengths, arm: int, r: int) -> float:
    """The quasi log-likelihood of the present outcome under a run."""
    total = 0.0
    for k in range(belief.outcome.size):
        most, prior = belief.largest[k], belief.prior[k]
        mean = (belief.sums[arm, r, k] + prior * belief.start[k]) / (belief.counts[arm, r] + prior)
        share, p = belief.outcome[k] / most, min(max(mean / most, EDGE), 1.0 - EDGE)
        if share <= 0.0:
            value = math.log(1.0 - p)
        elif share >= 1.0:
            value = math.log(p)
        else:
            value = share * math.log(p) + (1.0 - share) * math.log(1.0 - p)
        total += most / belief.dispersion[k] * value
    return total


@kernel
def drop_oldest(belief: RunLengths, arm: int) -> None:
    """Drop the oldest run while its weight is negligible."""
    weights = belief.weights[arm]
    while belief.live[arm] > 1 and weights[0] < NEGLIGIBLE:
        rest = 1.0 - weights[0]
        shift_runs(weights, belief.counts[arm], belief.sums[arm], 0, belief.live[arm])
        belief.live[arm] -= 1
        for r in range(belief.live[arm]):
            weights[r] /= rest


@kernel
def mean_age(belief: RunLengths, arm: int) -> float:
    """The expected number of pulls since the arm last changed."""
    age = 0.0
    for r in range(belief.live[arm]):
        age += belief.weights[arm, r] * belief.counts[arm, r]
    return age


@kernel
def update_shared(belief: RunLengths, arm: int, first: bool) -> None:
    """Update the quantities that all arms share: g, phi and kappa."""
    belief.observed[0] += 1.0
    for k in range(belief.outcome.size):
        most = belief.largest[k]
        mean = belief.overall[k] if first else belief.mean[arm, k]
        belief.squares[k] += (belief.outcome[k] - mean) ** 2
        belief.spread[k] += max(mean * (1.0 - mean / most), 0.0)
        belief.total[k] += belief.outcome[k]
        overall = (belief.total[k] + 0.5 * most) / (belief.observed[0] + 1.0)
        ratio = belief.squares[k] / belief.spread[k] if belief.spread[k] > 0.0 else most
        belief.overall[k] = overall
        belief.dispersion[k] = most if ratio > COIN * most else max(ratio, SMALLEST_DISPERSION * most)
        relative = max(1.0 / overall - 1.0 / most, 1.0 / most)
        belief.prior[k] = max(3.0 * belief.dispersion[k] * relative - 1.0, SMALLEST_PRIOR)


@kernel
def estimate(belief: RunLengths, arm: int, k: int) -> None:
    """Mean and standard deviation of the mixture for one outcome of an arm."""
    first, second, prior = 0.0, 0.0, belief.prior[k]
    for r in range(belief.live[arm]):
        count = belief.counts[arm, r]
        mean = (belief.sums[arm, r, k] + prior * belief.start[k]) / (count + prior)
        first += belief.weights[arm, r] * mean
        second += belief.weights[arm, r] * (mean * mean + variance(belief, k, mean, count))
    belief.mean[arm, k] = first
    belief.sd[arm, k] = math.sqrt(max(second - first * first, 0.0))
