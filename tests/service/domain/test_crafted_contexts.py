"""Crafted contexts are refused by name and change nothing; ``python -m lab context-requests`` sends many more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import crafted_contexts
from tests.support.crafted_contexts import FAULTS, attack

REQUESTS = 1500


def test_every_crafted_context_is_refused_by_name() -> None:
    found = attack(REQUESTS)
    assert found.failures == []
    assert sum(found.refused.values()) == REQUESTS
    assert min(found.refused[fault.__name__] for fault in FAULTS) > REQUESTS / 14
    assert found.valid == 3


def without_check(encoder: Any, given: Any) -> None:
    """The planted fault: what Python's numbers allow is not refused."""


def test_a_context_that_is_accepted_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driftsack.service.domain.contexts._check_values", without_check)
    assert any("it was accepted" in failure for failure in attack(200).failures)


def test_a_change_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a refused request counts as a decision."""
    verdict = crafted_contexts.verdict

    def counting(campaign: Any, case: Any, now: Any) -> str:
        campaign.learner._engine.usual.counts[0] += 1.0
        return verdict(campaign, case, now)

    monkeypatch.setattr(crafted_contexts, "verdict", counting)
    assert any("the state changed" in failure for failure in attack(1).failures)
