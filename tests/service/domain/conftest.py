"""Tokens of decisions that do not depend on chance, so that campaigns with the same history can be compared."""

from __future__ import annotations

from types import SimpleNamespace

import pytest


@pytest.fixture(autouse=True)
def same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every decision the same token."""
    same = SimpleNamespace(token_hex=lambda size: "0" * (2 * size))
    monkeypatch.setattr("driftsack.service.domain.effects.secrets", same)
