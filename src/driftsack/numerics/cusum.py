r"""CUSUM change detection on streams of outcomes in [0, 1], two-sided (Page 1954; for bandits Liu, Lee, Shroff 2018).

The reference :math:`\hat u` is the mean of all outcomes until there are S of them, and after that the mean of the
outcomes up to the last time at which both statistics below were 0. After a warm-up of M outcomes

.. math:: g^+ \leftarrow \max(0,\, g^+ + x - \hat u - \epsilon), \qquad
          g^- \leftarrow \max(0,\, g^- + \hat u - x - \epsilon),

and a change is detected when either exceeds h. To detect changes of at least :math:`\Delta`, take
:math:`\epsilon = \Delta/2`. An outcome in [0, 1] has
:math:`\mathbf{E}\, e^{\lambda (x - u - \epsilon)} \le e^{\lambda^2/8 - \lambda\epsilon}`, which is 1 at
:math:`\lambda = 8\epsilon`: without a change an excursion to h has probability at most :math:`e^{-8 \epsilon h}` from
each start, so :math:`h = \ln(2 T/\delta) / (8\epsilon)` raises a false alarm within T outcomes with probability at most
:math:`\delta`, apart from the error of the reference. With a reference from the first
:math:`M = \lceil 4/\Delta^2 \rceil` outcomes alone, a fifth of the streams raised a false alarm at
:math:`\delta = 1/20`. The reference is therefore updated until its error is below :math:`\epsilon/2`,
:math:`S = 2 \ln(4/\delta) / \epsilon^2`, and after that only while both statistics are 0. An earlier change of
:math:`\Delta` is detected only if it comes after about :math:`h / (0.19 \Delta)` outcomes: otherwise the reference
follows it. O(1) per round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Counts
from driftsack.numerics.compiled import kernel


class CUSUM(NamedTuple):
    """The detectors of several streams."""

    reference_counts: Counts  # (streams,) outcomes in the reference
    reference_sums: Floats  # (streams,)
    recent_counts: Counts  # (streams,) outcomes since then
    recent_sums: Floats  # (streams,)
    up: Floats  # (streams,) g+
    down: Floats  # (streams,) g-
    warmup: int  # M
    settled: int  # S
    drift: float  # epsilon
    threshold: float  # h


def new_cusum(streams: int, longest: int, delta: float, change: float) -> CUSUM:
    """Create detectors for streams of up to ``longest`` outcomes and changes of at least ``change``."""
    drift = change / 2.0
    threshold = math.log(2.0 * longest / delta) / (8.0 * drift)
    return CUSUM(
        reference_counts=np.zeros(streams, dtype=np.int64),
        reference_sums=np.zeros(streams),
        recent_counts=np.zeros(streams, dtype=np.int64),
        recent_sums=np.zeros(streams),
        up=np.zeros(streams),
        down=np.zeros(streams),
        warmup=math.ceil(4.0 / change**2),
        settled=math.ceil(2.0 * math.log(4.0 / delta) / drift**2),
        drift=drift,
        threshold=threshold,
    )


@kernel
def reset_cusum(cusum: CUSUM) -> None:
    """Restart every stream."""
    cusum.reference_counts[:] = 0
    cusum.reference_sums[:] = 0.0
    cusum.recent_counts[:] = 0
    cusum.recent_sums[:] = 0.0
    cusum.up[:] = 0.0
    cusum.down[:] = 0.0


@kernel
def cusum_detects(cusum: CUSUM, stream: int, outcome: float) -> bool:
    """Add an outcome; return whether a change is detected in the stream."""
    cusum.recent_counts[stream] += 1
    cusum.recent_sums[stream] += outcome
    count = cusum.reference_counts[stream]
    if count >= cusum.warmup:
        # Update g+ and g-.
        excess = outcome - cusum.reference_sums[stream] / count
        cusum.up[stream] = max(0.0, cusum.up[stream] + excess - cusum.drift)
        cusum.down[stream] = max(0.0, cusum.down[stream] - excess - cusum.drift)
    # While the reference is not settled, or both statistics are 0, it includes the recent outcomes.
    highest = max(cusum.up[stream], cusum.down[stream])
    if highest == 0.0 or count < cusum.settled:
        cusum.reference_counts[stream] += cusum.recent_counts[stream]
        cusum.reference_sums[stream] += cusum.recent_sums[stream]
        cusum.recent_counts[stream] = 0
        cusum.recent_sums[stream] = 0.0
    return bool(highest > cusum.threshold)
