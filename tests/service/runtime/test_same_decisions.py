"""One stream of requests with features is decided alike by a learner, by campaigns on both stores, and by exchanges.

The campaign on PostgreSQL changes its owner in the middle. Arms, mixes, prices and the final state are the same to the
last bit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.encoder import Encoder
from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Campaign
from driftsack.service.runtime.keeper import Keeper
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner
from tests.service.runtime.test_owner import keeping, until
from tests.support.contextual_campaigns import Traffic, seeing
from tests.support.local_postgres import LocalPostgres

BLOCKS, SIZE = 24, 5
CONFIG = seeing(budget={"usd": "10"}, horizon=200)  # the stream ends before the budget does
Row = dict[str, Any]


class Request(NamedTuple):
    """A request, and the chance by which its outcome is decided."""

    context: Row
    chance: float

    def outcome(self, arm: str) -> tuple[float, float]:
        """Reward and cost of an arm."""
        good = 0.9 if arm == "large" or self.context["kind"] == "chat" else 0.1
        return float(self.chance < good), 0.09 if arm == "large" else 0.01


def stream() -> list[list[Request]]:
    """Blocks of requests; the outcomes of a block are told before the next block is asked for."""
    traffic, rng = Traffic(7), np.random.default_rng(7)
    return [[Request(traffic.context(), float(rng.random())) for _ in range(SIZE)] for _ in range(BLOCKS)]


class Trace(NamedTuple):
    """What was decided, and the state at the end."""

    made: list[tuple[str | None, list[float], list[float]]]
    state_hash: str


def of_learner() -> Trace:
    """The decisions of a learner in this process."""
    problem = CONFIG.problem()
    learner = CONFIG.recipe(problem).start(problem, seed=CONFIG.seed, safe=True)
    made: list[tuple[str | None, list[float], list[float]]] = []
    waiting: list[tuple[Request, ds.Decision]] = []
    for block in stream():
        for request, decision in waiting:
            if not decision.skipped:
                reward, cost = request.outcome(decision.name)
                learner.tell(decision, reward, {"usd": cost})
        waiting = [(request, learner.ask(context=request.context)) for request in block]
        made += [(d.name, [] if d.skipped else d.mix.tolist(), d.prices.tolist()) for _, d in waiting]
    return Trace(made, learner.state_hash())


def shown(campaign: Campaign, found: ms.Decided) -> tuple[str | None, list[float], list[float]]:
    """Arm, mix and prices of the latest decision of a campaign."""
    mix = [] if found.skipped else campaign.decisions[campaign.record(found.decision or 0).round].mix.tolist()
    return found.arm, mix, list(campaign.prices or [])


def tells_of(waiting: list[tuple[Request, ms.Decided]]) -> list[ms.TellOne]:
    """The outcomes of the decisions that were not skipped."""
    found = []
    for request, decided in waiting:
        if decided.arm is not None and decided.decision is not None:
            reward, cost = request.outcome(decided.arm)
            found.append(ms.TellOne(decision=decided.decision, reward=reward, costs={"usd": str(cost)}))
    return found


async def one_by_one(keeper: Keeper, switch: Callable[[], Awaitable[Keeper]] | None = None) -> Trace:
    """The decisions of a campaign; ``switch`` returns another owner in the middle."""
    made, waiting = [], list[tuple[Request, ms.Decided]]()
    for k, block in enumerate(stream()):
        if switch is not None and k == BLOCKS // 2:
            keeper = await switch()
        for one in tells_of(waiting):
            await keeper.submit("chat", ms.Tell(one.reward, one.costs), number=one.decision)
        waiting = []
        for request in block:
            found = await keeper.submit("chat", ms.Ask(context=request.context))
            made.append(shown(keeper.owned["chat"].campaign, found))
            waiting.append((request, found))
    return Trace(made, keeper.owned["chat"].campaign.learner.state_hash())


async def in_exchanges(keeper: Keeper) -> Trace:
    """The decisions of a campaign that is asked for blocks; the prices are those after each block."""
    made, waiting = [], list[tuple[Request, ms.Decided]]()
    for block in stream():
        many = ms.Exchange(tells=tells_of(waiting), ask=SIZE, contexts=[request.context for request in block])
        found = (await keeper.exchange("chat", many)).decisions
        campaign = keeper.owned["chat"].campaign
        made += [shown(campaign, each) for each in found]
        waiting = list(zip(block, found, strict=True))
    return Trace(made, keeper.owned["chat"].campaign.learner.state_hash())


def on_sqlite(path: Path, play: Callable[[Keeper], Awaitable[Trace]]) -> Trace:
    """Play on a new campaign in a file."""

    async def run() -> Trace:
        with closing(open_store(str(path))) as store:
            async with keeping(store) as keeper:
                await keeper.create("chat", CONFIG)
                return await play(keeper)

    return asyncio.run(run())


def on_postgres(address: str) -> Trace:
    """Play on a new campaign whose owner falls asleep in the middle, so that a replica takes over."""

    async def run() -> Trace:
        with closing(open_store(address)) as mine, closing(open_store(address)) as theirs:
            async with keeping(mine) as first, keeping(theirs, Owner("other", "http://other", 0.6)) as second:
                await first.create("chat", CONFIG)

                async def switch() -> Keeper:
                    next(task for task in first.tasks if "_lease_renewal_loop" in repr(task)).cancel()
                    await until(lambda: "chat" in second.owned, 30.0)
                    return second

                return await one_by_one(first, switch)

    return asyncio.run(run())


def test_the_same_stream_is_decided_alike(tmp_path: Path, postgres: LocalPostgres) -> None:
    expected = of_learner()
    arms = [arm for arm, _, _ in expected.made]
    assert min(arms.count("small"), arms.count("large")) > 15
    assert on_sqlite(tmp_path / "one.db", one_by_one) == expected
    assert on_postgres(postgres.new_database()) == expected
    exchanged = on_sqlite(tmp_path / "many.db", in_exchanges)
    assert exchanged.state_hash == expected.state_hash
    assert [made[:2] for made in exchanged.made] == [made[:2] for made in expected.made]
    assert exchanged.made[SIZE - 1 :: SIZE] == expected.made[SIZE - 1 :: SIZE]  # prices are those after a block


def test_a_vector_that_is_not_rounded_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the learner in this process sees more digits than the journal keeps."""
    expected = on_sqlite(tmp_path / "one.db", one_by_one)
    rounded = Encoder.encode

    def precise(self: Encoder, context: Any, means: Any = None) -> Any:
        found = rounded(self, context, means)
        found[0] = context["tokens"]
        return found

    monkeypatch.setattr(Encoder, "encode", precise)
    assert of_learner().state_hash != expected.state_hash
