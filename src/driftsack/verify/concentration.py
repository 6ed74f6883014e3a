r"""Check statements that hold with a given probability: concentration, coverage, stopping times.

Where the distribution is known (sums of Bernoulli variables) the probability of a violation is computed exactly.
Elsewhere violations are counted in independent trials on instances that are hard for the statement; the statement fails
if the lower end of a 99.9% Clopper-Pearson interval is above the allowed probability.

At short horizons radii exceed 1 and bounds exceed T, and an estimator that returns 0 would pass. The horizons here are
long enough for it to fail.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.stats import beta, binom

from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.measures import variation
from driftsack.policies import Policy, SlidingWindowUCB
from driftsack.policies.always_arm import AlwaysArm
from driftsack.simulation import simulate
from driftsack.theory.bounds import concentration_bounds, stopping_time_bound
from driftsack.theory.refined import gamma, refined_radius
from driftsack.verify.auditor import audit
from driftsack.verify.statement import (
    FAILS,
    HOLDS,
    PROOF_VOID,
    Case,
    Effort,
    Finding,
    Statement,
    judge_correction,
    judge_margins,
)

CONFIDENCE: Final = 0.999
COUNTS: Final = (1, 2, 5, 10, 30, 100, 300, 1_000)
MEANS: Final = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
RETURNS_0: Final = "an estimator that returns 0"
PLANTED, TRIVIAL = Case.PLANTED, Case.TRIVIAL


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
    """Judge a count of failures; the margin is the allowed probability minus the observed frequency."""
    low, high = clopper_pearson(failures, trials)
    note = f"{failures} of {trials:,} {event}, probability within [{low:.2g}, {high:.2g}], allowed {allowed:.2g}"
    return Finding(FAILS if low > allowed else HOLDS, trials, allowed - failures / trials, note)


def hoeffding(effort: Effort, case: Case) -> Finding:
    """Check the exact probability that a mean of N Bernoulli variables leaves the radius. Planted: half of it."""
    factor = 0.5 if case is PLANTED else 1.0

    def margins() -> list[float]:
        result = []
        for delta in (0.3, 0.1, 0.01, 1e-4):
            for n in COUNTS[: effort.pick(6, 8)]:
                radius = factor * np.sqrt(np.log(2.0 / delta) / (2.0 * n))
                result += [delta - probability_outside(n, mean, radius, case) for mean in MEANS]
        return result

    return judge_margins(margins(), "δ minus the exact probability, Bernoulli variables")


def probability_outside(n: int, mean: float, radius: float, case: Case) -> float:
    """P(|estimate - mean| > radius), where the estimate is the mean of n Bernoulli variables, or 0 if trivial."""
    k = np.arange(n + 1)
    estimate = 0.0 * k if case is TRIVIAL else k / n
    return float(binom.pmf(k, n, mean)[np.abs(estimate - mean) > radius * (1.0 + 1e-12)].sum())


def windowed_estimator(effort: Effort, case: Case) -> Finding:
    """Check the estimate of a window with a late jump, for an arm played at random. Planted: no drift term.

    The printed proof bounds z / (n + 1) by "z <= 1 <= √(log(2/δ) / 2(n + 1))", which is false for the n at hand; since
    log(2/δ) > 2, z / (n + 1) itself is below that root.
    """
    rng, trials, delta, window = effort.rng(21), effort.pick(2_000, 5_000), 0.05, 800
    before, after = 0.5, 0.75
    drift = 0.0 if case is PLANTED else after - before
    means = np.where(np.arange(window) < 0.9 * window, before, after)
    played = rng.random((trials, window)) < 0.5
    outcomes = rng.random((trials, window)) < means
    pulls = played.sum(axis=1)
    estimate = (played & outcomes).sum(axis=1) / (pulls + 1)
    if case is TRIVIAL:
        estimate[:] = 0.0
    radius = np.sqrt(2.0 / (pulls + 1) * np.log(2.0 / delta))
    failures = int((np.abs(estimate - after) > radius + drift).sum())
    found = judge_failures(failures, trials, delta, "estimates were off by more than the radius and the drift")
    step = float(np.sqrt(np.log(2.0 / delta) / (2.0 * (pulls.min() + 1.0)))) - 1.0
    note = f"the step of the proof is off by {step:.2f}, radius {radius.max():.2f}"
    return judge_correction(step, found, note, PROOF_VOID)


def drifting(horizon: int, rate: float = 0.7, size: float = 0.05) -> Instance:
    """Two arms, two resources; means move by ``size`` at T/2 and back at 3T/4: V1 = V2 = 2 ``size``."""
    rewards, costs = np.array([0.9, 0.8]), np.array([[0.8, 0.7], [0.7, 0.8]])
    lengths = [horizon // 2, horizon // 4, horizon - horizon // 2 - horizon // 4]
    rows = [rewards, rewards + size * np.array([-1.0, 1.0]), rewards]
    uses = [costs, costs + size * np.array([[1.0, -1.0], [-1.0, 1.0]]), costs]
    return Instance.piecewise(rows, uses, lengths, rate * horizon)


def coverage(effort: Effort, case: Case) -> Finding:
    """Check Lemma 2: the bounds cover in all rounds with probability 1 - 1/(3T). Planted: a fifth of the radius."""
    horizon, window, trials = 3_000, 1_200, effort.pick(150, 2_000)
    policy = SlidingWindowUCB(windows=(window, window), scale=0.2 if case is PLANTED else 1.0)
    audits = audit(drifting(horizon), policy, trials, effort.seed, returns_zero=case is TRIVIAL)
    failures = sum(trial.missed > 0 for trial in audits)
    return judge_failures(failures, trials, 1.0 / (3.0 * horizon), "trials had a bound that did not cover")


def farthest_sums(world: Instance, policy: SlidingWindowUCB, trials: int, effort: Effort, case: Case) -> Floats:
    """(1 + d,) the largest |sum| of rewards and of each resource's costs over all trials and rounds."""
    audits = audit(world, policy, trials, effort.seed, returns_zero=case is TRIVIAL)
    largest: Floats = np.array([trial.farthest for trial in audits]).max(axis=0)
    return largest


def realised_sums(effort: Effort, case: Case) -> Finding:
    """Check Lemma 3: realised sums stay near those of the LPs for all t up to τ. Planted: a hundredth of the bound.

    Means drift and the windows are half the horizon, which is long enough for the bound to be below the sums.
    """
    horizon, trials = 1_000_000, effort.pick(4, 20)
    world, windows = drifting(horizon), (horizon // 2, horizon // 2)
    moves = variation(world)
    bounds = concentration_bounds(horizon, 2, 2, windows, (moves.v1, moves.v2))
    share = 0.01 if case is PLANTED else 1.0
    farthest = farthest_sums(world, SlidingWindowUCB(windows=windows), trials, effort, case)
    margins = [share - farthest[0] / bounds[0], *(share - farthest[1:] / bounds[1])]
    note = f"1 - |sum| / bound; the bound is {bounds[0] / horizon:.2f} T, V = {moves.v1:.2f}, w = T/2"
    return judge_margins(margins, note)._replace(tried=trials)


def dear_arms(horizon: int, v2: float) -> Instance:
    """Two arms that cost 1 and 0.95 at the rate 1/2; the cheaper one becomes more expensive by ``v2`` halfway."""
    costs = [[[1.0, 0.95]], [[1.0, 0.95 + v2]]]
    return Instance.piecewise([[0.9, 0.8]] * 2, costs, [horizon // 2, horizon - horizon // 2], 0.5 * horizon)


def stopping_time(effort: Effort, case: Case) -> Finding:
    """Check Corollary 1: T - τ is at most its bound. Planted: a thousandth of the bound.

    A policy that does not pace plays the arm of cost 1 and stops after half of the rounds, before the bound allows.
    """
    horizon, trials = effort.pick(4_000_000, 10_000_000), effort.pick(1, 4)
    v2 = 0.001 if effort.quick else 0.005  # in a full run the window is below T
    world = dear_arms(horizon, v2)
    bound = stopping_time_bound(horizon, 2, 1, 0.5, v2)
    policy: Policy = AlwaysArm(0) if case is TRIVIAL else SlidingWindowUCB(variation=(0.0, v2))
    run = simulate(world, policy, trials=trials, seed=effort.seed)
    early = np.maximum(horizon - run.stopping_time, 0)
    share = 0.001 if case is PLANTED else 1.0
    earliest = 1 - early.max() / horizon
    note = f"1 - (T - τ) / bound; the bound is {bound / horizon:.2f} T, the earliest stop at {earliest:.3f} T"
    return judge_margins(share - early / bound, note)


def refined_confidence_radius(effort: Effort, case: Case) -> Finding:
    """Check |mean - z| <= rad(mean, N) <= 3 rad(z, N) with probability 1 - e^{-γ/4} (printed: e^{Ω(γ)}, a misprint).

    The probability is computed exactly for Bernoulli variables. Planted: a tenth of the radius.
    """
    factor, known = 0.1 if case is PLANTED else 1.0, 0.0 if case is TRIVIAL else 1.0
    margins = []
    for g in (2.0, 4.0, 8.0, 16.0):
        for n in COUNTS[: effort.pick(6, 8)]:
            k = np.arange(n + 1)
            estimate = known * k / n
            radius = factor * np.array([refined_radius(mean, n, g) for mean in estimate])
            for mean in MEANS:
                largest_radius = 3.0 * factor * refined_radius(mean, n, g) * (1 + 1e-12)
                violated = (np.abs(estimate - mean) > radius) | (radius > largest_radius)
                margins.append(np.exp(-g / 4.0) - float(binom.pmf(k, n, mean)[violated].sum()))
    return judge_margins(margins, "e^(-γ/4) minus the exact probability, Bernoulli variables")


def refined_sums(effort: Effort, case: Case) -> Finding:
    """Check the refined Lemma 3: sums within 8 times the O(·) of the appendix. Planted: a fiftieth of that."""
    horizon, trials = 200_000, effort.pick(6, 40)
    world, window = drifting(horizon, size=0.01), horizon // 2
    moves, g = variation(world), gamma(horizon, 2, 2)
    policy = SlidingWindowUCB(windows=(window, window), radius="refined")
    farthest = farthest_sums(world, policy, trials, effort, case)
    terms = np.sqrt(g * 0.7 * horizon) + np.sqrt(2 * g / window) * horizon + window * moves.v1 + g
    scale = (8.0 / 50.0 if case is PLANTED else 8.0) * terms
    note = f"1 - |sum| / (8 × the appendix's terms, {8 * terms / horizon:.2f} T); V = {moves.v1:.2f}, w = T/2"
    return judge_margins(1.0 - farthest / scale, note)._replace(tried=trials)


STATEMENTS = (
    Statement(
        "hoeffding", "Appendix B, Lemma", "means of N outcomes stay within the radius", HOLDS, hoeffding, RETURNS_0
    ),
    Statement(
        "normalised-estimator",
        "Appendix B, Lemma",
        "the windowed estimator's radius",
        PROOF_VOID,
        windowed_estimator,
        RETURNS_0,
    ),
    Statement("lemma-2", "Lemma 2", "UCB and LCB cover, but for the drift in the window", HOLDS, coverage, RETURNS_0),
    Statement("lemma-3", "Lemma 3", "realised sums stay near the LPs'", HOLDS, realised_sums, RETURNS_0),
    Statement(
        "corollary-1", "Corollary 1", "T - τ is at most the bound", HOLDS, stopping_time, "a policy that never paces"
    ),
    Statement(
        "refined-radius",
        "Appendix E, Lemma",
        "|mean - z| ≤ rad(mean, N) ≤ 3 rad(z, N)",
        HOLDS,
        refined_confidence_radius,
        RETURNS_0,
    ),
    Statement("refined-sums", "Appendix E, Lemmas", "realised sums, refined", HOLDS, refined_sums, RETURNS_0),
)
