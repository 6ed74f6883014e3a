r"""A bank of linear models: what each arm earns and costs at a context, when that may change at an unknown time.

Outcome k = 0 is the reward and k = 1, ..., d are the costs in units of the budget rate b, so that ``cost_max`` plays no
part. For each arm a few *members* predict every outcome from the vector x of the context: ridge regressions with
forgetting :math:`\gamma_g` (:mod:`driftsack.policies.parts.ridge`), the plain mean of the arm, a mean of recent
outcomes, and the first regression plus a fast level of its errors. So a context that is worth nothing costs little.

*Weights.* Each outcome of each arm has its own weights, updated by the normal likelihood of the observation,

.. math:: w_g \leftarrow \frac{w_g}{\sqrt{1 + a_g}} \exp\bigl(-\min(\ell_g - \min_f \ell_f,\, 3)\bigr), \qquad
          \ell_g = \frac{(y - \hat y_g)^2}{2 \sigma^2 (1 + a_g)},

so the errors of one observation lower the log-weight of a member by at most 3 relative to the best one, and a single
outlier is not decisive. The weights are normalised, and then the share :math:`\min(0.01, 1/n)` of all weight is spread
evenly, with n the observations since the last change (fixed share with a falling rate, cf. Herbster and Warmuth 1998):
with a constant share, members that forget would stay in the mixture, and their noise would cost reward in every round.
:math:`\sigma^2` is the variance of the arm's errors, which starts from a prior of four observations of half the largest
reward so far, or of half of 1 + the first cost; a larger reward raises the prior of every arm. If the members that
never forget fall below 0.05, a change is counted, the last regression is copied into the first one and the recent mean
into the plain one.

The estimate is the mean of the mixture, and its variance :math:`\sum_g w_g (\sigma^2 a_g + (\hat y_g - \hat y)^2)`,
where the variance of a regression that forgets is taken as that of the first one plus :math:`1 - \gamma`, which saves
its :math:`O(p^2)`. An arm that was not observed yet has the mean reward of all arms as its prior.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import LARGEST_INT, ROUNDING, Ranges, above_zero, frozen
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome
from driftsack.numerics.compiled import kernel
from driftsack.policies.parts.ridge import combine_rows, multiply, observe_direction

GAMMAS: Final = (1.0, 0.97)  # of the regressions; per observation of the arm
PRIOR_PRECISION: Final = 1.0  # of a coefficient; that of the constant is 1
RECENT: Final = 0.02  # step of the recent mean
FAST: Final = 0.07  # step of the fast level
SPREAD: Final = 0.01  # the most of all weight that is spread evenly
SLOW_SHARE: Final = 0.05
PRIOR_ERRORS: Final = 4.0  # observations
MEMORY_OF_ERRORS: Final = 200.0  # observations
MOST_EVIDENCE: Final = 3.0  # log-likelihood by which a member may fall behind the best one with an observation
AFTER_CHANGE: Final = 50.0  # observations that the recent mean stands for
SETTLED: Final = 20.0  # observations before a change is looked for
SMALLEST_NOISE: Final = 1e-12
TINY: Final = 1e-100
CONTAGION: Final = 0.8  # factor on the trust of the other arms at a change
PLAIN: Final = 0  # places among the means, after the regressions
LATELY: Final = 1
LEVEL: Final = 2
LARGEST_ESTIMATE: Final = 1e60  # in units of the budget rate; squares of it, times prices, are floats
LARGEST_NOISE: Final = LARGEST_ESTIMATE**2
LARGEST_VARIANCE: Final = 1e6  # of a coefficient; it begins with 1 / PRIOR_PRECISION and tends to 1 at the most


class LinearBank(NamedTuple):
    """The belief about m arms with K = 1 + d outcomes, by G regressions on p numbers and E means."""

    covariance: Floats  # (m, G, p, p)
    coefficients: Floats  # (p, m G K) arm by arm, regression by regression
    levels: Floats  # (m, E, K) plain mean, recent mean, fast level
    noise: Floats  # (m, K) variances of errors
    weights: Floats  # (m, K, G + E)
    pulls: Floats  # (m,) observations
    last: Ints  # (m,) the latest round in which the arm was chosen; -1 before
    trust: Floats  # (m,) the chance that the arm has not changed with another one that did
    mean: Floats  # (m, K) written: estimates at the present context
    sd: Floats  # (m, K) written
    overall: Floats  # (3,) observations, sum of rewards, largest reward
    changes: Floats  # (1,) changes counted
    gammas: Floats  # (G,) read-only
    unit: Floats  # (d,) the budget rate; read-only
    outcome: Floats  # (K,) scratch
    mixed: Floats  # (p, m K) written: coefficients of the mixture, arm by arm
    product: Floats  # (p,) scratch
    linear: Floats  # (m G K,) scratch: predictions of the regressions
    variance: Floats  # (G + E,) scratch
    member: Floats  # (G + E,) scratch: predictions of one outcome
    loss: Floats  # (G + E,) scratch: their squared errors, in units of twice the variance

    def ranges(self, rounds: int) -> Ranges:
        """What the fields may hold after some rounds."""
        return {
            "weights": (0.0, 1.0 + ROUNDING),
            "pulls": (0.0, float(LARGEST_INT)),
            "noise": (SMALLEST_NOISE, LARGEST_NOISE),
            "covariance": (-LARGEST_VARIANCE, LARGEST_VARIANCE),
            "coefficients": (-LARGEST_ESTIMATE, LARGEST_ESTIMATE),
            "levels": (-LARGEST_ESTIMATE, LARGEST_ESTIMATE),
            "last": (-1, rounds),
            "trust": (0.0, 1.0),
            "changes": (0.0, float(LARGEST_INT)),
            "overall": (0.0, LARGEST_ESTIMATE),
            "loss": None,
        }

    def check(self) -> None:
        """Raise unless covariances are symmetric and positive semidefinite; otherwise updates would not be stable."""
        size = self.covariance.shape[-1]
        matrices = self.covariance.reshape(-1, size, size)
        tolerance = ROUNDING * np.maximum(np.abs(matrices).max(axis=(1, 2)), 1.0)
        if (np.abs(matrices - matrices.transpose(0, 2, 1)).max(axis=(1, 2)) > tolerance).any():
            raise ValueError("a covariance is not symmetric")
        if (np.linalg.eigvalsh(matrices)[:, 0] < -size * tolerance).any():
            raise ValueError("a covariance is not positive semidefinite")


def gammas_of(forgetting: float | None) -> tuple[float, ...]:
    """The forgetting factors of the regressions."""
    return GAMMAS if forgetting is None else (forgetting,)


def checked_forgetting(value: float | None) -> float | None:
    """A forgetting factor in (0, 1], or None."""
    if value is None:
        return None
    factor = above_zero(value, "forgetting")
    if factor > 1.0:
        raise OutOfRangeError(f"forgetting must be at most 1, which forgets nothing, got {factor:g}.")
    return factor


def new_bank(problem: Problem, size: int, forgetting: float | None) -> LinearBank:
    """A bank without observations.

    Args:
        problem: The problem.
        size: The number p of numbers that a context becomes, the last of which is 1.
        forgetting: The factor of a single regression and the plain mean; None for members that forget and others.

    Returns:
        The bank.
    """
    arms, kinds = problem.arms, 1 + problem.resources
    gammas = np.array(gammas_of(forgetting))
    count, means = gammas.size, 3 if forgetting is None else 1
    prior = np.diag(np.append(np.full(size - 1, 1.0 / PRIOR_PRECISION), 1.0))
    return LinearBank(
        covariance=np.tile(prior, (arms, count, 1, 1)),
        coefficients=np.zeros((size, arms * count * kinds)),
        levels=np.zeros((arms, means, kinds)),
        noise=np.ones((arms, kinds)),
        weights=np.full((arms, kinds, count + means), 1.0 / (count + means)),
        pulls=np.zeros(arms),
        last=np.full(arms, -1, dtype=np.int64),
        trust=np.ones(arms),
        mean=np.zeros((arms, kinds)),
        sd=np.zeros((arms, kinds)),
        overall=np.zeros(3),
        changes=np.zeros(1),
        gammas=frozen(gammas),
        unit=frozen(np.maximum(problem.rate, TINY)),
        outcome=np.zeros(kinds),
        mixed=np.zeros((size, arms * kinds)),
        product=np.zeros(size),
        linear=np.zeros(arms * count * kinds),
        variance=np.zeros(count + means),
        member=np.zeros(count + means),
        loss=np.zeros(count + means),
    )


@kernel
def estimate(bank: LinearBank, x: Floats) -> None:
    """Write the mean and the standard deviation of every outcome of every arm at a context."""
    combine_rows(bank.coefficients, x, 0, bank.linear.size, bank.linear)
    for i in range(bank.pulls.size):
        bank.variance[0] = multiply(bank.covariance[i, 0], x, bank.product)
        for g in range(1, bank.gammas.size):
            bank.variance[g] = bank.variance[0] + 1.0 - bank.gammas[g]
        set_variances(bank, i)
        for k in range(bank.mean.shape[1]):
            mix_members(bank, i, k)


@kernel
def mix_coefficients(bank: LinearBank) -> None:
    """Write the coefficients of the mixture, which is linear in the context as its members are."""
    count, kinds, constant = bank.gammas.size, bank.mean.shape[1], bank.product.size - 1
    for i in range(bank.pulls.size):
        for k in range(kinds):
            weights, own = bank.weights[i, k], i * kinds + k
            level = weights[count + PLAIN] * bank.levels[i, PLAIN, k]
            first = weights[0]
            if bank.levels.shape[1] > 1:
                level += weights[count + LATELY] * bank.levels[i, LATELY, k]
                level += weights[count + LEVEL] * bank.levels[i, LEVEL, k]
                first += weights[count + LEVEL]
            for f in range(constant + 1):
                value = first * bank.coefficients[f, i * count * kinds + k]
                for g in range(1, count):
                    value += weights[g] * bank.coefficients[f, (i * count + g) * kinds + k]
                bank.mixed[f, own] = value
            bank.mixed[constant, own] += level


@kernel
def set_variances(bank: LinearBank, arm: int) -> None:
    """Write the variances of the means of an arm, in units of the noise."""
    count, alone = bank.gammas.size, 1.0 / (bank.pulls[arm] + 1.0)
    bank.variance[count + PLAIN] = alone
    if bank.levels.shape[1] > 1:
        bank.variance[count + LATELY] = max(alone, 0.5 * RECENT)
        bank.variance[count + LEVEL] = bank.variance[0] + 0.5 * FAST


@kernel
def set_members(bank: LinearBank, arm: int, k: int) -> None:
    """Write what each member predicts for outcome ``k`` of an arm."""
    count, kinds = bank.gammas.size, bank.mean.shape[1]
    for g in range(count):
        bank.member[g] = bank.linear[(arm * count + g) * kinds + k]
    bank.member[count + PLAIN] = bank.levels[arm, PLAIN, k]
    if bank.levels.shape[1] > 1:
        bank.member[count + LATELY] = bank.levels[arm, LATELY, k]
        bank.member[count + LEVEL] = bank.member[0] + bank.levels[arm, LEVEL, k]


@kernel
def mix_members(bank: LinearBank, arm: int, k: int) -> None:
    """Write the mean and the standard deviation of the mixture."""
    set_members(bank, arm, k)
    mean, square, variance = 0.0, 0.0, 0.0
    for g in range(bank.member.size):
        weight, value = bank.weights[arm, k, g], bank.member[g]
        mean += weight * value
        square += weight * value * value
        variance += weight * bank.variance[g]
    bank.mean[arm, k] = mean
    bank.sd[arm, k] = math.sqrt(bank.noise[arm, k] * variance + max(square - mean * mean, 0.0))


@kernel
def observe_context(bank: LinearBank, outcome: Outcome, x: Floats) -> None:
    """Learn the outcome of an arm at a context."""
    arm, kinds, count = outcome.arm, bank.outcome.size, bank.gammas.size
    set_outcome(bank, outcome)
    if bank.pulls[arm] == 0.0:
        start_arm(bank, arm, x.size)
    first = arm * count * kinds
    combine_rows(bank.coefficients, x, first, first + count * kinds, bank.linear)
    for g in range(count):
        variance = multiply(bank.covariance[arm, g], x, bank.product)
        bank.variance[g] = variance
        observe_direction(bank.covariance[arm, g], bank.product, variance, bank.gammas[g])
        for k in range(kinds):
            column = first + g * kinds + k
            error = (bank.outcome[k] - bank.linear[column]) / (bank.gammas[g] + variance)
            for f in range(x.size):
                bank.coefficients[f, column] += bank.product[f] * error
    set_variances(bank, arm)
    changed = False
    for k in range(kinds):
        set_members(bank, arm, k)
        changed = weigh_members(bank, arm, k) or changed
        update_levels(bank, arm, k)
    bank.pulls[arm] += 1.0
    bank.trust[arm] = 1.0
    if changed and bank.pulls[arm] > SETTLED and bank.levels.shape[1] > 1:
        forget_arm(bank, arm, x.size)


@kernel
def set_outcome(bank: LinearBank, outcome: Outcome) -> None:
    """Write the outcome in the bank's units, and count it."""
    bank.outcome[0] = outcome.reward
    for j in range(outcome.costs.size):
        bank.outcome[1 + j] = min(outcome.costs[j] / bank.unit[j], LARGEST_ESTIMATE)
    bank.overall[0] += 1.0
    bank.overall[1] += outcome.reward
    if outcome.reward > bank.overall[2]:
        raise_noise(bank, outcome.reward)
        bank.overall[2] = outcome.reward


@kernel
def raise_noise(bank: LinearBank, largest: float) -> None:
    """Give every arm the noise of a prior with a larger reward, so that no noise stays 0."""
    more = prior_noise(largest) - prior_noise(bank.overall[2])
    for i in range(bank.pulls.size):
        if bank.pulls[i] > 0.0:
            bank.noise[i, 0] += more * PRIOR_ERRORS / (PRIOR_ERRORS + bank.pulls[i] - 1.0)


@kernel
def prior_noise(scale: float) -> float:
    """The variance of outcomes up to a scale, before they are seen."""
    return float(min(max(0.25 * scale * scale, SMALLEST_NOISE), LARGEST_NOISE))


@kernel
def mean_reward(bank: LinearBank) -> float:
    """The mean reward of all observations; tiny before the first."""
    return float(max(bank.overall[1] / max(bank.overall[0], 1.0), TINY))


@kernel
def start_arm(bank: LinearBank, arm: int, size: int) -> None:
    """Give an arm its prior at its first observation: the mean reward of all arms, and noise of the right order."""
    kinds, count = bank.outcome.size, bank.gammas.size
    for g in range(count):
        bank.coefficients[size - 1, (arm * count + g) * kinds] = mean_reward(bank)
    for k in range(kinds):
        bank.noise[arm, k] = prior_noise(bank.overall[2] if k == 0 else 1.0 + bank.outcome[k])


@kernel
def weigh_members(bank: LinearBank, arm: int, k: int) -> bool:
    """Update the weights and the noise of an outcome; return whether the members that never forget have lost."""
    noise, seen, count = bank.noise[arm, k], bank.pulls[arm], bank.member.size
    mean, total, least = 0.0, 0.0, np.inf
    for g in range(count):
        mean += bank.weights[arm, k, g] * bank.member[g]
        error = bank.outcome[k] - bank.member[g]
        bank.loss[g] = 0.5 * error * error / (noise * (1.0 + bank.variance[g]))
        least = min(least, bank.loss[g])
    for g in range(count):
        gain = max(least - bank.loss[g], -MOST_EVIDENCE)
        bank.weights[arm, k, g] *= math.exp(gain) / math.sqrt(1.0 + bank.variance[g])
        total += bank.weights[arm, k, g]
    if seen >= 1.0:
        error = bank.outcome[k] - mean
        noise += (error * error - noise) / min(seen + PRIOR_ERRORS, MEMORY_OF_ERRORS)
        bank.noise[arm, k] = min(max(noise, SMALLEST_NOISE), LARGEST_NOISE)
    spread = min(SPREAD, 1.0 / max(seen, 1.0))
    for g in range(count):
        if seen < 2.0 or not total > TINY:  # noqa: PLR2004  (too early to compare)
            bank.weights[arm, k, g] = 1.0 / count
        else:
            bank.weights[arm, k, g] = (1.0 - spread) * bank.weights[arm, k, g] / total + spread / count
    return bool(bank.weights[arm, k, 0] + bank.weights[arm, k, bank.gammas.size + PLAIN] < SLOW_SHARE)


@kernel
def update_levels(bank: LinearBank, arm: int, k: int) -> None:
    """Update the means of an outcome."""
    value, levels = bank.outcome[k], bank.levels
    alone = 1.0 / (bank.pulls[arm] + 1.0)
    levels[arm, PLAIN, k] += alone * (value - levels[arm, PLAIN, k])
    if levels.shape[1] > 1:
        levels[arm, LATELY, k] += max(alone, RECENT) * (value - levels[arm, LATELY, k])
        levels[arm, LEVEL, k] += FAST * (value - bank.member[0] - levels[arm, LEVEL, k])


@kernel
def forget_arm(bank: LinearBank, arm: int, size: int) -> None:
    """After a change, let the members that never forget begin where those that forget are."""
    kinds, count = bank.outcome.size, bank.gammas.size
    bank.changes[0] += 1.0
    for i in range(bank.trust.size):
        if i != arm:
            bank.trust[i] *= CONTAGION
    for f in range(size):
        for e in range(size):
            bank.covariance[arm, 0, f, e] = bank.covariance[arm, count - 1, f, e]
        for k in range(kinds):
            first = arm * count * kinds + k
            bank.coefficients[f, first] = bank.coefficients[f, first + (count - 1) * kinds]
    for k in range(kinds):
        bank.levels[arm, PLAIN, k] = bank.levels[arm, LATELY, k]
        bank.levels[arm, LEVEL, k] = 0.0
        for g in range(bank.member.size):
            bank.weights[arm, k, g] = 1.0 / bank.member.size
    bank.pulls[arm] = min(bank.pulls[arm], AFTER_CHANGE)


def scale_costs(bank: LinearBank, arm: int, factors: Floats) -> None:
    """Multiply what is believed about the costs of an arm, when a change of its prices is announced.

    Args:
        bank: The bank; changed in place.
        arm: The arm.
        factors: (d,) the factor of each resource.
    """
    kinds, count = bank.outcome.size, bank.gammas.size
    for j, factor in enumerate(factors.tolist()):
        for g in range(count):
            _scale(bank.coefficients[:, (arm * count + g) * kinds + 1 + j], factor)
        _scale(bank.levels[arm, :, 1 + j], factor)
        bank.noise[arm, 1 + j] = min(max(bank.noise[arm, 1 + j] * factor * factor, SMALLEST_NOISE), LARGEST_NOISE)


def _scale(values: Floats, factor: float) -> None:
    """Multiply estimates, within what a bank can hold."""
    values[...] = np.clip(values * factor, -LARGEST_ESTIMATE, LARGEST_ESTIMATE)
