r"""CUSUM change detection on streams of outcomes in [0, 1], two-sided (Page 1954; for bandits Liu, Lee, Shroff 2018).

The reference :math:`\hat u` is a mean of outcomes: of all so far up to a number S, then of those up to the last moment
at which both walks below stood at 0. After a warm-up of M outcomes

.. math:: g^+ \leftarrow \max(0,\, g^+ + x - \hat u - \epsilon), \qquad
          g^- \leftarrow \max(0,\, g^- + \hat u - x - \epsilon),

and there has been a change when either exceeds h. To see changes of at least :math:`\Delta`, take :math:`\epsilon =
\Delta/2`. An outcome in [0, 1] has :math:`\mathbf{E}\, e^{\lambda (x - u - \epsilon)} \le e^{\lambda^2/8 -
\lambda\epsilon}`, which is 1 at :math:`\lambda = 8\epsilon`: without a change a climb to h has probability at most
:math:`e^{-8 \epsilon h}` from each start, so :math:`h = \ln(2 T/\delta) / (8\epsilon)` rings falsely within T outcomes
with probability at most :math:`\delta`, but for the error of the reference. With the first :math:`M = \lceil
4/\Delta^2 \rceil` outcomes alone one stream in five rang falsely where one in twenty was promised; so it goes on
learning until it is sure to :math:`\epsilon/2`, :math:`S = 2 \ln(4/\delta) / \epsilon^2`, and only then stops learning
while a walk is under way. A change of :math:`\Delta` before that must come after about :math:`h / (0.19 \Delta)`
outcomes: the reference follows it. O(1) a round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.numerics.compiled import kernel


class CUSUM(NamedTuple):
    """What is kept of each of S streams."""

    counts: Ints  # (S, 2) outcomes behind the reference, and since then
    sums: Floats  # (S, 2) the same
    up: Floats  # (S,) g+
    down: Floats  # (S,) g-
    warmup: int  # M
    sure: int  # S
    drift: float  # epsilon
    threshold: float  # h


def new_cusum(streams: int, longest: int, delta: float, change: float) -> CUSUM:
    """Detectors for streams of up to ``longest`` outcomes and changes of at least ``change``."""
    drift = change / 2.0
    threshold = math.log(2.0 * longest / delta) / (8.0 * drift)
    return CUSUM(
        counts=np.zeros((streams, 2), dtype=np.int64),
        sums=np.zeros((streams, 2)),
        up=np.zeros(streams),
        down=np.zeros(streams),
        warmup=math.ceil(4.0 / change**2),
        sure=math.ceil(2.0 * math.log(4.0 / delta) / drift**2),
        drift=drift,
        threshold=threshold,
    )


@kernel
def forget_cusum(cusum: CUSUM) -> None:
    """Begin anew."""
    cusum.counts[:] = 0
    cusum.sums[:] = 0.0
    cusum.up[:] = 0.0
    cusum.down[:] = 0.0


@kernel
def cusum_rings(cusum: CUSUM, stream: int, outcome: float) -> bool:
    """Enter an outcome; whether the stream has changed by now."""
    counts, sums = cusum.counts[stream], cusum.sums[stream]
    counts[1] += 1
    sums[1] += outcome
    if counts[0] >= cusum.warmup:
        excess = outcome - sums[0] / counts[0]
        cusum.up[stream] = max(0.0, cusum.up[stream] + excess - cusum.drift)
        cusum.down[stream] = max(0.0, cusum.down[stream] - excess - cusum.drift)
    highest = max(cusum.up[stream], cusum.down[stream])
    if highest == 0.0 or counts[0] < cusum.sure:
        counts[0] += counts[1]
        sums[0] += sums[1]
        counts[1] = 0
        sums[1] = 0.0
    return bool(highest > cusum.threshold)
