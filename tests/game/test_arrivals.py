"""Rounds left in a period: against a twin that keeps every arrival, against competitors, through files and renewals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from driftsack.core.arrays import Floats
from driftsack.core.errors import NotFiniteError, OutOfRangeError, ShapeError
from driftsack.game import arrivals as module
from driftsack.game.arrival_rates import estimate_rates
from driftsack.game.arrivals import Arrivals
from driftsack.game.state_checks import check_state
from tests.support.arrival_streams import DAY, HOUR, errors, extrapolated, guessed, learnt, rms, stream

WEEK = 7 * DAY


def overlap(begin: float, end: float, day_start: float) -> list[list[float]]:
    """The seconds of each hour of each day of the week, summed hour by hour."""
    found = [[0.0] * 24 for _ in range(7)]
    for hour in range(int((begin + day_start) // HOUR), int((end + day_start) // HOUR) + 1):
        low, high = max(begin + day_start, hour * HOUR), min(end + day_start, (hour + 1) * HOUR)
        found[hour // 24 % 7][hour % 24] += max(high - low, 0.0)
    return found


def slow_weight(seen: list[float], expected: list[float]) -> float:
    """The inverse variance of factors by the method of moments, between 4 and 10^9."""
    total = sum(seen)
    if total == 0 or sum(expected) == 0:
        return 4.0
    scaled = [one * total / sum(expected) for one in expected]
    square = sum(one**2 for one in scaled)
    excess = sum((n - one) ** 2 for n, one in zip(seen, scaled, strict=True)) - total + square / total
    variance = max(excess / square, 1e-9)
    return max(1.0 / variance, 4.0)


def slow_rounds_left(times: list[float], now: float, period: float, guess: float, day_start: float) -> float:
    """Recompute everything from the list of arrivals, in loops."""
    counts = [[0.0] * 24 for _ in range(7)]
    for at in times[1:]:
        hour = int((at + day_start) // HOUR)
        counts[hour // 24 % 7][hour % 24] += 1
    watched = overlap(times[0], now, day_start) if times else overlap(0.0, 0.0, 0.0)
    seen = [sum(counts[w][h] for w in range(7)) for h in range(24)]
    time = [sum(watched[w][h] for w in range(7)) for h in range(24)]
    level = (1 + sum(seen)) / (period / guess + sum(time))
    for _ in range(3):
        k = slow_weight(seen, time) + 0.2 * HOUR * level
        rho = [k / (k + level * one) for one in time]
        level = (1 + sum(r * n for r, n in zip(rho, seen, strict=True))) / (
            period / guess + sum(r * e for r, e in zip(rho, time, strict=True))
        )
    k = slow_weight(seen, time) + 0.2 * HOUR * level
    f = [(k + n) / (k + level * e) for n, e in zip(seen, time, strict=True)]
    by_day = [sum(row) for row in counts]
    expected = [level * sum(f[h] * watched[w][h] for h in range(24)) for w in range(7)]
    k = slow_weight(by_day, expected) + 0.2 * DAY * level
    g = [(k + n) / (k + e) for n, e in zip(by_day, expected, strict=True)]
    ahead = overlap(now, period, day_start)
    return max(sum(level * f[h] * g[w] * ahead[w][h] for w in range(7) for h in range(24)), 1.0)


def largest_difference(period: float, expected: float, shift: float = 0.0) -> float:
    """The largest relative difference from the twin over a stream, whose clock is shifted by some seconds."""
    times, day_start = stream("weekly", period, expected, np.random.default_rng(5))
    arrivals = Arrivals(period, 2 * expected, day_start)
    worst, seen = 0.0, 0
    for now in np.linspace(0.0, period, 60, endpoint=False).tolist():
        until = int(np.searchsorted(times, now, side="right"))
        for at in times[seen:until].tolist():
            arrivals.arrive(at)
        seen = until
        slow = slow_rounds_left(times[:until].tolist(), now, period, 2 * expected, day_start + shift)
        worst = max(worst, abs(arrivals.rounds_left(now) / slow - 1.0))
    return worst


@pytest.mark.parametrize(("period", "expected"), [(30 * DAY, 800), (3.3 * DAY, 500), (5 * HOUR, 200), (900.0, 100)])
def test_equals_the_twin(period: float, expected: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly if the rates are estimated at every arrival, and closely if only once the evidence has grown by 1/64."""
    assert largest_difference(period, expected) < 0.1
    monkeypatch.setattr(module, "STALE", 0.0)
    assert largest_difference(period, expected) < 1e-9


def test_the_twin_detects_planted_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile shifted by an hour or half a day, other weights, one step less."""
    monkeypatch.setattr(module, "STALE", 0.0)
    assert largest_difference(3.3 * DAY, 500, shift=HOUR) > 1e-2
    assert largest_difference(30 * DAY, 800, shift=12 * HOUR) > 1e-2
    for name, value in (("SPREAD", 0.3), ("LEAST_WEIGHT", 5.0), ("LEVEL_STEPS", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(f"driftsack.game.arrival_rates.{name}", value)
            assert largest_difference(3.3 * DAY, 500) > 1e-6, name


def test_estimates_between_refreshes_stay_close_and_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of estimates grows with hours and the logarithm of arrivals, not with arrivals."""
    calls = []

    def counted(counts: Floats, watched: Floats, guess: float) -> Floats:
        calls.append(guess)
        return estimate_rates(counts, watched, guess)

    monkeypatch.setattr(module, "estimate_rates", counted)
    arrivals = Arrivals(DAY, 100)
    for at in np.linspace(0.0, DAY, 20_000).tolist():
        arrivals.arrive(at)
        arrivals.rounds_left(at)
    assert len(calls) < 1_500


@pytest.mark.parametrize(
    ("period", "expected", "factor"),
    [(30 * DAY, 500, 2.0), (WEEK, 800, 0.5), (DAY, 500, 2.0), (DAY, 500, 10.0), (2 * HOUR, 500, 0.5)],
)
def test_streams_without_shape_are_extrapolated(period: float, expected: float, factor: float) -> None:
    """Squared errors exceed those of extrapolation by at most 3 standard errors of the difference and 1% squared."""
    mine, theirs, kept = (
        errors(one, "flat", period, expected, factor, 30)[:, 1:] for one in (learnt, extrapolated, guessed)
    )
    excess = mine**2 - theirs**2
    assert (excess.mean(axis=0) < 3 * excess.std(axis=0) / math.sqrt(30) + 1e-4).all()
    assert (rms(mine) < rms(kept) / 2).all()


@pytest.mark.parametrize(
    ("kind", "period", "expected", "ratio"),
    [
        ("daily", 30 * DAY, 2_000, (0.85, 1.0, 1.05, 1.0)),
        ("daily", WEEK, 2_000, (1.05, 0.75, 0.6, 0.6)),
        ("weekly", 30 * DAY, 2_000, (1.0, 0.9, 0.95, 0.85)),
        ("dead", 15 * DAY, 1_500, (1.0, 0.5, 0.7, 0.9)),
    ],
)
def test_shapes_beat_extrapolation(kind: str, period: float, expected: float, ratio: tuple[float, ...]) -> None:
    """Root mean square errors as a share of those of extrapolation, with a guess that is off by 2."""
    mine, theirs = (rms(errors(one, kind, period, expected, 2.0, 30)) for one in (learnt, extrapolated))
    assert (mine <= np.array(ratio) * theirs).all()


def test_a_wrong_clock_loses_what_the_shape_gains() -> None:
    """The planted fault: a profile whose hours are off by a half day after the first day."""

    def shifted(times: Floats, nows: Floats, period: float, guess: float, day_start: float) -> Floats:
        arrivals = Arrivals(period, guess, day_start)
        found = learnt(times, nows, period, guess, day_start)
        for k, now in enumerate(nows.tolist()):
            for at in times[(times <= now) & (times > (nows[k - 1] if k else -1.0))].tolist():
                arrivals.arrive(at)
            saved = arrivals.to_arrays()
            off = saved._replace(counts=np.roll(saved.counts, 12, axis=1))
            found[k] = Arrivals.from_arrays(off).rounds_left(now)
        return found

    right, wrong = (rms(errors(one, "daily", WEEK, 2_000, 2.0, 20)) for one in (learnt, shifted))
    assert (wrong[1:] > 1.5 * right[1:]).all()


def test_without_a_guess() -> None:
    """Very many at first, and close to extrapolation after a few arrivals."""
    arrivals = Arrivals(30 * DAY)
    assert arrivals.rounds_left(0.0) == pytest.approx(1e5)
    for minute in range(20):
        arrivals.arrive(60.0 * minute)
    assert arrivals.rounds_left(60.0 * 19) == pytest.approx(30 * 24 * 60, rel=0.05)


def test_a_late_start_is_not_a_slow_one_but_later_silence_is() -> None:
    """The first arrival starts the clock; rounds_left sees silence without an arrival."""
    arrivals = Arrivals(30 * DAY, 500.0)
    for hour in range(48):
        arrivals.arrive(20 * DAY + hour * HOUR)
    assert arrivals.rounds_left(22 * DAY) == pytest.approx(8 * 24, rel=0.1)
    assert arrivals.rounds_left(26 * DAY) < 0.6 * 4 * 24


def test_bounds_of_the_rounds_left() -> None:
    """At least 1 before the end, 0 from then on, and asking changes nothing."""
    arrivals = Arrivals(DAY, 1.0)
    arrivals.arrive(0.0)
    before = arrivals.to_arrays()
    assert arrivals.rounds_left(DAY - 1e-3) == 1.0
    assert arrivals.rounds_left(DAY) == arrivals.rounds_left(9 * DAY) == 0.0
    assert all(np.array_equal(a, b) for a, b in zip(before, arrivals.to_arrays(), strict=True))


def test_steps_backwards_are_clamped_and_leaps_refused() -> None:
    """Up to an hour; whatever is refused changes nothing."""
    arrivals, other = Arrivals(DAY, 100.0), Arrivals(DAY, 100.0)
    for at, clamped in ((5_000.0, 5_000.0), (9_000.0, 9_000.0), (5_400.0, 9_000.0), (9_100.0, 9_100.0)):
        arrivals.arrive(at)
        other.arrive(clamped)
    assert arrivals.rounds_left(9_050.0) == other.rounds_left(9_100.0)
    before = arrivals.to_arrays()
    for at in (5_499.0, -1.0, DAY + 1.0, math.nan, math.inf):
        with pytest.raises(OutOfRangeError, match="at must"):
            arrivals.arrive(at)
    for at in (5_499.0, -1.0, math.nan, math.inf):
        with pytest.raises(OutOfRangeError, match="at must"):
            arrivals.rounds_left(at)
    assert all(np.array_equal(a, b) for a, b in zip(before, arrivals.to_arrays(), strict=True))


def test_arrivals_at_the_same_instant() -> None:
    """A batch at the very beginning is no division by zero."""
    arrivals = Arrivals(DAY, 100.0)
    for _ in range(50):
        arrivals.arrive(0.0)
        assert math.isfinite(arrivals.rounds_left(0.0))


def feed(arrivals: Arrivals, times: Floats) -> None:
    for at in times.tolist():
        arrivals.arrive(at)


def test_renewal_keeps_rate_and_shape() -> None:
    """In the second period the shape is known at once: at 5% the error is a fraction of that of extrapolation."""
    mine, theirs = [], []
    for trial in range(20):
        times, day_start = stream("weekly", 30 * DAY, 4_000, np.random.default_rng([trial, 9]))
        arrivals = Arrivals(15 * DAY, 500.0, day_start)
        feed(arrivals, times[times <= 15 * DAY])
        arrivals.renew(15 * DAY)
        second = times[times > 15 * DAY] - 15 * DAY
        now = 0.75 * DAY
        feed(arrivals, second[second <= now])
        left = (second > now).sum()
        mine.append(arrivals.rounds_left(now) / left - 1.0)
        theirs.append((second <= now).sum() / now * (15 * DAY - now) / left - 1.0)
    assert rms(np.array(mine)) < 0.1
    assert rms(np.array(theirs)) > 0.3


def test_renewal_follows_a_new_level() -> None:
    """The past counts as a week at most, so twice as many arrivals are seen; time between periods is not watched."""
    arrivals = Arrivals(30 * DAY, 1_000.0)
    feed(arrivals, np.arange(0.0, 30 * DAY, HOUR))
    arrivals.renew(50 * DAY, period=28 * DAY)
    assert arrivals.rounds_left(0.0) == pytest.approx(28 * 24, rel=0.02)
    feed(arrivals, np.arange(0.0, 14 * DAY, HOUR / 2))
    assert arrivals.rounds_left(14 * DAY) == pytest.approx(14 * 48 * (7 + 28) / 42, rel=0.05)


def test_renewal_keeps_the_phase() -> None:
    """A period that begins at another hour of the week than the last predicts the same hours."""
    arrivals = Arrivals(14 * DAY, 1_000.0)
    at = np.arange(0.0, 14 * DAY, 60.0)
    feed(arrivals, at[(at % DAY >= 9 * HOUR) & (at % DAY < 10 * HOUR)])  # from 9 to 10 o'clock only
    for start, busy in ((14 * DAY + 8 * HOUR, 1.5), (DAY - HOUR, 2.5)):  # at 8, then at 7 o'clock
        arrivals.renew(start, period=3 * HOUR)
        assert arrivals.rounds_left(0.0) > 5 * max(arrivals.rounds_left((busy + 0.5) * HOUR), 1.0)
        assert arrivals.rounds_left((busy - 0.5) * HOUR) == pytest.approx(arrivals.rounds_left(0.0), rel=0.3)


def test_renewal_before_any_arrival_keeps_the_guess() -> None:
    arrivals = Arrivals(DAY, 240.0)
    arrivals.renew(5 * DAY, period=2 * DAY)
    assert arrivals.rounds_left(DAY) == pytest.approx(240.0)


def test_a_saved_estimate_continues_bit_for_bit() -> None:
    """Saved at any point of a stream, with a renewal."""
    times, day_start = stream("weekly", 4 * DAY, 600, np.random.default_rng(2))
    first = Arrivals(4 * DAY, None, day_start)
    second = first
    for period in range(2):
        for at in times.tolist():
            second = Arrivals.from_arrays(second.to_arrays())
            first.arrive(at)
            second.arrive(at)
            assert first.rounds_left(at + 5.0) == second.rounds_left(at + 5.0)
        first.renew(4 * DAY + period)
        second.renew(4 * DAY + period)


Damage = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    "damage",
    [
        lambda a: a["counts"].__setitem__((3, 4), math.nan),
        lambda a: a["counts"].__setitem__((3, 4), -1.0),
        lambda a: a["counts"].__setitem__((3, 4), math.inf),
        lambda a: a["past"].__setitem__((0, 0), 1e12),
        lambda a: a["period"].__setitem__(0, 0.0),
        lambda a: a["period"].__setitem__(0, math.nan),
        lambda a: a["phase"].__setitem__(0, -1.0),
        lambda a: a["guess"].__setitem__(0, 0.0),
        lambda a: a["recent"].__setitem__(0, -1),
        lambda a: a["times"].__setitem__(0, 2 * DAY),
        lambda a: a["times"].__setitem__(slice(None), a["times"][::-1].copy()),
        lambda a: a["times"].__setitem__(1, a["times"][2] - 2 * HOUR),
        lambda a: a["times"].__setitem__(slice(None), -1.0),
        lambda a: a.update(counts=np.zeros((7, 25))),
        lambda a: a.update(counts=np.zeros((7, 24), dtype=np.float32)),
        lambda a: a.update(recent=np.zeros(1)),
        lambda a: a.update(times=None),
        lambda a: a.update(past=[["a"]]),
    ],
)
def test_damaged_arrays_are_refused(damage: Damage) -> None:
    """Shapes, types, ranges and what must fit; the arrays before the damage are accepted."""
    arrivals = Arrivals(DAY, 50.0, day_start=600.0)
    feed(arrivals, np.linspace(0.0, 0.5 * DAY, 30))
    saved = arrivals.to_arrays()
    check_state(saved, Arrivals(DAY).to_arrays(), rounds=30)
    Arrivals.from_arrays(saved)
    fields = saved._asdict()
    damage(fields)
    with pytest.raises(ValueError, match=r"must|nothing"):
        Arrivals.from_arrays(type(saved)(**fields))


def test_arguments_are_checked() -> None:
    for wrong in (0.0, -1.0, 2e10):
        with pytest.raises(OutOfRangeError, match="period must"):
            Arrivals(wrong)
    for wrong in (0.0, -1.0, 1e16):
        with pytest.raises(OutOfRangeError, match="expected must"):
            Arrivals(DAY, wrong)
    with pytest.raises(NotFiniteError, match="day_start"):
        Arrivals(DAY, 1.0, math.nan)
    with pytest.raises(ShapeError, match="period"):
        Arrivals("day")  # type: ignore[arg-type]
    arrivals = Arrivals(DAY, 10.0)
    arrivals.arrive(100.0)
    before = arrivals.to_arrays()
    with pytest.raises(OutOfRangeError, match="start must"):
        arrivals.renew(50.0)
    with pytest.raises(OutOfRangeError, match="period must"):
        arrivals.renew(DAY, period=-1.0)
    assert all(np.array_equal(a, b) for a, b in zip(before, arrivals.to_arrays(), strict=True))
