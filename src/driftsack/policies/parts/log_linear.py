r"""Log-linear models of the rewards and costs of each arm, for outcomes that are products of effects.

Price times response, margin times probability, and the odds of rare events are products, which a linear model only
approximates. For outcome k of an arm and the vector x of a context, the mean is :math:`\mu = e^\eta` with
:math:`\eta = \theta^\top x`, and the variance is :math:`\phi \mu`. The prior of :math:`\theta` is normal with
variance 0.5 for the features and 1 for the constant: effects are relative, so they need no scale. With
:math:`a = x^\top P x`, an observation y changes

.. math:: \theta \leftarrow \theta + \frac{\eta' - \eta}{a} P x, \qquad
          P \leftarrow P - \frac{a - a'}{a^2}\, P x x^\top P, \qquad a' = \frac{a \phi}{\phi + a e^{\eta'}} + q,

where :math:`\eta'` is the mode of the posterior along P x, the root of
:math:`\eta' = \eta + \frac{a}{\phi} (y - e^{\eta'})`, found by Newton's method from the right, where it is monotone.
A single explicit step would overshoot after a rare large outcome. This is an online Laplace approximation for the
Poisson quasi-likelihood (McCullagh and Nelder 1989, chapter 9). Effects drift: an observed direction gains the variance
:math:`q = 10^{-4}`, until it is 1. A forgetting factor would inflate the variances of sparse outcomes, where one
observation tells little, and waste budget on exploration.

The dispersion :math:`\phi = \sum (y - \mu)^2 / \sum \mu` is a ratio of two fading sums, which remember at most 40 of
the largest outcomes and 200 observations. Its prior is the largest outcome, as for Bernoulli outcomes of that size,
with the weight of two of them: many zeros do not make it small. Predictions are at most the largest outcome so far. The
standard deviation of a prediction is :math:`\mu \sqrt a`: where little is expected, little is uncertain.

*Belief.* The probability that an outcome is log-linear rather than linear is shared by all arms. It is updated by the
normal likelihoods of both predictions, of which one observation changes the logarithm by at most 3; the share
:math:`\min(0.01, 1/n)` of it returns to 0.2, its value before the first observation.

A round costs :math:`O(m d n^2)`, so these models are used for vectors of at most 16 entries only.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Scratch, Shares, within
from driftsack.numerics.compiled import kernel
from driftsack.numerics.powers import squared
from driftsack.policies.parts.ridge import check_covariances, multiply

LARGEST_SIZE: Final = 16  # of a vector
LARGEST_OUTCOME: Final = 1e60
LARGEST_SQUARE: Final = 1e120
SMALLEST: Final = 1e-12  # mean, dispersion
LARGEST_LOG: Final = 138.0  # absolute value of the logarithm of a mean; its exponential is below LARGEST_OUTCOME
LARGEST_EFFECT: Final = 1e6
LARGEST_VARIANCE: Final = 1e6  # of an effect; it tends to at most 1
PRIOR_VARIANCE: Final = 0.5  # of the effect of a feature
PRIOR_BELIEF: Final = 0.2
PRIOR_EVENTS: Final = 2.0  # largest outcomes that the prior of the dispersion is worth
MEMORY_OF_EVENTS: Final = 40.0  # largest outcomes
MEMORY: Final = 200.0  # observations
GROWTH: Final = 2.0  # maximum factor on the variance of a direction per observation
MOST_EVIDENCE: Final = 3.0
SPREAD: Final = 0.01
DRIFT: Final = 1e-4  # q, variance that the logarithm of a mean gains per observation
NEWTON_STEPS: Final = 30
CLOSE: Final = 1e-9


class LogLinear(NamedTuple):
    """The models of m arms with K = 1 + d outcomes; vectors have length 0 if they are not used."""

    covariance: Annotated[Floats, within(-LARGEST_VARIANCE, LARGEST_VARIANCE)]  # (m, K, p, p)
    effects: Annotated[Floats, within(-LARGEST_EFFECT, LARGEST_EFFECT)]  # (m, K, p) theta
    squares: Annotated[Floats, within(0.0, LARGEST_SQUARE)]  # (m, K) fading sums of squared errors
    means: Annotated[Floats, within(0.0, LARGEST_OUTCOME)]  # (m, K) fading sums of predictions; 0 before the first
    largest: Annotated[Floats, within(0.0, LARGEST_OUTCOME)]  # (K,) outcomes
    belief: Shares  # (K,)
    product: Scratch  # (p,)
    drift: float  # q

    def check(self) -> None:
        """Raise unless covariances are symmetric and positive semidefinite; otherwise updates would not be stable."""
        check_covariances(self.covariance)


def new_log_linear(arms: int, kinds: int, size: int, forgets: bool = True) -> LogLinear:
    """Create models without observations."""
    used = size if size <= LARGEST_SIZE else 0
    prior = np.diag(np.append(np.full(used - 1, PRIOR_VARIANCE), 1.0)) if used else np.zeros((0, 0))
    return LogLinear(
        covariance=np.tile(prior, (arms, kinds, 1, 1)),
        effects=np.zeros((arms, kinds, used)),
        squares=np.zeros((arms, kinds)),
        means=np.zeros((arms, kinds)),
        largest=np.zeros(kinds),
        belief=np.full(kinds, PRIOR_BELIEF if used else 0.0),
        product=np.zeros(used),
        drift=DRIFT if forgets else 0.0,
    )


@kernel
def is_used(models: LogLinear) -> bool:
    """Return whether vectors are short enough for these models."""
    return bool(models.product.size > 0)


@kernel
def has_begun(models: LogLinear, arm: int, k: int) -> bool:
    """Return whether there were observations of an outcome of an arm since it was positive for any arm."""
    return bool(models.means[arm, k] > 0.0)


@kernel
def log_mean(models: LogLinear, arm: int, k: int, x: Floats) -> float:
    """Return the logarithm of the mean of an outcome."""
    total = 0.0
    for f in range(models.product.size):
        total += models.effects[arm, k, f] * x[f]
    return min(max(total, -LARGEST_LOG), LARGEST_LOG)


@kernel
def predict(models: LogLinear, arm: int, k: int, x: Floats) -> float:
    """Return the mean of an outcome, at most the largest so far."""
    return float(min(math.exp(log_mean(models, arm, k, x)), models.largest[k]))


@kernel
def blend(models: LogLinear, arm: int, k: int, x: Floats, mean: float, sd: float) -> tuple[float, float]:
    """Return the mean and standard deviation of the mixture with a linear estimate."""
    belief, product = models.belief[k], predict(models, arm, k, x)
    own = product * product * multiply(models.covariance[arm, k], x, models.product)
    apart = belief * (1.0 - belief) * squared(mean - product)
    return (1.0 - belief) * mean + belief * product, math.sqrt((1.0 - belief) * sd * sd + belief * own + apart)


@kernel
def learn_product(
    models: LogLinear, arm: int, k: int, x: Floats, told: float, start: float, linear: float, noise: float, count: float
) -> float:
    """Learn an outcome; return its mixed prediction from before.

    Args:
        told: The outcome; a negative one is learnt as 0.
        start: The prior mean of the first positive outcome of an arm; 0 for a tenth of the largest outcome.
        linear: The prediction of the linear models.
        noise: The variance of errors.
        count: The number of observations of all arms.
    """
    outcome, mixed = max(told, 0.0), linear
    models.largest[k] = max(models.largest[k], outcome)
    if models.largest[k] == 0.0:
        return mixed  # nothing was ever earned or charged
    if has_begun(models, arm, k):
        product = predict(models, arm, k, x)
        mixed += models.belief[k] * (product - linear)
        weigh_models(models, k, 0.5 * (squared(told - linear) - squared(told - product)) / noise, count)
    else:
        begin_models(models, arm, k, start if start > 0.0 else 0.1 * models.largest[k])
    observe_product(models, arm, k, x, outcome)
    return mixed


@kernel
def begin_models(models: LogLinear, arm: int, k: int, mean: float) -> None:
    """Set the prior of an outcome of an arm to a mean."""
    models.effects[arm, k, models.product.size - 1] = math.log(mean)
    models.means[arm, k] = PRIOR_EVENTS * models.largest[k]
    models.squares[arm, k] = models.means[arm, k] * models.largest[k]


@kernel
def observe_product(models: LogLinear, arm: int, k: int, x: Floats, outcome: float) -> None:
    """Learn an outcome of an arm."""
    before, mean, largest = log_mean(models, arm, k, x), predict(models, arm, k, x), models.largest[k]
    phi = max(models.squares[arm, k] / models.means[arm, k], SMALLEST * largest, SMALLEST)
    variance = multiply(models.covariance[arm, k], x, models.product)
    mode = posterior_mode(before, variance / phi, outcome)
    after = variance * phi / (phi + variance * math.exp(mode)) + models.drift
    after = min(after, max(variance, min(GROWTH * variance, 1.0)))
    move, change = (mode - before) / variance, (variance - after) / (variance * variance)
    for f in range(models.product.size):
        effect = models.effects[arm, k, f] + move * models.product[f]
        models.effects[arm, k, f] = min(max(effect, -LARGEST_EFFECT), LARGEST_EFFECT)
        for e in range(models.product.size):
            models.covariance[arm, k, f, e] -= change * (models.product[f] * models.product[e])
    # The dispersion.
    fade = 1.0 - min(1.0 / MEMORY, mean / (MEMORY_OF_EVENTS * largest))
    models.squares[arm, k] = min(fade * models.squares[arm, k] + squared(outcome - mean), LARGEST_SQUARE)
    models.means[arm, k] = min(fade * models.means[arm, k] + mean, LARGEST_OUTCOME)


@kernel
def posterior_mode(before: float, ratio: float, outcome: float) -> float:
    """Return the root z of z = before + ratio (outcome - e^z), in [-LARGEST_LOG, LARGEST_LOG]."""
    # Begin at an upper bound: where e^z = outcome or z = before, and where the slope would lead at most.
    mode = max(before, math.log(outcome)) if outcome > 0.0 else before
    mode = min(mode, math.log(outcome + (before + LARGEST_LOG + 1.0) / ratio))
    for _ in range(NEWTON_STEPS):
        mean = math.exp(min(mode, LARGEST_LOG))
        step = (mode - before - ratio * (outcome - mean)) / (1.0 + ratio * mean)
        mode -= step
        if abs(step) < CLOSE:
            break
    return min(max(mode, -LARGEST_LOG), LARGEST_LOG)


@kernel
def weigh_models(models: LogLinear, k: int, evidence: float, count: float) -> None:
    """Update the belief by a logarithm of likelihood ratios, at the ``count``-th observation of any arm."""
    odds = models.belief[k] * math.exp(min(max(evidence, -MOST_EVIDENCE), MOST_EVIDENCE))
    back = min(SPREAD, 1.0 / count)
    models.belief[k] = (1.0 - back) * odds / (odds + 1.0 - models.belief[k]) + back * PRIOR_BELIEF
