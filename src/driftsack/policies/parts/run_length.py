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
:math:`\kappa` observations, and a run predicts :math:`q = (S + \kappa q^0)/(n + \kappa)`, with the :math:`q^0` and
:math:`\kappa` of the arm's last observation.

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
from driftsack.core.checks import LARGEST_FLOAT, LARGEST_INT, LARGEST_OUTCOME, ROUNDING, Ranges
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome
from driftsack.numerics.compiled import kernel

RUNS: Final = 6
PRIOR_ROUNDS: Final = 2000.0  # of the hazard
OWN_SHARE: Final = 0.7  # of the arm's own mean in the prior of a new run
SMALLEST_DISPERSION: Final = 0.05
COIN: Final = 0.9  # a dispersion above this share of the largest outcome is that of a coin
SMALLEST_PRIOR: Final = 0.5  # observations
NEGLIGIBLE: Final = 0.02  # weight below which the oldest run is dropped
CONTAGION: Final = 0.9  # factor on the trust of the other arms at a change
EDGE: Final = 1e-6  # probabilities are kept this far from 0 and 1
TINY: Final = 1e-100  # so small that it is lost in any sum with an outcome


class RunLengths(NamedTuple):
    """The belief about m arms with p = 1 + d outcomes each."""

    weights: Floats  # (m, K) of the runs, oldest first
    counts: Floats  # (m, K) pulls of each run
    sums: Floats  # (m, p, K) outcomes of each run
    predictions: Floats  # (m, p, K) q
    live: Ints  # (m,) runs in use
    mean: Floats  # (m, p) estimates
    sd: Floats  # (m, p) their standard deviations
    last: Ints  # (m,) the latest round observed, from 0; -1 for an arm without observations
    trust: Floats  # (m,) v
    total: Floats  # (p,) sums over all arms
    observed: Floats  # (1,) number of observations
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

    def ranges(self, rounds: int) -> Ranges:
        """What the fields may hold after some rounds."""
        scratch = dict.fromkeys(("outcome", "start", "likelihood"))
        most = LARGEST_OUTCOME / np.concatenate([[1.0], self.unit])  # of each outcome
        return {
            **dict.fromkeys(("counts", "observed", "changes"), (0.0, float(LARGEST_INT))),
            **dict.fromkeys(("mean", "sd", "overall", "dispersion"), (0.0, most)),
            **dict.fromkeys(("squares", "spread", "prior"), (0.0, LARGEST_FLOAT)),
            "total": (0.0, LARGEST_INT * most),
            "sums": (0.0, LARGEST_INT * most[:, None]),
            "predictions": (0.0, most[:, None]),
            "weights": (0.0, 1.0 + ROUNDING),
            "live": (0, RUNS),
            "last": (-1, rounds),
            "trust": (0.0, 1.0),
            "largest": (TINY, most),
            "unit": (self.unit, self.unit),
            **scratch,
        }

    def check(self) -> None:
        """Raise unless the arms that were observed have runs, and no others, with means up to the largest outcome."""
        if ((self.live > 0) != (self.last >= 0)).any():
            raise ValueError("an arm without observations has a belief, or one with observations has none")
        if (self.sums > (1.0 + ROUNDING) * self.counts[:, None] * self.largest[:, None]).any():
            raise ValueError("the sum of a run is larger than that of so many outcomes")
        if (self.total > (1.0 + ROUNDING) * self.observed * self.largest).any():
            raise ValueError("the sum of all outcomes is larger than that of so many outcomes")


def new_run_lengths(problem: Problem) -> RunLengths:
    """A belief without observations."""
    arms, kinds = problem.arms, 1 + problem.resources
    return RunLengths(
        weights=np.zeros((arms, RUNS)),
        counts=np.zeros((arms, RUNS)),
        sums=np.zeros((arms, kinds, RUNS)),
        predictions=np.zeros((arms, kinds, RUNS)),
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
        belief.dispersion[k] = max(belief.dispersion[k], SMALLEST_DISPERSION * belief.largest[k])
        belief.start[k] = prior_mean(belief, arm, k)
    add_run(belief, arm)
    age = mean_age(belief, arm)
    reweigh(belief, arm, changed)
    drop_oldest(belief, arm)
    if not first and mean_age(belief, arm) < 0.5 * age:
        belief.changes[0] += 1.0
        for other in range(belief.trust.size):
            belief.trust[other] *= CONTAGION
    belief.trust[arm] = 1.0
    belief.last[arm] = max(belief.last[arm], t)
    belief.observed[0] += 1.0
    for k in range(belief.outcome.size):
        update_shared(belief, k, belief.overall[k] if first else belief.mean[arm, k])
        estimate(belief, arm, k)


@kernel
def add_run(belief: RunLengths, arm: int) -> None:
    """Append an empty run of weight 0; without room, merge the two neighbours closest in relative age first."""
    live, counts = belief.live[arm], belief.counts[arm]
    if live == counts.size:
        at = 0
        for r in range(1, live - 1):
            if counts[r] * counts[at + 1] < counts[at] * counts[r + 1]:
                at = r
        merged = belief.weights[arm, at] + belief.weights[arm, at + 1]
        remove_run(belief, arm, at + 1 if belief.weights[arm, at] >= belief.weights[arm, at + 1] else at)
        belief.weights[arm, at] = merged
        live -= 1
    belief.weights[arm, live] = 0.0
    counts[live] = 0.0
    for k in range(belief.start.size):
        belief.sums[arm, k, live] = 0.0
        belief.predictions[arm, k, live] = belief.start[k]
    belief.live[arm] = live + 1


@kernel
def remove_run(belief: RunLengths, arm: int, removed: int) -> None:
    """Remove a run and close the gap."""
    belief.live[arm] -= 1
    for r in range(removed, belief.live[arm]):
        belief.weights[arm, r] = belief.weights[arm, r + 1]
        belief.counts[arm, r] = belief.counts[arm, r + 1]
        for k in range(belief.start.size):
            belief.sums[arm, k, r] = belief.sums[arm, k, r + 1]
            belief.predictions[arm, k, r] = belief.predictions[arm, k, r + 1]


@kernel
def reweigh(belief: RunLengths, arm: int, changed: float) -> None:
    """Multiply the weights by the likelihood of the outcome, and add the outcome to all runs."""
    weights, newest = belief.weights[arm], belief.live[arm] - 1
    for r in range(newest):
        weights[r] *= 1.0 - changed
    weights[newest] = changed
    if all_coins(belief):
        coin_likelihoods(belief, arm)
    else:
        likelihoods(belief, arm)
    total = 0.0
    for r in range(newest + 1):
        weights[r] *= belief.likelihood[r]
        total += weights[r]
    rescale = 1.0 / total
    for r in range(newest + 1):
        weights[r] *= rescale
        belief.counts[arm, r] += 1.0
    for k in range(belief.outcome.size):
        for r in range(newest + 1):
            belief.sums[arm, k, r] += belief.outcome[k]


@kernel
def all_coins(belief: RunLengths) -> bool:
    """Whether every outcome is 0 or the largest so far, with the dispersion of a coin: then no logarithm is needed."""
    for k in range(belief.outcome.size):
        between = 0.0 < belief.outcome[k] < belief.largest[k]
        if between or belief.dispersion[k] < belief.largest[k]:
            return False
    return True


@kernel
def coin_likelihoods(belief: RunLengths, arm: int) -> None:
    """The likelihoods of the present outcome under the runs, if all outcomes are coins."""
    for r in range(belief.live[arm]):
        belief.likelihood[r] = 1.0
    for k in range(belief.outcome.size):
        scale, positive = 1.0 / belief.largest[k], belief.outcome[k] > 0.0
        for r in range(belief.live[arm]):
            p = min(max(scale * belief.predictions[arm, k, r], EDGE), 1.0 - EDGE)
            belief.likelihood[r] *= p if positive else 1.0 - p


@kernel
def likelihoods(belief: RunLengths, arm: int) -> None:
    """The quasi-likelihoods of the present outcome under the runs, up to a common factor."""
    most = -np.inf
    for r in range(belief.live[arm]):
        total = 0.0
        for k in range(belief.outcome.size):
            scale = 1.0 / belief.largest[k]
            share = scale * belief.outcome[k]
            p = min(max(scale * belief.predictions[arm, k, r], EDGE), 1.0 - EDGE)
            value = 0.0
            if share > 0.0:
                value += share * math.log(p)
            if share < 1.0:
                value += (1.0 - share) * math.log(1.0 - p)
            total += belief.largest[k] / belief.dispersion[k] * value
        belief.likelihood[r] = total
        if belief.weights[arm, r] > 0.0:
            most = max(most, total)
    for r in range(belief.live[arm]):
        belief.likelihood[r] = math.exp(min(belief.likelihood[r] - most, 0.0))


@kernel
def drop_oldest(belief: RunLengths, arm: int) -> None:
    """Drop the oldest run while its weight is negligible."""
    weights = belief.weights[arm]
    while belief.live[arm] > 1 and weights[0] < NEGLIGIBLE:
        rest = 1.0 - weights[0]
        remove_run(belief, arm, 0)
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
def update_shared(belief: RunLengths, k: int, mean: float) -> None:
    """Update what all arms share, g, phi and kappa, with the outcome whose estimate was ``mean``."""
    most, scale = belief.largest[k], 1.0 / belief.largest[k]
    belief.squares[k] += (belief.outcome[k] - mean) ** 2
    belief.spread[k] += max(mean * (1.0 - scale * mean), 0.0)
    belief.total[k] += belief.outcome[k]
    overall = (belief.total[k] + 0.5 * most) / (belief.observed[0] + 1.0)
    ratio = belief.squares[k] / belief.spread[k] if belief.spread[k] > 0.0 else most
    belief.overall[k] = overall
    belief.dispersion[k] = most if ratio > COIN * most else max(ratio, SMALLEST_DISPERSION * most)
    belief.prior[k] = max(3.0 * belief.dispersion[k] * max(1.0 / overall - scale, scale) - 1.0, SMALLEST_PRIOR)


@kernel
def estimate(belief: RunLengths, arm: int, k: int) -> None:
    """Predictions of the runs for one outcome of an arm; mean and standard deviation of their mixture."""
    prior, scale = belief.prior[k], 1.0 / belief.largest[k]
    weight, first, second = prior * belief.start[k], 0.0, 0.0
    for r in range(belief.live[arm]):
        total = belief.counts[arm, r] + prior
        inverse = 1.0 / (total * (total + 1.0))  # one division for 1/total and 1/(total + 1)
        mean = (belief.sums[arm, k, r] + weight) * (total + 1.0) * inverse
        belief.predictions[arm, k, r] = mean
        within = belief.dispersion[k] * max(mean * (1.0 - scale * mean), 0.0) * total * inverse
        first += belief.weights[arm, r] * mean
        second += belief.weights[arm, r] * (mean * mean + within)
    belief.mean[arm, k] = first
    belief.sd[arm, k] = math.sqrt(max(second - first * first, 0.0))
