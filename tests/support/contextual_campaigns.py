"""Campaigns with features, and requests for them, for the tests of the service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftsack.service.domain import messages as ms
from driftsack.service.domain.config import Config
from driftsack.service.domain.features import Features
from driftsack.service.store.sqlite import SQLiteStore
from tests.support.campaigns import small
from tests.support.journals import Written

FEATURES: dict[str, Any] = {
    "numbers": ["tokens", "age"],
    "categories": {"kind": ["chat", "code"], "tier": ["free", 7]},
    "embeddings": {"prompt": 6},
    "project": 3,
    "optional": ["age", "tier"],
}


def seeing(**settings: Any) -> Config:
    """Settings with features and the default policy."""
    given: dict[str, Any] = {"features": Features(**FEATURES), "policy": None, "budget": {"usd": "100"}}
    return small(**{**given, "horizon": 2000, **settings})


class Traffic:
    """Requests with features, of which optional ones are sometimes missing, and outcomes that depend on the kind."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def context(self) -> dict[str, Any]:
        """The features of the next request."""
        rng = self._rng
        found: dict[str, Any] = {
            "tokens": float(rng.lognormal(5.0, 1.0)),
            "kind": str(rng.choice(["chat", "code", "poem"], p=[0.6, 0.3, 0.1])),
            "prompt": rng.standard_normal(6).tolist(),
            "age": float(rng.integers(1, 90)),
            "tier": "free" if rng.random() < 0.5 else 7,
        }
        for name in ("age", "tier"):
            if rng.random() < 0.2:
                found.pop(name) if rng.random() < 0.5 else found.update({name: None})
        return found

    def outcome(self, context: dict[str, Any], arm: str) -> tuple[float, str]:
        """The reward and the cost in dollars of an arm."""
        good = 0.9 if arm == "large" or context["kind"] == "chat" else 0.1
        return float(self._rng.random() < good), "0.09" if arm == "large" else "0.01"


def played(path: Path, rounds: int, config: Config | None = None, seed: int = 0) -> Written:
    """Write the journal of a campaign with features, in which code needs the large arm."""
    traffic = Traffic(seed)
    one = Written(SQLiteStore(path), "chat", config or seeing())
    for _ in range(rounds):
        row = traffic.context()
        found = one.owned.campaign.handle(ms.Ask(context=row), one.now)
        if not found.skipped:
            reward, cost = traffic.outcome(row, found.arm)
            one.owned.campaign.handle(ms.Tell(reward, {"usd": cost}), one.now, number=found.decision)
        one.wait(1000)
    one.commit()
    return one
