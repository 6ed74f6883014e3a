r"""Run-length belief: estimates of each arm's mean outcomes, which may change at unknown times.

Outcome k = 0 is the reward and k = 1, ..., d are the costs in units of the budget rate b. Each arm has a few *runs*,
hypotheses that the arm last changed n pulls ago, each with a weight w and sums S of its outcomes. This is Bayesian
online change-point detection (Adams and MacKay 2007) with pruned run lengths and one belief for all outcomes of an arm.

*Scale-free.* A scale :math:`M_k` replaces a known maximum: the largest outcome k so far, but at most 4, 16 and 64 times
the second, third and fourth largest positive ones, so that one absurd outcome does not decide it. Of an outcome y,
:math:`\min(y, M_k)` is learnt. With :math:`g_k` the mean of outcome k over all arms and dispersion

.. math:: \varphi_k = \frac{\sum e^2}{\sum q (1 - q/M_k)} \in [0.05 M_k, M_k], \qquad
          \kappa_k = \max\bigl(3 \varphi_k \max(1/g_k - 1/M_k,\, 1/M_k) - 1,\; 0.5\bigr),

an outcome with mean q has variance :math:`\varphi_k q (1 - q/M_k)`; a dispersion above :math:`0.9 M_k` is replaced by
that of a Bernoulli variable, :math:`M_k`. A new run starts from :math:`q^0 = 0.7\,\text{mean} + 0.3\, g` with the
weight of :math:`\kappa` observations, and a run predicts :math:`q = (S + \kappa q^0)/(n + \kappa)`, with the
:math:`q^0` and :math:`\kappa` of the arm's last observation.

*Update* with an outcome y of round t, the previous one being from round l: with the pooled hazard
:math:`h = (1 + \text{changes})/(2000 + m t)` and :math:`s = 1 - v e^{-h (t - l)}`,

.. math:: w_r \leftarrow (1 - s)\, w_r \prod_k \bigl[p^u (1 - p)^{1 - u}\bigr]^{M_k/\varphi_k}, \qquad
          u = y/M_k,\; p = q/M_k,

a new run enters with weight :math:`s` times its likelihood, and weights are normalised. If there is no room, the two
runs closest in relative age are merged; the oldest run is dropped while its weight is below 0.02. If the mean age falls
by more than half, a change is counted, and the trust v of all other arms is multiplied by 0.9, because they may have
changed as well.

The estimate is the mean of the mixture and its standard deviation. O(K d) per observation for K runs; memory O(m K d).

*Persistence.* Outcomes of successive rounds are often alike although nothing has changed, as with queues or weather. If
they are taken for independent, they look like changes. With z the error of an outcome in standard deviations, n pairs
of outcomes of one arm in successive rounds give for each kind of outcome the autocorrelation

.. math:: a_k = \Bigl(\frac{\sum z z'}{\tfrac12 \sum (z^2 + z'^2) + 20} - \frac{2}{\sqrt n} - 0.1\Bigr)^+ .

In an AR(1) process the evidence of an outcome about the level is that of :math:`(1 - a)/(1 + a)` independent ones, so
log-likelihoods are multiplied by this factor. What is expected of an arm that was last observed g rounds ago is its
level and what is left of its last deviation: :math:`\text{mean} + a^g (y - \text{mean})`.

*Correlation.* A sale is a reward and a cost at once. With :math:`z_0` and :math:`z_k` the errors of the reward and of
cost k of one outcome, n outcomes of all arms give the correlation

.. math:: r_k = \frac{\sum z_0 z_k}{\sqrt{\sum z_0^2 \sum z_k^2} + 5},

which counts only if it exceeds :math:`3/\sqrt n` in absolute value. Policies that draw means draw them with it.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import Constants, FloatCounts, NonNegative, RoundNumbers, Scratch, Shares, within
from driftsack.core.checks import LARGEST_FLOAT, LARGEST_OUTCOME, ROUNDING
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome
from driftsack.numerics.compiled import kernel
from driftsack.numerics.powers import power, squared

RUNS: Final = 6
LARGEST_ERROR: Final = 5.0  # standard deviations
PRIOR_POWER: Final = 20.0  # of errors without correlation
TOLERATED: Final = 0.1  # autocorrelation that is ignored
PRIOR_JOINT: Final = 5.0  # power of errors without correlation between reward and costs
SIGNIFICANT: Final = 3.0  # standard errors from which a correlation between reward and costs counts
TOP: Final = 4  # largest outcomes that decide the scale
ENVELOPE: Final = 4.0  # the largest outcome counts for at most this multiple of the second largest, and so on
PRIOR_ROUNDS: Final = 2000.0  # rounds in the prior of the hazard
OWN_SHARE: Final = 0.7  # weight of the arm's own mean in the prior of a new run
SMALLEST_DISPERSION: Final = 0.05  # relative to the largest outcome
COIN: Final = 0.9  # a dispersion above this share of the largest outcome is treated as Bernoulli
SMALLEST_PRIOR: Final = 0.5  # observations that a prior is worth
NEGLIGIBLE: Final = 0.02  # weight below which the oldest run is dropped
CONTAGION: Final = 0.9  # factor on the trust of the other arms at a change
EDGE: Final = 1e-6  # probabilities are kept this far from 0 and 1
TINY: Final = 1e-100  # vanishes in any sum with an outcome


class RunLengths(NamedTuple):
    """The belief about m arms with p = 1 + d outcomes each."""

    weights: Shares  # (m, K) of the runs, oldest first
    counts: FloatCounts  # (m, K) pulls of each run
    sums: NonNegative  # (m, p, K) outcomes of each run
    predictions: NonNegative  # (m, p, K) q
    live: Annotated[Ints, within(0, RUNS)]  # (m,) runs in use
    mean: NonNegative  # (m, p) estimates
    sd: NonNegative  # (m, p) their standard deviations
    last: RoundNumbers  # (m,) the latest round observed, from 0; -1 for an arm without observations
    trust: Annotated[Floats, within(0.0, 1.0)]  # (m,) v
    total: NonNegative  # (p,) sums over all arms
    observed: FloatCounts  # (1,) number of observations
    changes: FloatCounts  # (1,) changes counted
    largest: Annotated[Floats, within(TINY, LARGEST_FLOAT)]  # (p,) M
    top: NonNegative  # (p, 4) the largest outcomes observed, in descending order
    squares: NonNegative  # (p,) sum of squared errors
    spread: NonNegative  # (p,) sum of q (1 - q/M)
    overall: NonNegative  # (p,) g
    dispersion: NonNegative  # (p,) phi
    prior: NonNegative  # (p,) kappa
    unit: Constants  # (d,) the budget rate: costs are measured in it
    residual: Floats  # (m, p) z of the arm's latest outcome
    deviation: Floats  # (m, p) that outcome minus the mean
    products: Floats  # (p,) sum of z z' over pairs of successive rounds
    powers: NonNegative  # (p,) sum of (z^2 + z'^2) / 2
    pairs: FloatCounts  # (1,) their number
    persistence: Annotated[Floats, within(0.0, 1.0)]  # (p,) a
    joint: Floats  # (p,) sum of z_0 z_k
    power: NonNegative  # (p,) sum of z_k^2
    correlation: Annotated[Floats, within(-1.0, 1.0)]  # (p,) r between reward and cost k; 0 for the reward
    outcome: Scratch  # (p,) scratch: the present outcome
    start: Scratch  # (p,) scratch: q0
    likelihood: Scratch  # (K,) scratch

    def check(self) -> None:
        """Raise unless exactly the observed arms have runs, and no mean exceeds the largest outcome."""
        most = LARGEST_OUTCOME / np.concatenate([[1.0], self.unit])  # of each outcome
        estimates = (self.mean, self.sd, self.overall, self.dispersion, self.largest, self.predictions.swapaxes(1, 2))
        if any((estimate > most).any() for estimate in estimates):
            raise ValueError("an estimate is larger than any outcome")
        if ((self.live > 0) != (self.last >= 0)).any():
            raise ValueError("an arm without observations has a belief, or one with observations has none")
        if (self.sums > (1.0 + ROUNDING) * self.counts[:, None] * self.largest[:, None]).any():
            raise ValueError("the sum of a run is larger than that of so many outcomes")
        if (self.total > (1.0 + ROUNDING) * self.observed * self.largest).any():
            raise ValueError("the sum of all outcomes is larger than that of so many outcomes")


def new_run_lengths(problem: Problem) -> RunLengths:
    """Create a belief without observations."""
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
        top=np.zeros((kinds, TOP)),
        squares=np.zeros(kinds),
        spread=np.zeros(kinds),
        overall=np.full(kinds, 0.5 * TINY),
        dispersion=np.full(kinds, TINY),
        prior=np.ones(kinds),
        unit=np.maximum(problem.planning_unit, TINY),
        residual=np.zeros((arms, kinds)),
        deviation=np.zeros((arms, kinds)),
        products=np.zeros(kinds),
        powers=np.zeros(kinds),
        pairs=np.zeros(1),
        persistence=np.zeros(kinds),
        joint=np.zeros(kinds),
        power=np.zeros(kinds),
        correlation=np.zeros(kinds),
        outcome=np.zeros(kinds),
        start=np.zeros(kinds),
        likelihood=np.zeros(RUNS),
    )


@kernel
def changed_unseen(belief: RunLengths, arm: int, t: int) -> float:
    """Return the probability s that an arm has changed since it was last observed; 1 without observations."""
    return changed_since(belief, arm, t, belief.last[arm])


@kernel
def changed_since(belief: RunLengths, arm: int, t: int, last: int) -> float:
    """Return the probability that an arm has changed since round ``last``; 1 without observations."""
    if belief.last[arm] < 0:
        return 1.0
    hazard = (1.0 + belief.changes[0]) / (PRIOR_ROUNDS + belief.last.size * (t + 1.0))
    return float(1.0 - belief.trust[arm] * math.exp(-hazard * max(t - last, 0)))


@kernel
def prior_mean(belief: RunLengths, arm: int, k: int) -> float:
    """Return the prior mean q0 of a new run of an arm."""
    if belief.last[arm] < 0:
        return float(belief.overall[k])
    return float(OWN_SHARE * belief.mean[arm, k] + (1.0 - OWN_SHARE) * belief.overall[k])


@kernel
def variance(belief: RunLengths, k: int, mean: float, observations: float) -> float:
    """Return the variance of an estimate of outcome k that is based on ``observations``."""
    return float(outcome_variance(belief, k, mean) / (observations + belief.prior[k] + 1.0))


@kernel
def outcome_variance(belief: RunLengths, k: int, mean: float) -> float:
    """Return the variance of outcome k about its mean."""
    return float(belief.dispersion[k] * max(mean * (1.0 - mean / belief.largest[k]), 0.0))


@kernel
def observe_outcome(belief: RunLengths, outcome: Outcome) -> None:
    """Update the belief about the arm of an outcome, which may be late."""
    arm, t = outcome.arm, outcome.t
    first = belief.last[arm] < 0
    changed = changed_unseen(belief, arm, max(t, belief.last[arm] + 1))
    # The outcome in units of the budget rate, the largest outcomes M, and the prior mean q0 of a new run.
    belief.outcome[0] = outcome.reward
    for j in range(outcome.costs.size):
        belief.outcome[1 + j] = outcome.costs[j] / belief.unit[j]
    for k in range(belief.outcome.size):
        set_scale(belief, k)
        if belief.observed[0] == 0.0:
            belief.overall[k] = 0.5 * belief.largest[k]
            belief.dispersion[k] = belief.largest[k]
            belief.prior[k] = 2.0
        belief.dispersion[k] = max(belief.dispersion[k], SMALLEST_DISPERSION * belief.largest[k])
        belief.start[k] = prior_mean(belief, arm, k)
    # Compare the outcome with the one of the round before, and its reward with its costs.
    if not first:
        note_residuals(belief, arm, t - belief.last[arm] == 1)
        note_correlations(belief, arm)
    # Bayesian update of the runs.
    add_run(belief, arm)
    age = mean_age(belief, arm)
    reweigh(belief, arm, changed)
    drop_oldest(belief, arm)
    # Count a change if the mean age has halved; the other arms may have changed as well.
    if not first and mean_age(belief, arm) < 0.5 * age:
        belief.changes[0] += 1.0
        for other in range(belief.trust.size):
            belief.trust[other] *= CONTAGION
    # Update the quantities that all arms share, and the estimates of the arm.
    belief.trust[arm] = 1.0
    belief.last[arm] = max(belief.last[arm], t)
    belief.observed[0] += 1.0
    for k in range(belief.outcome.size):
        update_shared(belief, k, belief.overall[k] if first else belief.mean[arm, k])
        estimate(belief, arm, k)
        belief.deviation[arm, k] = belief.outcome[k] - belief.mean[arm, k]


@kernel
def note_residuals(belief: RunLengths, arm: int, successive: bool) -> None:
    """Keep the errors of the present outcome and, after an outcome of the round before, update the persistence."""
    belief.pairs[0] += successive
    for k in range(belief.outcome.size):
        sd = math.sqrt(outcome_variance(belief, k, belief.mean[arm, k]))
        error = (belief.outcome[k] - belief.mean[arm, k]) / sd if sd > 0.0 else 0.0
        error = min(max(error, -LARGEST_ERROR), LARGEST_ERROR)
        if successive:
            before = belief.residual[arm, k]
            belief.products[k] += error * before
            belief.powers[k] += 0.5 * (error * error + before * before)
            correlation = belief.products[k] / (belief.powers[k] + PRIOR_POWER)
            doubt = 2.0 / math.sqrt(belief.pairs[0]) + TOLERATED
            belief.persistence[k] = max(correlation - doubt, 0.0)
        belief.residual[arm, k] = error


@kernel
def note_correlations(belief: RunLengths, arm: int) -> None:
    """Update the correlation between reward and costs with the errors of the present outcome."""
    errors, least = belief.residual[arm], SIGNIFICANT / math.sqrt(belief.observed[0])
    for k in range(errors.size):
        belief.joint[k] += errors[0] * errors[k]
        belief.power[k] += errors[k] * errors[k]
        if k > 0:
            found = belief.joint[k] / (math.sqrt(belief.power[0] * belief.power[k]) + PRIOR_JOINT)
            belief.correlation[k] = found if abs(found) > least else 0.0


@kernel
def correlated(belief: RunLengths, k: int, reward: float, own: float) -> float:
    """A standard normal number for cost k, from one of its own and the one that was drawn for the reward."""
    shared = belief.correlation[k]
    if shared == 0.0:
        return own
    return float(shared * reward + math.sqrt(max(1.0 - shared * shared, 0.0)) * own)


@kernel
def expected_now(belief: RunLengths, arm: int, k: int, t: int) -> float:
    """The expected outcome k of an arm in round ``t``: its mean, and what is left of its latest deviation."""
    if belief.persistence[k] == 0.0:
        return float(belief.mean[arm, k])
    left = power(belief.persistence[k], max(t - belief.last[arm], 1))
    return float(belief.mean[arm, k] + left * belief.deviation[arm, k])


@kernel
def set_scale(belief: RunLengths, k: int) -> None:
    """Update the scale M of outcome k with the present outcome, and limit the outcome to it.

    M falls only while there are fewer than four positive outcomes; what was learnt before is then limited too.
    """
    top, value = belief.top[k], belief.outcome[k]
    for r in range(TOP):
        if value > top[r]:
            top[r], value = value, top[r]
    scale, factor = max(top[0], TINY), 1.0
    for r in range(1, TOP):
        factor *= ENVELOPE
        if top[r] > 0.0:
            scale = min(scale, factor * top[r])
    if scale < belief.largest[k]:
        limit_sums(belief, k, scale)
    belief.largest[k] = scale
    belief.outcome[k] = min(belief.outcome[k], scale)


@kernel
def limit_sums(belief: RunLengths, k: int, scale: float) -> None:
    """Limit what was learnt about outcome k to a smaller scale."""
    for arm in range(belief.last.size):
        belief.mean[arm, k] = min(belief.mean[arm, k], scale)
        belief.sd[arm, k] = min(belief.sd[arm, k], scale)
        for r in range(belief.live[arm]):
            belief.sums[arm, k, r] = min(belief.sums[arm, k, r], scale * belief.counts[arm, r])
            belief.predictions[arm, k, r] = min(belief.predictions[arm, k, r], scale)
    shrink = scale / belief.largest[k]
    belief.total[k] = min(belief.total[k], scale * belief.observed[0])
    belief.overall[k] = min(belief.overall[k], scale)
    belief.squares[k] *= shrink * shrink
    belief.spread[k] *= shrink
    belief.dispersion[k] = min(belief.dispersion[k], scale)


@kernel
def add_run(belief: RunLengths, arm: int) -> None:
    """Append an empty run of weight 0; if there is no room, first merge the two neighbours closest in relative age."""
    live, counts = belief.live[arm], belief.counts[arm]
    if live == counts.size:
        # Merge: the heavier run of the pair keeps its content and gets both weights.
        at = 0
        for r in range(1, live - 1):
            if counts[r] * counts[at + 1] < counts[at] * counts[r + 1]:
                at = r
        merged = belief.weights[arm, at] + belief.weights[arm, at + 1]
        remove_run(belief, arm, at + 1 if belief.weights[arm, at] >= belief.weights[arm, at + 1] else at)
        belief.weights[arm, at] = merged
        live -= 1
    # Append.
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
    # Prior: change with probability s (``changed``), otherwise keep the runs.
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
    """Return whether every outcome is 0 or the largest so far and independent, so no logarithm is needed."""
    for k in range(belief.outcome.size):
        between = 0.0 < belief.outcome[k] < belief.largest[k]
        if between or belief.dispersion[k] < belief.largest[k] or belief.persistence[k] > 0.0:
            return False
    return True


@kernel
def coin_likelihoods(belief: RunLengths, arm: int) -> None:
    """Write the likelihoods of the current outcome under the runs, if all outcomes are Bernoulli."""
    for r in range(belief.live[arm]):
        belief.likelihood[r] = 1.0
    for k in range(belief.outcome.size):
        scale, positive = 1.0 / belief.largest[k], belief.outcome[k] > 0.0
        for r in range(belief.live[arm]):
            p = min(max(scale * belief.predictions[arm, k, r], EDGE), 1.0 - EDGE)
            belief.likelihood[r] *= p if positive else 1.0 - p


@kernel
def likelihoods(belief: RunLengths, arm: int) -> None:
    """Write the quasi-likelihoods of the current outcome under the runs, up to a common factor."""
    # Log-likelihoods, and the largest one among runs with positive weight.
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
            evidence = (1.0 - belief.persistence[k]) / (1.0 + belief.persistence[k])
            total += evidence * belief.largest[k] / belief.dispersion[k] * value
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
    """Return the expected number of pulls since the arm last changed."""
    age = 0.0
    for r in range(belief.live[arm]):
        age += belief.weights[arm, r] * belief.counts[arm, r]
    return age


@kernel
def update_shared(belief: RunLengths, k: int, mean: float) -> None:
    """Update the shared quantities g, phi and kappa with the current outcome, whose estimate was ``mean``."""
    most, scale = belief.largest[k], 1.0 / belief.largest[k]
    belief.squares[k] += squared(belief.outcome[k] - mean)
    belief.spread[k] += max(mean * (1.0 - scale * mean), 0.0)
    belief.total[k] += belief.outcome[k]
    overall = (belief.total[k] + 0.5 * most) / (belief.observed[0] + 1.0)
    ratio = belief.squares[k] / belief.spread[k] if belief.spread[k] > 0.0 else most
    belief.overall[k] = overall
    belief.dispersion[k] = most if ratio > COIN * most else max(ratio, SMALLEST_DISPERSION * most)
    belief.prior[k] = max(3.0 * belief.dispersion[k] * max(1.0 / overall - scale, scale) - 1.0, SMALLEST_PRIOR)


@kernel
def estimate(belief: RunLengths, arm: int, k: int) -> None:
    """Update the predictions of the runs for one outcome, and the mean and standard deviation of their mixture."""
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
