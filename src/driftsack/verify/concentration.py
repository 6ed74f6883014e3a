r"""Check statements that hold with a given probability: concentration, coverage, stopping times.

Where the distribution is known (sums of Bernoulli variables) the probability of a violation is computed exactly.
Elsewhere violations are counted in independent trials on instances that are hard for the statement; the statement fails
if the lower end of a 99.9% Clopper-Pearson interval is above the allowed probability.

At short horizons radii exceed 1 and bounds exceed T, and an estimator that returns 0 would pass. The horizons here are
long enough for it to fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.stats import beta, binom

from driftsack.benchmarks import lp_dynamic
from driftsack.core.arrays import Floats, Ints
from driftsack.core.instance import Instance
from driftsack.measures import variation
from driftsack.policies import SlidingWindowUCB
from driftsack.simulation import simulate
from driftsack.theory.bounds import concentration_bounds, drift_rate, stopping_time_bound
from driftsack.theory.refined import gamma, refined_radius
from driftsack.verify.auditor import audit
from driftsack.verify.competitors import COMPETITORS, competitors
from driftsack.verify.statement import (
    FAILS,
    FALSE_AS_PRINTED,
    HOLDS,
    PROOF_VOID,
    ROUNDING,
    WEAK,
    Case,
    Effort,
    Finding,
    Statement,
    critical_factor,
    judge_correction,
    judge_margins,
)

CONFIDENCE: Final = 0.999
COUNTS: Final = (1, 2, 5, 10, 30, 100, 300, 1_000)
MEANS: Final = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
RETURNS_0: Final = "an estimator that returns 0"
TRIVIAL = Case.TRIVIAL


def clopper_pearson(failures: int, trials: int) -> tuple[float, float]:
    """Compute the exact confidence interval of the probability of a failure.

    >>> clopper_pearson(0, 10_000)[1] < 0.001
    True
    """
    tail = (1.0 - CONFIDENCE) / 2.0
    low = float(beta.ppf(tail, failures, trials - failures + 1)) if failures else 0.0
    high = float(beta.ppf(1.0 - tail, failures + 1, trials - failures)) if failures < trials else 1.0
    return low, high


def judge_failures(needed: Floats, allowed: float, event: str, factor: float = 1.0) -> Finding:
    """Judge how many trials (n,) needed a factor above ``factor``; the margin is the allowed share less theirs.

    The power is the largest factor with which a Clopper-Pearson interval of the probability lies above the allowed one.
    """
    trials = needed.size

    def rejects(level: float) -> bool:
        return clopper_pearson(int((needed > level).sum()), trials)[0] > allowed

    failures = int((needed > factor).sum())
    low, high = clopper_pearson(failures, trials)
    note = f"{failures} of {trials:,} {event}, probability within [{low:.2g}, {high:.2g}], allowed {allowed:.2g}"
    verdict = FAILS if rejects(factor) else HOLDS
    return Finding(verdict, trials, allowed - failures / trials, note, power=critical_factor(rejects))


def judge_exact(margins: Callable[[float], Floats], note: str, factor: float) -> Finding:
    """Judge the allowed minus the exact probabilities, which ``margins`` computes with a factor on the radius."""
    power = critical_factor(lambda level: float(margins(level).min()) < -ROUNDING)
    return judge_margins(margins(factor), note, power=power)


def fixed_number_of_outcomes(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the exact probability that a mean of N Bernoulli variables leaves the radius, for a fixed N."""

    def margins(level: float) -> Floats:
        result = []
        for delta in (0.3, 0.1, 0.01, 1e-4):
            for n in COUNTS[: effort.pick(6, 8)]:
                radius = level * np.sqrt(np.log(2.0 / delta) / (2.0 * n))
                result += [delta - probability_outside(n, mean, radius, case) for mean in MEANS]
        return np.array(result)

    chosen = probability_for_some_count(0.05, 3_000)
    note = (
        "δ minus the exact probability, Bernoulli variables, N fixed; an N that is chosen after seeing the outcomes "
        f"leaves the radius for δ = 0.05 with probability {chosen:.2f}"
    )
    return judge_exact(margins, note, factor)


def probability_outside(n: int, mean: float, radius: float, case: Case) -> float:
    """P(|estimate - mean| > radius), where the estimate is the mean of n Bernoulli variables, or 0 if trivial."""
    k = np.arange(n + 1)
    estimate = 0.0 * k if case is TRIVIAL else k / n
    return float(binom.pmf(k, n, mean)[np.abs(estimate - mean) > radius * (1.0 + 1e-12)].sum())


def probability_for_some_count(delta: float, most: int) -> float:
    """P(some N up to ``most`` has its mean of fair coins outside of the radius for one N), exactly.

    >>> 0.05 < probability_for_some_count(0.05, 100)
    True
    """
    alive, gone = np.array([1.0]), 0.0  # probability of k heads after n coins, if the mean has stayed inside
    for n in range(1, most + 1):
        alive = 0.5 * (np.append(alive, 0.0) + np.append(0.0, alive))
        outside = np.abs(np.arange(n + 1) / n - 0.5) > math.sqrt(math.log(2.0 / delta) / (2.0 * n))
        gone += float(alive[outside].sum())
        alive[outside] = 0.0
    return gone


def windowed_estimator(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the estimate of a window with a late jump, for an arm whose rounds are drawn without seeing outcomes.

    The printed proof bounds z / (n + 1) by "z <= 1 <= √(log(2/δ) / 2(n + 1))", which is false for the n at hand; since
    log(2/δ) > 2, z / (n + 1) itself is below that root.
    """
    rng, trials, delta, window = effort.rng(21), effort.pick(2_000, 5_000), 0.05, 800
    before, after = 0.5, 0.75
    means = np.where(np.arange(window) < 0.9 * window, before, after)
    played = rng.random((trials, window)) < 0.5
    outcomes = rng.random((trials, window)) < means
    pulls = played.sum(axis=1)
    estimate = (played & outcomes).sum(axis=1) / (pulls + 1)
    if case is TRIVIAL:
        estimate[:] = 0.0
    radius = np.sqrt(2.0 / (pulls + 1) * np.log(2.0 / delta))
    needed = (np.abs(estimate - after) - (after - before)) / radius
    steady = (np.abs(steady_estimate(rng, pulls, after, case) - after)) / radius  # the same pulls without a jump
    found = judge_failures(np.maximum(needed, steady), delta, "estimates needed more than the radius and drift", factor)
    step = float(np.sqrt(np.log(2.0 / delta) / (2.0 * (pulls.min() + 1.0)))) - 1.0
    note = f"the step of the proof is off by {step:.2f}, radius {radius.max():.2f}"
    return judge_correction(step, found, note, PROOF_VOID)


def steady_estimate(rng: np.random.Generator, pulls: Ints, mean: float, case: Case) -> Floats:
    """The normalised estimates (n,) after ``pulls`` (n,) of an arm with a constant mean, or zeros if trivial."""
    known = 0.0 if case is TRIVIAL else 1.0
    estimate: Floats = known * rng.binomial(pulls, mean) / (pulls + 1)
    return estimate


def drifting(horizon: int, rate: float = 0.7, size: float = 0.05) -> Instance:
    """Two arms, two resources; means move by ``size`` at T/2 and back at 3T/4: V1 = V2 = 2 ``size``."""
    rewards, costs = np.array([0.9, 0.8]), np.array([[0.8, 0.7], [0.7, 0.8]])
    lengths = [horizon // 2, horizon // 4, horizon - horizon // 2 - horizon // 4]
    rows = [rewards, rewards + size * np.array([-1.0, 1.0]), rewards]
    uses = [costs, costs + size * np.array([[1.0, -1.0], [-1.0, 1.0]]), costs]
    return Instance.piecewise(rows, uses, lengths, rate * horizon)


def coverage(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check Lemma 2: the bounds cover in all rounds with probability 1 - 1/(3T)."""
    horizon, window, trials = 3_000, 1_200, effort.pick(150, 2_000)
    policy = SlidingWindowUCB(windows=(window, window))
    audits = audit(drifting(horizon), policy, trials, effort.seed, returns_zero=case is TRIVIAL)
    needed = np.array([trial.needed for trial in audits])
    return judge_failures(needed, 1.0 / (3.0 * horizon), "trials had a bound that did not cover", factor)


def judge_audited_sums(
    world: Instance, policy: SlidingWindowUCB, bounds: tuple[float, float], trials: int, effort: Effort, case: Case
) -> Finding:
    """Judge the largest |sum| of rewards and of each resource's costs, over trials and rounds, by their bounds."""
    audits = audit(world, policy, trials, effort.seed, returns_zero=case is TRIVIAL)
    farthest = np.array([trial.farthest for trial in audits]).max(axis=0)
    shares = farthest / np.array([bounds[0]] + [bounds[1]] * world.resources)
    return judge_margins(1.0 - shares, "", power=float(shares.max()))._replace(tried=trials)


def scaled(finding: Finding, factor: float) -> Finding:
    """Judge margins of the form 1 - share with ``factor`` in place of 1; the power is the largest share."""
    margin = finding.margin - 1.0 + factor
    return finding._replace(margin=margin, verdict=finding.verdict if margin >= -ROUNDING else FAILS)


def falling_rewards(horizon: int, fall: float = 0.8) -> Instance:
    """Two arms whose rewards fall at T/2, and whose costs do not change: V1 = ``fall`` and V2 = 0."""
    rewards, costs = np.array([0.9, 0.85]), [[0.8, 0.7], [0.7, 0.8]]
    halves = [horizon // 2, horizon - horizon // 2]
    return Instance.piecewise([rewards, rewards - fall], [costs, costs], halves, 0.7 * horizon)


def realised_sums(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check Lemma 3: realised sums stay near those of the LPs for all t up to τ.

    Rewards fall by 0.8 and the windows are half the horizon. So most of the bound on rewards is wV, of which a windowed
    mean loses half, and the bound on costs is below their sum.
    """
    horizon, trials = 1_000_000, effort.pick(4, 20)
    world, windows = falling_rewards(horizon), (horizon // 2, horizon // 2)
    moves = variation(world)
    bounds = concentration_bounds(horizon, 2, 2, windows, (moves.v1, moves.v2))
    found = judge_audited_sums(world, SlidingWindowUCB(windows=windows), bounds, trials, effort, case)
    note = (
        f"1 - |sum| / bound; {bounds[0] / horizon:.2f} T for rewards, {bounds[1] / horizon:.2f} T for costs, "
        f"V1 = {moves.v1:.2f}, w = T/2"
    )
    return scaled(found, factor)._replace(note=note)


def dear_arms(horizon: int, v2: float) -> Instance:
    """Two arms that cost 1 and 0.95 at the rate 1/2; the cheaper one becomes more expensive by ``v2`` halfway."""
    costs = [[[1.0, 0.95]], [[1.0, 0.95 + v2]]]
    return Instance.piecewise([[0.9, 0.8]] * 2, costs, [horizon // 2, horizon - horizon // 2], 0.5 * horizon)


def stopping_time(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check Corollary 1: T - τ is at most its bound, and the budget is spent up to b times the bound.

    A policy that does not pace stops after half of the rounds, before the bound allows; one that never plays stops
    never, but does not spend what Lemma 3 says that Algorithm 1 spends where its LP binds.
    """
    horizon, trials = effort.pick(4_000_000, 10_000_000), effort.pick(1, 4)
    v2 = 0.001 if effort.quick else 0.005  # in a full run the window is below T
    world = dear_arms(horizon, v2)
    bound = stopping_time_bound(horizon, 2, 1, 0.5, v2)
    rounds, spent = [], []
    for policy in competitors(world) if case is TRIVIAL else [SlidingWindowUCB(variation=(0.0, v2))]:
        run = None if policy is None else simulate(world, policy, trials=trials, seed=effort.seed)
        rounds.append(0.0 if run is None else float(np.maximum(horizon - run.stopping_time, 0).max()))
        spent.append(0.0 if run is None else float(run.spent.min()))
    unspent = 0.5 * horizon - np.array(spent)
    shares = np.maximum(np.array(rounds) / bound, unspent / (0.5 * bound))
    best = int(shares.argmin())
    note = (
        f"1 - the larger of (T - τ) / bound and unspent / (b bound); the bound is {bound / horizon:.2f} T, the stop at "
        f"{1 - rounds[best] / horizon:.3f} T, unspent {unspent[best] / horizon:.4f} T"
    )
    return judge_margins([factor - shares[best]], note, power=float(shares[best]))._replace(tried=trials)


def refined_confidence_radius(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check |mean - z| <= rad(mean, N) <= 3 rad(z, N) with probability 1 - e^{-γ/4} (printed: e^{Ω(γ)}, a misprint).

    The probability is computed exactly for Bernoulli variables.
    """
    known = 0.0 if case is TRIVIAL else 1.0

    def margins(level: float) -> Floats:
        result = []
        for g in (2.0, 4.0, 8.0, 16.0):
            for n in COUNTS[: effort.pick(6, 8)]:
                k = np.arange(n + 1)
                estimate = known * k / n
                radius = level * np.array([refined_radius(mean, n, g) for mean in estimate])
                for mean in MEANS:
                    largest_radius = 3.0 * level * refined_radius(mean, n, g) * (1 + 1e-12)
                    violated = (np.abs(estimate - mean) > radius) | (radius > largest_radius)
                    result.append(np.exp(-g / 4.0) - float(binom.pmf(k, n, mean)[violated].sum()))
        return np.array(result)

    return judge_exact(margins, "e^(-γ/4) minus the exact probability, Bernoulli variables", factor)


def refined_terms(
    world: Instance, window: int, drift: tuple[float, float], amount: float
) -> tuple[float, float, float]:
    """The terms of the appendix for sums of rewards or costs up to ``amount``: noise, learning, and a missing one.

    The last is m γ (1 + log w) ⌈T/w⌉, the sum of the second parts γ/n of the radii, which Lemmas 7 and 8 leave out.
    """
    horizon, arms = world.horizon, world.arms
    g, v = drift
    noise = math.sqrt(g * amount) + g + window * v
    learning = math.sqrt(arms * g / window) * horizon
    return noise, learning, arms * g * (1.0 + math.log(window)) * math.ceil(horizon / window)


def refined_sums(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check Lemmas 7 and 8: sums within 2 times the appendix's terms with the missing one; false as printed.

    For small V > 0 the window is the horizon, and the second halves of the lemmas leave out √(γ m Σ): the deviation
    over their terms grows with the number of arms.
    """
    horizon, trials = 200_000, effort.pick(4, 20)
    ratios = []
    for arms in (2, 32) if effort.quick else (2, 32, 256):
        small = many_arms(arms, 20_000)
        moves, g = variation(small), gamma(small.horizon, arms, 1)
        audits = audit(small, SlidingWindowUCB(variation=(moves.v1, moves.v2), radius="refined"), 1, effort.seed)
        printed = math.sqrt(g * 0.5 * small.horizon) + drift_rate(small.horizon, arms, moves.v2) * g ** (1 / 3)
        ratios.append(float(audits[0].farthest[1]) / printed)
    world, window = drifting(horizon, size=0.01), horizon // 2
    moves, g = variation(world), gamma(horizon, 2, 2)
    policy = SlidingWindowUCB(windows=(window, window), radius="refined")
    terms = 2.0 * sum(refined_terms(world, window, (g, moves.v1), 0.7 * horizon))
    found = judge_audited_sums(world, policy, (terms, terms), trials, effort, case)
    note = f"1 - |sum| / (2 × the terms of the first halves and m γ log w, {terms / horizon:.2f} T)"
    text = ", ".join(f"{ratio:.1f}" for ratio in ratios)
    printed = (
        f"V = 10⁻⁶, 2 to {arms} arms: the deviation of costs over the terms of the second half of Lemma 8 is {text}"
    )
    return judge_correction(1.0 - ratios[-1] / (2.0 * ratios[0]), scaled(found, factor)._replace(note=note), printed)


def many_arms(arms: int, horizon: int) -> Instance:
    """Arms with similar means, a rate that binds and a tiny drift: V1 = V2 = 10⁻⁶."""
    rewards, costs = np.linspace(0.85, 0.9, arms), np.linspace(0.75, 0.85, arms)
    halves = [horizon // 2, horizon - horizon // 2]
    return Instance.piecewise([rewards, rewards + 1e-6], [[costs], [costs + 1e-6]], halves, 0.5 * horizon)


def stationary_sums(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check Lemmas 9 and 10 (Agrawal and Devanur): with V = 0 and w = T, sums within 6 times √(γ m Σ) + m γ log T."""
    horizon, arms, trials = effort.pick(200_000, 1_000_000), 8, effort.pick(2, 10)
    rewards, costs = np.linspace(0.5, 0.9, arms), np.linspace(0.4, 0.8, arms)
    world = Instance.stationary(rewards, [costs, costs[::-1]], horizon, 0.5 * horizon)
    g = gamma(horizon, arms, 2)
    best = lp_dynamic(world).value
    bounds = [6.0 * (math.sqrt(g * arms * amount) + arms * g * math.log(horizon)) for amount in (best, 0.5 * horizon)]
    policy = SlidingWindowUCB(windows=(horizon, horizon), radius="refined")
    found = judge_audited_sums(world, policy, (bounds[0], bounds[1]), trials, effort, case)
    note = f"1 - |sum| / (6 × the lemmas' terms, {bounds[0] / horizon:.2f} T), 8 arms, T = {horizon:,}"
    return scaled(found, factor)._replace(note=note)


STATEMENTS = (
    Statement(
        "lemma-4",
        "Appendix B, Lemma 4",
        "means of a fixed number N of outcomes stay within the radius",
        HOLDS,
        fixed_number_of_outcomes,
        RETURNS_0,
        "the radius",
    ),
    Statement(
        "lemma-5",
        "Appendix B, Lemma 5",
        "the windowed estimator's radius",
        PROOF_VOID,
        windowed_estimator,
        RETURNS_0,
        "the radius",
    ),
    Statement(
        "lemma-2",
        "Lemma 2",
        "UCB and LCB cover, but for the drift in the window",
        HOLDS,
        coverage,
        RETURNS_0,
        "the radius",
    ),
    Statement("lemma-3", "Lemma 3", "realised sums stay near the LPs'", HOLDS, realised_sums, RETURNS_0),
    Statement("corollary-1", "Corollary 1", "T - τ is at most the bound", WEAK, stopping_time, COMPETITORS),
    Statement(
        "lemma-6",
        "Appendix E, Lemma 6",
        "|mean - z| ≤ rad(mean, N) ≤ 3 rad(z, N)",
        HOLDS,
        refined_confidence_radius,
        RETURNS_0,
        "the radius",
    ),
    Statement(
        "lemmas-7-8",
        "Appendix E, Lemma 7 and Lemma 8",
        "realised sums, refined",
        FALSE_AS_PRINTED,
        refined_sums,
        RETURNS_0,
    ),
    Statement(
        "lemmas-9-10",
        "Appendix E, Lemma 9 and Lemma 10",
        "realised sums, refined and stationary",
        HOLDS,
        stationary_sums,
        RETURNS_0,
    ),
)
