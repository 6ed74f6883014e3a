r"""Statements that hold with a given probability: concentration, coverage, stopping times.

Where the distribution is known (sums of Bernoulli variables) the probability of a violation is computed exactly.
Elsewhere violations are counted in independent trials on instances that are hard for the statement; the statement fails
if the lower end of a 99.9% Clopper-Pearson interval is above the probability that the statement allows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.stats import beta, binom

from driftsack.core.instance import Instance
from driftsack.policies import SlidingWindowUCB
from driftsack.simulation import simulate
from driftsack.theory.bounds import concentration_bounds, stopping_time_bound
from driftsack.theory.refined import gamma, refined_radius
from driftsack.verify.auditor import audit
from driftsack.verify.statement import CORRECTED, FAILS, HOLDS, Effort, Finding, Statement, judge_margins

CONFIDENCE: Final = 0.999
COUNTS: Final = (1, 2, 5, 10, 30, 100, 300, 1_000)
MEANS: Final = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)


def clopper_pearson(failures: int, trials: int) -> tuple[float, float]:
    """Compute the exact confidence interval of the probability of a failure.

    >>> clopper_pearson(0, 10_000)[1] < 0.001
    True
    """
    tail = (1.0 - CONFIDENCE) / 2.0
    low = float(beta.ppf(tail, failures, trials - failures + 1)) if failures else 0.0
    high = float(beta.ppf(1.0 - tail, failures + 1, trials - failures)) if failures < trials else 1.0
    return low, high


def judge_failures(failures: int, trials: int, allowed: float, event: str) -> Finding:
    """Judge a count of failures; the margin is the allowed probability less the observed frequency."""
    low, high = clopper_pearson(failures, trials)
    note = f"{failures} of {trials:,} {event}, probability within [{low:.2g}, {high:.2g}], allowed {allowed:.2g}"
    return Finding(FAILS if low > allowed else HOLDS, trials, allowed - failures / trials, note)


def hoeffding(effort: Effort, planted: bool) -> Finding:
    """The exact probability that a mean of N Bernoulli variables leaves the radius. Planted: half the radius."""
    factor = 0.5 if planted else 1.0

    def margins() -> list[float]:
        result = []
        for delta in (0.3, 0.1, 0.01, 1e-4):
            for n in COUNTS[: effort.pick(6, 8)]:
                radius = factor * np.sqrt(np.log(2.0 / delta) / (2.0 * n))
                result += [delta - probability_outside(n, mean, radius) for mean in MEANS]
        return result

    return judge_margins(margins(), "δ less the exact probability, Bernoulli variables")


def probability_outside(n: int, mean: float, radius: float) -> float:
    """P(|mean of n Bernoulli variables - mean| > radius)."""
    k = np.arange(n + 1)
    return float(binom.pmf(k, n, mean)[np.abs(k / n - mean) > radius * (1.0 + 1e-12)].sum())


def windowed_estimator(effort: Effort, planted: bool) -> Finding:
    """The estimate of a window in which the mean jumps and the arm is played at random. Planted: no drift term."""
    rng, trials, delta, window = effort.rng(21), effort.pick(2_000, 20_000), 0.2, 40
    drift = 0.0 if planted else 0.9
    means = np.where(np.arange(window) < window // 2, 0.05, 0.95)  # the drift of the window is 0.9
    played = rng.random((trials, window)) < 0.5  # noqa: PLR2004
    outcomes = rng.random((trials, window)) < means
    pulls = played.sum(axis=1)
    estimate = (played & outcomes).sum(axis=1) / (pulls + 1)
    radius = np.sqrt(2.0 / (pulls + 1) * np.log(2.0 / delta)) * (0.25 if planted else 1.0)
    failures = int((np.abs(estimate - means[-1]) > radius + drift).sum())
    return judge_failures(failures, trials, delta, "estimates were off by more than the radius and the drift")


def drift_in_one_window(horizon: int) -> Instance:
    """Two arms, two resources; the means change only within one window in the middle, and there by much."""
    rewards = np.tile([0.6, 0.4], (horizon, 1))
    costs = np.tile([[0.5, 0.3], [0.4, 0.5]], (horizon, 1, 1))
    middle = slice(horizon // 2, horizon // 2 + max(horizon // 20, 2))
    rewards[middle], costs[middle] = [0.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]
    return Instance.from_arrays(rewards, costs, 0.4 * horizon)


def coverage(effort: Effort, planted: bool) -> Finding:
    """Lemma 2: the bounds cover in all rounds with probability 1 - 1/(3T). Planted: a fifth of the radius."""
    horizon, trials = 100, effort.pick(1_500, 20_000)
    policy = SlidingWindowUCB(windows=(30, 30), scale=0.2 if planted else 1.0)
    audits = audit(drift_in_one_window(horizon), policy, trials, effort.seed)
    failures = sum(trial.missed > 0 for trial in audits)
    return judge_failures(failures, trials, 1.0 / (3.0 * horizon), "trials had a bound that did not cover")


def realised_sums(effort: Effort, planted: bool) -> Finding:
    """Lemma 3: realised sums stay near those of the LPs for all t up to τ. Planted: a hundredth of the bound.

    The horizon is long enough for the bound to be below the largest possible sum; otherwise it would hold trivially.
    """
    horizon, trials = 300_000, effort.pick(3, 20)
    world = stationary(horizon)
    policy = SlidingWindowUCB(windows=(horizon, horizon))
    bounds = concentration_bounds(horizon, 2, 2, (horizon, horizon), (0.0, 0.0))
    share = 0.01 if planted else 1.0
    farthest = np.array([trial.farthest for trial in audit(world, policy, trials, effort.seed)]).max(axis=0)
    margins = [share - farthest[0] / bounds[0], *(share - farthest[1:] / bounds[1])]
    note = f"1 less |sum| / bound; the bound is {bounds[0] / horizon:.2f} T"
    return judge_margins(margins, note)._replace(tried=trials)


def stationary(horizon: int) -> Instance:
    """A stationary instance with binding budgets: V = 0, so the windows of the paper are T."""
    return Instance.stationary([0.6, 0.4], [[0.5, 0.3], [0.4, 0.5]], horizon, 0.4 * horizon)


def stopping_time(effort: Effort, planted: bool) -> Finding:
    """Corollary 1: T - τ is at most its bound. Planted: a thousandth of the bound.

    At the rate 0.4 the bound is below T from about 10⁵ rounds on; on shorter horizons it would hold trivially.
    """
    horizon, trials = 1_000_000, effort.pick(2, 10)
    world = stationary(horizon)
    bound = stopping_time_bound(horizon, 2, 2, 0.4, 0.0)
    run = simulate(world, SlidingWindowUCB(variation=(0.0, 0.0)), trials=trials, seed=effort.seed)
    early = np.maximum(horizon - run.stopping_time, 0)
    share = 0.001 if planted else 1.0
    earliest = 1 - early.max() / horizon
    note = f"1 less (T - τ) / bound; the bound is {bound / horizon:.2f} T, the earliest stop at {earliest:.3f} T"
    return judge_margins(share - early / bound, note)


def refined_confidence_radius(effort: Effort, planted: bool) -> Finding:
    """|mean - z| <= rad(mean, N) <= 3 rad(z, N) with probability 1 - e^{-γ/4}; the printed e^{Ω(γ)} exceeds 1.

    The probability is computed exactly for Bernoulli variables. Planted: a tenth of the radius.
    """
    factor = 0.1 if planted else 1.0
    margins = []
    for g in (2.0, 4.0, 8.0, 16.0):
        for n in COUNTS[: effort.pick(6, 8)]:
            k = np.arange(n + 1)
            radius = factor * np.array([refined_radius(mean, n, g) for mean in k / n])
            for mean in MEANS:
                largest_radius = 3.0 * factor * refined_radius(mean, n, g) * (1 + 1e-12)
                violated = (np.abs(k / n - mean) > radius) | (radius > largest_radius)
                margins.append(np.exp(-g / 4.0) - float(binom.pmf(k, n, mean)[violated].sum()))
    finding = judge_margins(margins, "e^(-γ/4) less the exact probability, Bernoulli variables")
    return finding._replace(verdict=CORRECTED if finding.verdict == HOLDS else FAILS)


def refined_sums(effort: Effort, planted: bool) -> Finding:
    """The refined form of Lemma 3: sums within 8 times the O(·) of the appendix. Planted: a fiftieth of that."""
    horizon, trials = 100_000, effort.pick(3, 20)
    g = gamma(horizon, 2, 2)
    policy = SlidingWindowUCB(windows=(horizon, horizon), radius="refined")
    audits = audit(stationary(horizon), policy, trials, effort.seed)
    farthest = np.array([trial.farthest for trial in audits]).max(axis=0)
    scale = (8.0 / 50.0 if planted else 8.0) * (np.sqrt(g * 0.4 * horizon) + np.sqrt(g * 2 * horizon) + g)
    return judge_margins(1.0 - farthest / scale, "1 less |sum| / (8 × the appendix's terms)")._replace(tried=trials)


STATEMENTS = (
    Statement("hoeffding", "Appendix B, Lemma", "means of N outcomes stay within the radius", HOLDS, hoeffding),
    Statement(
        "normalised-estimator", "Appendix B, Lemma", "the windowed estimator's radius", HOLDS, windowed_estimator
    ),
    Statement("lemma-2", "Lemma 2", "UCB and LCB cover, but for the drift in the window", HOLDS, coverage),
    Statement("lemma-3", "Lemma 3", "realised sums stay near the LPs'", HOLDS, realised_sums),
    Statement("corollary-1", "Corollary 1", "T - τ is at most the bound", HOLDS, stopping_time),
    Statement(
        "refined-radius",
        "Appendix E, Lemma",
        "|mean - z| ≤ rad(mean, N) ≤ 3 rad(z, N)",
        CORRECTED,
        refined_confidence_radius,
    ),
    Statement("refined-sums", "Appendix E, Lemmas", "realised sums, refined", HOLDS, refined_sums),
)
