"""Why a decision was made: estimates, bounds and closed arms by name, against sums by hand."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from driftsack.service import messages as ms
from driftsack.service.explain import Why, why
from driftsack.service.journal import START
from driftsack.service.owned import Owned, ServiceClock
from driftsack.service.recovery import encode_config
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner
from tests.campaigns import Desk, small

REWARD = {"small": 0.25, "large": 0.75}
COST = {"small": "0.02", "large": "0.04"}


def explained(folder: Path, policy: dict[str, Any], last: ms.Ask | None = None) -> Why:
    """What is known at the decision after thirty outcomes that are always the same."""
    desk = Desk(small(policy=policy, horizon=60, budget={"usd": "5"}, arms=["small", "large", "none"]))
    desk.do(ms.OfferArm(False), 2)
    for k in range(30):
        asked = desk.do(ms.Ask(open=[("small", "large")[k % 2]]))
        if not asked.skipped:
            desk.tell(asked.decision, COST[asked.arm], REWARD[asked.arm])
    number = desk.do(last or ms.Ask()).decision
    with closing(open_store(str(folder / "s.db"))) as store:
        owned = Owned("chat", 1, desk.campaign, START, ServiceClock(), grace=0)
        owned.forget_accounts()
        store.create(owned.collect(10**9)[0], encode_config(desk.campaign.config), Owner("test"))
        return why(store, "chat", number)


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ({"policy": "SlidingWindowUCB", "windows": [10_000, 10_000], "scale": 0.3}, "bounds"),
        ({"policy": "DiscountedUCB", "discount": 0.9999, "scale": 0.3}, "bounds"),
        ({"policy": "Adaptive"}, "draws"),
        ({"policy": "ThompsonBwK"}, "draws"),
    ],
)
def test_estimates_are_those_of_the_outcomes(tmp_path: Path, policy: dict[str, Any], kind: str) -> None:
    found = explained(tmp_path, policy)
    assert (found.same, found.planned_with) == (True, kind)
    assert [arm.closed for arm in found.arms] == [None, None, "retired"]
    assert (found.arms[2].reward, found.arms[2].planned_reward) in ((None, None), (0.5, None))  # the prior's mean
    shrunk = 0.2 if kind == "draws" else 1e-9  # a posterior is between the outcomes and its prior
    for arm in found.arms[:2]:
        assert arm.reward is not None
        assert arm.costs is not None
        assert arm.planned_reward is not None
        assert arm.planned_costs is not None
        assert arm.reward == pytest.approx(REWARD[arm.arm], abs=shrunk)
        assert arm.costs["usd"] == pytest.approx(float(COST[arm.arm]), abs=0.1 * shrunk)
        if kind == "bounds":  # optimistic: more reward and less cost than the means; so means in their place would fail
            assert arm.planned_reward > arm.reward
            assert arm.planned_costs["usd"] < arm.costs["usd"]
    assert sum(arm.probability for arm in found.arms) <= 1.0 + 1e-9


def test_an_arm_is_closed_for_a_reason(tmp_path: Path) -> None:
    found = explained(tmp_path, {"policy": "UniformRandom"}, ms.Ask(open=["large", "none"]))
    assert [arm.closed for arm in found.arms] == ["not asked for", None, "retired"]
    assert (found.arm, found.open, found.planned_with) == ("large", ["large"], None)
    assert all(arm.reward is arm.planned_reward is None for arm in found.arms)
