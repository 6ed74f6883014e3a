"""The level of the drift alarms: a short form of ``python -m lab alarm-level``, with faults that it detects."""

from __future__ import annotations

import pytest

from driftsack.numerics.glr import glr_detects
from driftsack.service.projections import drift, segments
from driftsack.service.projections.drift import LEVEL
from lab.service import context_alarms
from lab.service.alarm_level import DRIFTS, false_alarms, power


def test_false_alarms_keep_their_budget() -> None:
    """Weeks in which nothing changes; more than three false alarms in twelve would be a chance of 2% at the budget."""
    fresh = range(4_000_000, 4_000_012)
    assert sum(false_alarms(seed, LEVEL) for seed in fresh) <= 3
    assert sum(false_alarms(seed, 1.0) for seed in fresh[:4]) > 3  # a level that is too large is noticed


def test_an_outage_that_a_policy_leaves_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    outage, fresh = DRIFTS[0]._replace(first=2005), range(4_000_000, 4_000_040)
    found, _ = power(outage, LEVEL, fresh)
    assert found.mean > 0.5
    monkeypatch.setattr(drift, "detects", lambda glr, _, share: glr_detects(glr, 0, share))
    dyadic, _ = power(outage, LEVEL, fresh)
    assert dyadic.mean < found.mean - 3 * found.error  # dyadic splits alone are too coarse


def test_requests_that_do_not_change_raise_no_alarm_and_a_change_of_their_mix_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted fault: a level of 10 for each of the ten streams."""
    fresh = range(7_000_000, 7_000_004)
    assert sum(context_alarms.false_alarms(seed) for seed in fresh) == 0
    share, _ = context_alarms.found(context_alarms.CHANGES[0], range(7_000_000, 7_000_010))
    assert share.mean >= 0.8
    monkeypatch.setattr(segments, "LEVEL", 100.0)
    assert sum(context_alarms.false_alarms(seed) for seed in fresh[:2]) > 0
