r"""A bank of linear models of the rewards and costs of each arm, which may change at unknown times.

Outcome k = 0 is the reward and k = 1, ..., d are the costs in units of the budget rate b, so that ``cost_max`` has no
effect. For each arm, every outcome is predicted from the vector x of the context by ridge regressions with forgetting
:math:`\gamma_g` (:mod:`driftsack.policies.parts.ridge`), and without it by the plain mean of the arm.

*Weights.* Let the likelihood of an observation y under a member with the prediction :math:`\hat y_g` be

.. math:: L_g = \frac{1}{\sqrt{1 + a_g}} \exp\bigl(-\min(\ell_g - \min_f \ell_f,\, 3)\bigr), \qquad
          \ell_g = \frac{(y - \hat y_g)^2}{2 \sigma^2 (1 + a_g)},

so that a single outlier is not decisive. The regressions of an arm have their own weights for each outcome,
:math:`w_g \propto w_g L_g`. The *usefulness* :math:`u_k` of the context, the probability that an outcome depends on it,
is shared by all arms, because a single arm has too few observations to tell early on:

.. math:: u_k \leftarrow \frac{u_k L}{u_k L + (1 - u_k) L_{\text{mean}}}, \qquad L = \sum_g w_g L_g.

After each update the share :math:`\min(0.01, 1/n)` of the weights is spread evenly, and the same share of the
usefulness returns to its prior, 0.99, with n the observations of the arm or of all arms (fixed share with a falling
rate, cf. Herbster and Warmuth 1998): with a constant share, members that forget would stay in the mixture, and their
noise would cost reward in every round. :math:`\sigma^2` is the variance of the arm's errors. Its prior is worth four
observations of half the largest reward so far, or of half of 1 + the first cost; a larger reward raises the prior of
every arm.

*Changes.* If the weight of the members that never forget, :math:`u_k w_0 + 1 - u_k`, falls below 0.05, a change is
counted: the last regression is copied into the first one, and a mean of recent outcomes into the plain one.

The estimate is :math:`\hat y = u_k \sum_g w_g \hat y_g + (1 - u_k)\, \text{mean}`. Its variance is that of the mixture,
:math:`\sum_g w_g (\sigma^2 a_g + (\hat y_g - \hat y)^2)` over all members with their weights in the estimate, where
the variance of a forgetting regression is approximated by that of the first one plus :math:`1 - \gamma`, which saves
:math:`O(p^2)`. The prior mean of an arm without observations is the mean reward of all arms.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.bounds import FloatCounts, RoundNumbers, Scratch, Shares, within
from driftsack.core.checks import ROUNDING, above_zero, frozen
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.powers import squared
from driftsack.policies.parts.ridge import combine_rows, multiply, observe_direction

GAMMAS: Final = (1.0, 0.97)  # forgetting factors of the regressions, per observation of the arm
PRIOR_PRECISION: Final = 1.0  # of a coefficient; the precision of the intercept is 1
RECENT: Final = 0.02  # step of the recent mean
USEFUL: Final = 0.99  # prior usefulness of the context
SPREAD: Final = 0.01  # maximum share of the weight that is spread
SLOW_SHARE: Final = 0.05  # weight of the members that never forget below which a change is counted
PRIOR_ERRORS: Final = 4.0  # observations
MEMORY_OF_ERRORS: Final = 200.0  # observations
MOST_EVIDENCE: Final = 3.0  # maximum log-likelihood that a member loses to the best one per observation
AFTER_CHANGE: Final = 50.0  # observations that the recent mean is worth
SETTLED: Final = 20.0  # minimum number of observations before a change is counted
SMALLEST_NOISE: Final = 1e-12
TINY: Final = 1e-100
CONTAGION: Final = 0.8  # factor on the trust of the other arms at a change
PLAIN: Final = 0  # positions among the means
LATELY: Final = 1
LARGEST_ESTIMATE: Final = 1e60  # in units of the budget rate; its square times a price does not overflow
LARGEST_NOISE: Final = LARGEST_ESTIMATE**2
LARGEST_VARIANCE: Final = 1e6  # of a coefficient; it starts at 1 / PRIOR_PRECISION and tends to at most 1


class LinearBank(NamedTuple):
    """The belief about m arms with K = 1 + d outcomes: G regressions on vectors of length p, and means."""

    covariance: Annotated[Floats, within(-LARGEST_VARIANCE, LARGEST_VARIANCE)]  # (m, G, p, p)
    coefficients: Annotated[
        Floats, within(-LARGEST_ESTIMATE, LARGEST_ESTIMATE)
    ]  # (p, m G K) arm by arm, regression by regression
    levels: Annotated[Floats, within(-LARGEST_ESTIMATE, LARGEST_ESTIMATE)]  # (m, 2, K) plain mean, recent mean
    noise: Annotated[Floats, within(SMALLEST_NOISE, LARGEST_NOISE)]  # (m, K) variances of errors
    weights: Shares  # (m, K, G) of the regressions
    usefulness: Shares  # (K,) the probability that contexts matter for an outcome
    pulls: FloatCounts  # (m,) observations
    last: RoundNumbers  # (m,) the latest round in which the arm was chosen; -1 before
    trust: Annotated[Floats, within(0.0, 1.0)]  # (m,) the chance that the arm has not changed with another one that did
    mean: Floats  # (m, K) written: estimates at the present context
    sd: Floats  # (m, K) written
    overall: Annotated[Floats, within(0.0, LARGEST_ESTIMATE)]  # (3,) observations, sum of rewards, largest reward
    changes: FloatCounts  # (1,) changes counted
    gammas: Floats  # (G,) read-only
    unit: Floats  # (d,) the budget rate; read-only
    outcome: Floats  # (K,) scratch
    mixed: Floats  # (p, m K) written: coefficients of the mixture, arm by arm
    product: Floats  # (p,) scratch
    linear: Floats  # (m G K,) scratch: predictions of the regressions
    variance: Floats  # (G,) scratch: variances of the regressions, in units of the noise
    likelihood: Scratch  # (G,) scratch

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
    """Return the forgetting factors of the regressions."""
    return GAMMAS if forgetting is None else (forgetting,)


def checked_forgetting(value: float | None) -> float | None:
    """Return a forgetting factor after checking that it is in (0, 1] or None."""
    if value is None:
        return None
    factor = above_zero(value, "forgetting")
    if factor > 1.0:
        raise OutOfRangeError(f"forgetting must be at most 1, which never forgets, got {factor:g}.")
    return factor


def new_bank(problem: Problem, size: int, forgetting: float | None) -> LinearBank:
    """Create a bank without observations.

    Args:
        problem: The problem to play.
        size: The encoded context dimension p, including the intercept.
        forgetting: The factor of a single regression; None for one that never forgets and one that does.
    """
    arms, kinds = problem.arms, 1 + problem.resources
    gammas = np.array(gammas_of(forgetting))
    count = gammas.size
    prior = np.diag(np.append(np.full(size - 1, 1.0 / PRIOR_PRECISION), 1.0))
    return LinearBank(
        covariance=np.tile(prior, (arms, count, 1, 1)),
        coefficients=np.zeros((size, arms * count * kinds)),
        levels=np.zeros((arms, 2, kinds)),
        noise=np.ones((arms, kinds)),
        weights=np.full((arms, kinds, count), 1.0 / count),
        usefulness=np.full(kinds, USEFUL),
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
        variance=np.zeros(count),
        likelihood=np.zeros(count),
    )


@kernel
def estimate(bank: LinearBank, x: Floats) -> None:
    """Write the mean and standard deviation of every outcome of every arm at a context."""
    combine_rows(bank.coefficients, x, 0, bank.linear.size, bank.linear)
    for i in range(bank.pulls.size):
        bank.variance[0] = multiply(bank.covariance[i, 0], x, bank.product)
        for g in range(1, bank.gammas.size):
            bank.variance[g] = bank.variance[0] + 1.0 - bank.gammas[g]
        for k in range(bank.mean.shape[1]):
            mix_members(bank, i, k)


@kernel
def mix_coefficients(bank: LinearBank) -> None:
    """Write the coefficients of the mixture, which is linear in the context like its members."""
    count, kinds, constant = bank.gammas.size, bank.mean.shape[1], bank.product.size - 1
    for i in range(bank.pulls.size):
        for k in range(kinds):
            useful, own = bank.usefulness[k], i * kinds + k
            for f in range(constant + 1):
                value = 0.0
                for g in range(count):
                    value += bank.weights[i, k, g] * bank.coefficients[f, (i * count + g) * kinds + k]
                bank.mixed[f, own] = useful * value
            bank.mixed[constant, own] += (1.0 - useful) * bank.levels[i, PLAIN, k]


@kernel
def mix_members(bank: LinearBank, arm: int, k: int) -> None:
    """Write the mean and standard deviation of the mixture, of which :attr:`LinearBank.linear` has the members."""
    count, useful = bank.gammas.size, bank.usefulness[k]
    level = bank.levels[arm, PLAIN, k]
    mean, square = (1.0 - useful) * level, (1.0 - useful) * level * level
    variance = (1.0 - useful) / (bank.pulls[arm] + 1.0)
    for g in range(count):
        weight, value = useful * bank.weights[arm, k, g], bank.linear[(arm * count + g) * bank.mean.shape[1] + k]
        mean += weight * value
        square += weight * value * value
        variance += weight * bank.variance[g]
    bank.mean[arm, k] = mean
    bank.sd[arm, k] = math.sqrt(bank.noise[arm, k] * variance + max(square - mean * mean, 0.0))


@kernel
def observe_context(bank: LinearBank, outcome: Outcome, x: Floats) -> None:
    """Learn the outcome of an arm at a context."""
    arm, kinds, count = outcome.arm, bank.outcome.size, bank.gammas.size
    # Convert the outcome, and set the prior at the first observation of an arm.
    set_outcome(bank, outcome)
    if bank.pulls[arm] == 0.0:
        start_arm(bank, arm, x.size)
    # Predict with the regressions, then update them (recursive least squares with forgetting).
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
    # Update the weights of all members by their predictions before this outcome, then the means.
    changed = False
    for k in range(kinds):
        changed = weigh_members(bank, arm, k) or changed
        update_levels(bank, arm, k)
    bank.pulls[arm] += 1.0
    bank.trust[arm] = 1.0
    # After a change, restart the members that never forget.
    if changed and bank.pulls[arm] > SETTLED:
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
    """Raise the noise of every arm to the prior of a larger reward, so that no noise stays 0."""
    more = prior_noise(largest) - prior_noise(bank.overall[2])
    for i in range(bank.pulls.size):
        if bank.pulls[i] > 0.0:
            bank.noise[i, 0] += more * PRIOR_ERRORS / (PRIOR_ERRORS + bank.pulls[i] - 1.0)


@kernel
def prior_noise(scale: float) -> float:
    """Return the prior variance of outcomes up to ``scale``."""
    return float(min(max(0.25 * scale * scale, SMALLEST_NOISE), LARGEST_NOISE))


@kernel
def list_estimates(bank: LinearBank, round: Round) -> None:
    """Multiply the estimates of costs at the present context, and their errors, by the factors of a price list."""
    if round.listed:
        for i in range(bank.pulls.size):
            for j in range(bank.unit.size):
                bank.mean[i, 1 + j] *= round.factors[j, i]
                bank.sd[i, 1 + j] *= round.factors[j, i]


@kernel
def mean_reward(bank: LinearBank) -> float:
    """Return the mean reward of all observations; ``TINY`` before the first."""
    return float(max(bank.overall[1] / max(bank.overall[0], 1.0), TINY))


@kernel
def start_arm(bank: LinearBank, arm: int, size: int) -> None:
    """Set the prior of an arm at its first observation: mean reward of all arms, and noise of the right order."""
    kinds, count = bank.outcome.size, bank.gammas.size
    for g in range(count):
        bank.coefficients[size - 1, (arm * count + g) * kinds] = mean_reward(bank)
    for k in range(kinds):
        bank.noise[arm, k] = prior_noise(bank.overall[2] if k == 0 else 1.0 + bank.outcome[k])


@kernel
def weigh_members(bank: LinearBank, arm: int, k: int) -> bool:
    """Update weights, usefulness and noise of an outcome; return whether the members that never forget lost."""
    noise, seen, count = bank.noise[arm, k], bank.pulls[arm], bank.gammas.size
    useful, weights = bank.usefulness[k], bank.weights[arm, k]
    first, level = arm * count * bank.outcome.size + k, bank.levels[arm, PLAIN, k]
    # Loss of each member, and the mean of the mixture.
    alone = 1.0 + 1.0 / (seen + 1.0)
    plain = 0.5 * squared(bank.outcome[k] - level) / (noise * alone)
    mean, least = (1.0 - useful) * level, plain
    for g in range(count):
        value = bank.linear[first + g * bank.outcome.size]
        mean += useful * weights[g] * value
        bank.likelihood[g] = 0.5 * squared(bank.outcome[k] - value) / (noise * (1.0 + bank.variance[g]))
        least = min(least, bank.likelihood[g])
    # Noise: a moving average of squared errors.
    if seen >= 1.0:
        noise += (squared(bank.outcome[k] - mean) - noise) / min(seen + PRIOR_ERRORS, MEMORY_OF_ERRORS)
        bank.noise[arm, k] = min(max(noise, SMALLEST_NOISE), LARGEST_NOISE)
    if seen < 2.0:
        return False
    # Likelihoods of the regressions together and of the plain mean.
    total = 0.0
    for g in range(count):
        gain = max(least - bank.likelihood[g], -MOST_EVIDENCE)
        bank.likelihood[g] = weights[g] * math.exp(gain) / math.sqrt(1.0 + bank.variance[g])
        total += bank.likelihood[g]
    without = math.exp(max(least - plain, -MOST_EVIDENCE)) / math.sqrt(alone)
    # Bayes' rule, after which a share of the weight is spread again (fixed share).
    spread = min(SPREAD, 1.0 / seen)
    for g in range(count):
        weights[g] = (1.0 - spread) * bank.likelihood[g] / total + spread / count
    back = min(SPREAD, 1.0 / bank.overall[0])
    after = useful * total / (useful * total + (1.0 - useful) * without)
    bank.usefulness[k] = (1.0 - back) * after + back * USEFUL
    return bool(count > 1 and 1.0 - bank.usefulness[k] * (1.0 - weights[0]) < SLOW_SHARE)


@kernel
def update_levels(bank: LinearBank, arm: int, k: int) -> None:
    """Update the means of an outcome."""
    alone = 1.0 / (bank.pulls[arm] + 1.0)
    bank.levels[arm, PLAIN, k] += alone * (bank.outcome[k] - bank.levels[arm, PLAIN, k])
    bank.levels[arm, LATELY, k] += max(alone, RECENT) * (bank.outcome[k] - bank.levels[arm, LATELY, k])


@kernel
def learn_levels_again(bank: LinearBank) -> None:
    """Make the intercepts of all arms as uncertain as at first, and keep the effects of the features."""
    constant = bank.product.size - 1
    for i in range(bank.pulls.size):
        bank.pulls[i] = min(bank.pulls[i], AFTER_CHANGE)
        for g in range(bank.gammas.size):
            own = bank.covariance[i, g]
            own[constant, constant] = max(own[constant, constant], 1.0)


@kernel
def forget_arm(bank: LinearBank, arm: int, size: int) -> None:
    """After a change, restart the members that never forget from those that forget."""
    kinds, count = bank.outcome.size, bank.gammas.size
    bank.changes[0] += 1.0
    # The other arms may have changed, too.
    for i in range(bank.trust.size):
        if i != arm:
            bank.trust[i] *= CONTAGION
    # Copy the last regression into the first one.
    for f in range(size):
        for e in range(size):
            bank.covariance[arm, 0, f, e] = bank.covariance[arm, count - 1, f, e]
        for k in range(kinds):
            first = arm * count * kinds + k
            bank.coefficients[f, first] = bank.coefficients[f, first + (count - 1) * kinds]
    for k in range(kinds):
        bank.levels[arm, PLAIN, k] = bank.levels[arm, LATELY, k]
        for g in range(count):
            bank.weights[arm, k, g] = 1.0 / count
    bank.pulls[arm] = min(bank.pulls[arm], AFTER_CHANGE)
