"""Change detectors (GLR or CUSUM) on the reward and each cost of every arm."""

from __future__ import annotations

from typing import Final, NamedTuple

from driftsack.core.arrays import Floats
from driftsack.core.problem import Problem
from driftsack.numerics.compiled import kernel
from driftsack.numerics.cusum import CUSUM, cusum_detects, new_cusum, reset_cusum
from driftsack.numerics.glr import GLR, glr_detects, new_glr, reset_glr

DETECTORS: Final = ("glr", "cusum")


class Detector(NamedTuple):
    """Streams of each arm: its reward, then its costs; the unused kind of detector has no streams."""

    glr: GLR
    cusum: CUSUM


def new_detector(problem: Problem, kind: str, delta: float, change: float) -> Detector:
    """Create detectors without observations; ``delta`` is the false-alarm probability of each stream."""
    streams, horizon = problem.arms * (1 + problem.resources), problem.horizon
    return Detector(
        glr=new_glr(streams if kind == "glr" else 0, horizon, delta),
        cusum=new_cusum(streams if kind == "cusum" else 0, horizon, delta, change),
    )


@kernel
def detects(detector: Detector, arm: int, reward: float, costs: Floats) -> bool:
    """Add an outcome to all streams of its arm; return whether a change is detected in any of them."""
    streams = 1 + costs.size
    changed = False
    for k in range(streams):
        outcome = reward if k == 0 else costs[k - 1]
        stream = arm * streams + k
        if detector.glr.counts.size > 0:
            changed |= glr_detects(detector.glr, stream, outcome)
        else:
            changed |= cusum_detects(detector.cusum, stream, outcome)
    return changed


@kernel
def reset(detector: Detector) -> None:
    """Restart every stream."""
    reset_glr(detector.glr)
    reset_cusum(detector.cusum)
