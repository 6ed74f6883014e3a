"""``driftsack proxy`` that asks and tells nothing: the yardstick for what deciding costs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from driftsack.client import RemoteDecision
from driftsack.service.gateways.proxy.clients import ClientPool, ServiceAsk
from driftsack.service.gateways.proxy.outcomes import OutcomeTeller
from driftsack.service.gateways.proxy.server import serve_proxy
from driftsack.service.gateways.proxy.settings import read_settings


async def decide_here(self: ClientPool, key: str, campaign: str, terms: ServiceAsk) -> RemoteDecision:
    """Choose the first arm."""
    reserved = {name: str(amount) for name, amount in terms.caps.items()}
    return RemoteDecision(1, terms.arms[0], skipped=False, reserved=reserved)


def forget(self: OutcomeTeller, client: Any, decision: Any, outcome: Any, seconds: float) -> None:
    """Tell nothing."""


if __name__ == "__main__":
    ClientPool.ask = decide_here  # type: ignore[method-assign]
    OutcomeTeller.settle = forget  # type: ignore[method-assign]
    serve_proxy(read_settings(Path(sys.argv[1])), lambda address: None)
