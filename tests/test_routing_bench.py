"""The routing benchmark, on requests that are made up: its own are in another package."""

from __future__ import annotations

import numpy as np
import pytest

from driftsack.bench import routing
from driftsack.core.seeding import generator
from driftsack.policies import LinearBwK


def requests(count: int = 600) -> routing.Requests:
    """Two sources: the first is answered by every model, the second by the dear ones only."""
    rng = np.random.default_rng(0)
    source = rng.integers(0, 2, count)
    rewards = np.where(source[:, None] == 0, 0.9, np.array([[0.2, 0.9, 0.95]]))
    dollars = np.array([[3e-5, 5e-4, 1.5e-2]]) * rng.uniform(0.5, 1.5, (count, 3))
    return routing.Requests(np.eye(2)[source], np.eye(2)[source], rewards, dollars)


def test_the_drifts_change_the_middle_third_only() -> None:
    given = requests()
    rewards, dollars = routing.drifted(given, "price")
    np.testing.assert_allclose(dollars[1, :, 2], given.dollars[:, 2] * 0.2 / 11.25)
    assert (dollars[[0, 2]] == given.dollars).all()
    assert (rewards == given.rewards).all()
    assert (routing.drifted(given, "quality")[0][1, :, 1] == 0.75).all()


@pytest.mark.parametrize("drift", routing.DRIFTS)
def test_a_router_with_contexts_beats_every_fixed_model_and_no_one_the_yardstick(drift: str) -> None:
    given, rate = requests(), 3e-4
    best, (rewards, dollars) = routing.yardstick(given, drift, rate), routing.drifted(given, drift)
    order = generator(1).permutation(len(given.rewards))
    told = {arm: routing.fixed_router(arm)(given, order, rewards, dollars, rate, drift, 0) for arm in (0, 1, 2, None)}
    router = routing.learner_router(LinearBwK(), safe=True)
    ours = router(given, order, rewards, dollars, rate, drift, 0)
    assert max(one.reward for one in told.values()) < ours.reward < best * 1.01
    assert ours.dollars <= rate * len(order)
