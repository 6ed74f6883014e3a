"""An example of each request body, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

from driftsack.service.domain import messages as ms

EXAMPLES: Final[dict[type, Any]] = {
    ms.NewCampaign: {
        "name": "chat",
        "config": {
            "arms": ["small", "large"],
            "horizon": 20000,
            "budget": {"usd": "200"},
            "cost_max": {"usd": {"small": "0.01", "large": "0.08"}},
        },
    },
    ms.Patch: {"state": "paused"},
    ms.Ask: {
        "open": ["small", "large"],
        "caps": {"usd": "0.03"},
        "lease": 600,
        "labels": {"user": "ann", "run": "r1"},
    },
    ms.Tell: {"reward": 1.0, "costs": {"usd": "0.002"}, "token": "5f2d9c0e7a1b4c3d8e6f0a12"},
    ms.Cancel: {"costs": {"usd": "0"}, "token": "5f2d9c0e7a1b4c3d8e6f0a12"},
    ms.Extend: {"lease": 600, "token": "5f2d9c0e7a1b4c3d8e6f0a12"},
    ms.Forfeit: {"token": "5f2d9c0e7a1b4c3d8e6f0a12"},
    ms.Exchange: {
        "tells": [
            {"decision": 7, "reward": 1.0, "costs": {"usd": "0.002"}, "token": "5f2d9c0e7a1b4c3d8e6f0a12"},
        ],
        "ask": 10,
    },
    ms.Observe: {"arm": "large", "reward": 0.7, "costs": {"usd": "0.02"}, "probability": 0.5},
    ms.Grant: {"amounts": {"usd": "25.50"}},
    ms.Charge: {"amounts": {"usd": "3.20"}},
    ms.AddArm: {"name": "medium", "cost_max": {"usd": "0.04"}},
    ms.OfferArm: {"offered": False},
    ms.NewKey: {"scopes": ["decide"], "campaigns": ["chat"], "days": 90, "note": "Ann", "labels": {"user": "ann"}},
}
