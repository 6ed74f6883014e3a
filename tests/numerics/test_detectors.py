"""Change detectors against twins on the whole stream, and their false alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from driftsack.core.arrays import Floats
from driftsack.numerics.cusum import cusum_detects, new_cusum, reset_cusum
from driftsack.numerics.glr import glr_detects, kl, new_glr, reset_glr, statistic
from tests.support import naive


def glr_twin(stream: Floats, delta: float, back: int = 1) -> int:
    """The first n at which GLR detects a change, from the whole stream; -1 for never."""
    values = stream.tolist()
    return next((n for n in range(1, len(values) + 1) if naive.glr_detects(values[:n], delta, back)), -1)


def glr_time(stream: Floats, delta: float) -> int:
    detector = new_glr(2, len(stream), delta)
    for n, x in enumerate(stream, start=1):
        assert not glr_detects(detector, 0, 0.5)  # another stream, which never changes
        if glr_detects(detector, 1, float(x)):
            return n
    return -1


def streams() -> list[Floats]:
    """Bernoulli, uniform and constant outcomes, with and without a change."""
    rng = np.random.default_rng(0)
    found = []
    for before, after in ((0.5, 0.5), (0.2, 0.8), (0.5, 0.6), (0.9, 0.1), (0.0, 0.3), (1.0, 0.0)):
        means = np.repeat([before, after], [150, 250])
        found += [(rng.random(400) < means).astype(float), np.clip(means + 0.1 * rng.standard_normal(400), 0, 1), means]
    return found


def test_glr_detects_when_its_twin_does() -> None:
    times = [(glr_time(stream, 0.01), glr_twin(stream, 0.01)) for stream in streams()]
    assert [fast for fast, _ in times] == [slow for _, slow in times]
    assert sum(fast > 150 for fast, _ in times) >= 12  # most of the changes are detected
    wrong = [glr_twin(stream, 0.01, back=0) for stream in streams()]
    assert wrong != [slow for _, slow in times]  # the planted fault is detected


def test_the_exact_statistic_is_below_its_bound() -> None:
    """The bound without logarithms, s (n-s) / n (difference)^2 / (mean (1 - mean)), is never below the statistic."""
    rng = np.random.default_rng(1)
    for _ in range(2_000):
        n = int(rng.integers(2, 500))
        first = int(rng.integers(1, n))
        head, tail = first * rng.random(), (n - first) * rng.random()
        mean = (head + tail) / n
        difference = head / first - tail / (n - first)
        bound = first * (n - first) / n * difference**2 / (mean * (1 - mean))
        assert statistic(first, head, n, head + tail) <= bound * (1 + 1e-9) + 1e-9
    assert kl(0.0, 0.3) == pytest.approx(-math.log(0.7))
    assert kl(1.0, 0.3) == pytest.approx(-math.log(0.3))


def test_a_restarted_glr_ignores_earlier_outcomes() -> None:
    rng = np.random.default_rng(2)
    one, two = new_glr(1, 1_000, 0.01), new_glr(1, 1_000, 0.01)
    for x in rng.random(300):
        glr_detects(one, 0, x)
    reset_glr(one)
    for x in (rng.random(500) < np.repeat([0.2, 0.7], 250)).astype(float):
        assert glr_detects(one, 0, x) == glr_detects(two, 0, x)


@pytest.mark.parametrize("mean", [0.1, 0.5])
def test_the_false_alarm_rate_is_at_most_delta(mean: float) -> None:
    """400 streams of 2,000 outcomes without a change at delta = 0.05: more than 5% + 3 SE (33 alarms) is a failure."""
    rng = np.random.default_rng(3)
    alarms = {"glr": 0, "cusum": 0}
    for _ in range(400):
        stream = (rng.random(2_000) < mean).astype(float)
        glr, cusum = new_glr(1, 2_000, 0.05), new_cusum(1, 2_000, 0.05, 0.3)
        alarms["glr"] += any(glr_detects(glr, 0, x) for x in stream)
        alarms["cusum"] += any(cusum_detects(cusum, 0, x) for x in stream)
    assert max(alarms.values()) <= 33
    eager = new_glr(1, 2_000, 0.05)._replace(log_confidence=-8.0)  # the planted fault: a threshold that is far too low
    assert any(glr_detects(eager, 0, x) for x in (rng.random(2_000) < 0.5).astype(float))


def cusum_twin(stream: Floats, longest: int, delta: float, change: float, side: float = 0.5) -> int:
    """The first n at which either statistic exceeds h; ``side`` plants a wrong drift."""
    warmup, drift = math.ceil(4 / change**2), side * change
    threshold = math.log(2 * longest / delta) / (8 * change / 2)
    enough = math.ceil(2 * math.log(4 / delta) / (change / 2) ** 2)
    settled, up, down = warmup, 0.0, 0.0  # the reference is the mean of the first ``settled`` outcomes
    for n in range(warmup, len(stream)):
        excess = stream[n] - stream[:settled].mean()
        up, down = max(0.0, up + excess - drift), max(0.0, down - excess - drift)
        if up == down == 0.0 or settled < enough:
            settled = n + 1
        if max(up, down) > threshold:
            return n + 1
    return -1


def test_cusum_detects_when_its_twin_does() -> None:
    fast, slow, wrong = [], [], []
    for stream in streams():
        detector = new_cusum(1, 400, 0.01, 0.3)
        fast.append(next((n for n, x in enumerate(stream, 1) if cusum_detects(detector, 0, x)), -1))
        slow.append(cusum_twin(stream, 400, 0.01, 0.3))
        wrong.append(cusum_twin(stream, 400, 0.01, 0.3, side=0.0))
    assert fast == slow
    assert sum(n > 150 for n in fast) >= 9
    assert wrong != slow
    reset_cusum(detector)
    assert not any(part.any() for part in detector[:4])


@pytest.mark.parametrize(("before", "glr_least", "cusum_least"), [(400, 14, 20), (2_000, 38, 38)])
def test_small_changes_are_detected(before: int, glr_least: int, cusum_least: int) -> None:
    """From 0.4 to 0.6, then 9,000 outcomes; 40 streams: after 2,000 outcomes almost always, after 400 often."""
    rng = np.random.default_rng(4)
    detections = {"glr": 0, "cusum": 0}
    for _ in range(40):
        stream = (rng.random(before + 9_000) < np.repeat([0.4, 0.6], [before, 9_000])).astype(float)
        glr, cusum = new_glr(1, 11_000, 0.01), new_cusum(1, 11_000, 0.01, 0.2)
        detections["glr"] += any(glr_detects(glr, 0, x) for x in stream)
        detections["cusum"] += any(cusum_detects(cusum, 0, x) for x in stream)
    assert detections["glr"] >= glr_least
    assert detections["cusum"] >= cusum_least
