r"""GLR change detection on streams of outcomes in [0, 1], at dyadic splits (Besson and others 2022).

After n outcomes of a stream, split into the first s and the last n - s, with means :math:`\hat\mu_1, \hat\mu_2` and
pooled mean :math:`\hat\mu`. A change is detected if for some s

.. math:: s\, \mathrm{kl}(\hat\mu_1, \hat\mu) + (n - s)\, \mathrm{kl}(\hat\mu_2, \hat\mu)
          \ge \beta(n, \delta) = \ln\bigl(3 n^{3/2} / \delta\bigr), \qquad
          \mathrm{kl}(p, q) = p \ln\tfrac{p}{q} + (1 - p) \ln\tfrac{1 - p}{1 - q} .

(This threshold is used in practice; the proof needs a slightly larger one.)

*Dyadic splits*: for each k, the running sums at the last two multiples of :math:`2^k` are kept, and the older one
splits off the last :math:`2^k` to :math:`2^{k+1} - 1` outcomes. The sum of the first :math:`2^k` outcomes is kept as
well. Memory and time per round are :math:`O(\log n)`, and for every split there is a dyadic one whose shorter side
differs by a factor of at most two.

*Few logarithms*: :math:`\mathrm{kl}(p, q) \le (p - q)^2 / (q (1 - q))`, so the statistic is at most
:math:`\frac{s (n-s)}{n} (\hat\mu_1 - \hat\mu_2)^2 / (\hat\mu (1 - \hat\mu))`; the exact statistic is computed only
where this bound reaches the threshold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Counts
from driftsack.numerics.compiled import kernel


class GLR(NamedTuple):
    """The detectors of S streams."""

    counts: Counts  # (S,) n
    sums: Floats  # (S,) of all n outcomes
    kept: Floats  # (S, levels, 2) sums of the first j 2^k outcomes, for the last two j, at j mod 2
    heads: Floats  # (S, levels) sums of the first 2^k outcomes
    log_confidence: float  # ln(3 / delta)


def new_glr(streams: int, longest: int, delta: float) -> GLR:
    """Create detectors for streams of up to ``longest`` outcomes, each with false-alarm probability about ``delta``."""
    levels = max(longest, 1).bit_length()
    kept = np.zeros((streams, levels, 2))
    heads = np.zeros((streams, levels))
    return GLR(np.zeros(streams, dtype=np.int64), np.zeros(streams), kept, heads, math.log(3.0 / delta))


@kernel
def reset_glr(glr: GLR) -> None:
    """Restart every stream. Running sums are not cleared: each is written before it is read again."""
    glr.counts[:] = 0
    glr.sums[:] = 0.0


@kernel
def glr_detects(glr: GLR, stream: int, outcome: float) -> bool:
    """Add an outcome; return whether a change is detected in the stream."""
    n = glr.counts[stream] + 1
    total = glr.sums[stream] + outcome
    glr.counts[stream] = n
    glr.sums[stream] = total
    # Keep the running sum at every level k for which n is a multiple of 2^k.
    k = 0
    while n & ((1 << k) - 1) == 0 and k < glr.kept.shape[1]:
        glr.kept[stream, k, (n >> k) & 1] = total
        if n >> k == 1:
            glr.heads[stream, k] = total
        k += 1
    return any_split_detects(glr, stream, n, total)


@kernel
def any_split_detects(glr: GLR, stream: int, n: int, total: float) -> bool:
    """Return whether the statistic reaches the threshold at a dyadic split."""
    spread = total * (n - total)  # n^2 mu (1 - mu)
    if spread <= 0.0:
        return False
    threshold = glr.log_confidence + 1.5 * math.log(n)
    for k in range(glr.kept.shape[1]):
        j = (n >> k) - 1
        if j < 1:
            break
        if split_detects(j << k, glr.kept[stream, k, j & 1], n, total, threshold):
            return True
        if split_detects(1 << k, glr.heads[stream, k], n, total, threshold):
            return True
    return False


@kernel
def split_detects(first: int, head: float, n: int, total: float, threshold: float) -> bool:
    """Return whether the statistic of a split after ``first`` outcomes with sum ``head`` reaches the threshold."""
    shift = head - total * first / n  # s (n - s) / n times the difference of the means
    bound = shift * shift * n * n * n  # the upper bound, times s (n - s) n^2 mu (1 - mu)
    if bound < threshold * first * (n - first) * total * (n - total):
        return False
    return statistic(first, head, n, total) >= threshold


@kernel
def statistic(first: int, head: float, n: int, total: float) -> float:
    """Return the exact statistic of a split; ``head`` and ``total`` are the sums of the first and of all outcomes."""
    last = n - first
    mean = total / n
    return first * kl(head / first, mean) + last * kl(min(max((total - head) / last, 0.0), 1.0), mean)


@kernel
def kl(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of Bernoulli(p) from Bernoulli(q), for 0 < q < 1."""
    result = 0.0
    if p > 0.0:
        result += p * math.log(p / q)
    if p < 1.0:
        result += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return result
