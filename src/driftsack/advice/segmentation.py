r"""Change points of a signal: the segmentation with the smallest penalised squared loss, found exactly.

For a signal :math:`x_1, \dots, x_n \in \mathbb{R}^q` and change points :math:`0 = t_0 < t_1 < \dots < t_{K+1} = n`,

.. math:: \min_{K, t} \; \sum_{k=0}^{K} \sum_{s = t_k + 1}^{t_{k+1}} \lVert x_s - \bar x_k \rVert^2 + K \lambda .

The best segmentation of a beginning of the signal consists of a shorter beginning, segmented in the best way, and one
more segment (Jackson et al. 2005): O(n²q) operations, in n array operations. Signals have at most 1,024 windows here.
"""

from __future__ import annotations

import numpy as np

from driftsack.core.arrays import Floats


def best_segmentation(signal: Floats, penalty: float, min_size: int = 1) -> list[int]:
    """Return the positions at which new segments begin.

    Args:
        signal: (n, q) the signal.
        penalty: The loss λ by which another change point must at least reduce the loss.
        min_size: The smallest length of a segment.

    >>> best_segmentation(np.array([[0.0], [0.1], [5.0], [5.1], [5.0]]), penalty=1.0)
    [2]
    """
    losses, size, shortest = _Losses(signal), len(signal), max(min_size, 1)
    best = np.full(size + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(size + 1, dtype=np.int64)
    for end in range(shortest, size + 1):
        starts = np.arange(end - shortest + 1)
        totals = best[: starts.size] + losses.of(starts, end) + penalty
        last[end] = totals.argmin()
        best[end] = totals[last[end]]
    found, end = [], int(last[size])
    while end > 0:
        found.append(end)
        end = int(last[end])
    return found[::-1]


def best_split(signal: Floats, min_size: int = 1) -> list[int]:
    """Return the one position that splits a signal into the two best segments; none if it is too short.

    >>> best_split(np.array([[0.0], [0.0], [0.1], [0.0], [0.2], [0.2]]))
    [4]
    """
    size, shortest = len(signal), max(min_size, 1)
    if size < 2 * shortest:
        return []
    losses, splits = _Losses(signal), np.arange(shortest, size - shortest + 1)
    zeros = np.zeros(1, dtype=np.int64)
    totals = [float(losses.of(zeros, split)[0] + losses.of(np.array([split]), size)[0]) for split in splits.tolist()]
    return [int(splits[np.argmin(totals)])]


class _Losses:
    """The squared losses of segments, from running sums of the centred signal."""

    def __init__(self, signal: Floats) -> None:
        centred = signal - signal.mean(axis=0)
        zero = np.zeros((1, signal.shape[1]))
        self._sums = np.concatenate([zero, centred.cumsum(axis=0)])
        self._squares = np.concatenate([[0.0], (centred**2).sum(axis=1).cumsum()])

    def of(self, starts: np.ndarray[tuple[int], np.dtype[np.int64]], end: int) -> Floats:
        """(k,) the loss of each segment from a start, included, to the end, excluded."""
        sums = self._sums[end] - self._sums[starts]
        squares = self._squares[end] - self._squares[starts]
        losses: Floats = np.maximum(squares - (sums**2).sum(axis=1) / (end - starts), 0.0)
        return losses
