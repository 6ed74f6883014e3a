"""Campaigns with features: what is declared and sent, what the journal keeps, and that it is replayed bit for bit."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

import driftsack as ds
from driftsack.service.domain import contexts, journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Caller, Campaign
from driftsack.service.domain.config import Config
from driftsack.service.domain.exchanges import exchange, exchange_in_steps
from driftsack.service.domain.features import Features, bytes_of, vector_of
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from tests.support.campaigns import Desk, small
from tests.support.contextual_campaigns import FEATURES, Traffic, seeing

WHOLE = {"tokens": 10, "kind": "chat", "prompt": [0.5] * 6}


def test_the_policy_follows_from_the_features_and_is_written_into_the_first_event() -> None:
    for config, name in ((seeing(), "LinearBwK"), (small(policy=None), "Adaptive")):
        desk = Desk(config)
        (opened,) = desk.campaign.take()
        assert opened.config.policy == {"policy": name}
        assert type(desk.campaign.learner.policy).__name__ == name
    # Journals of earlier releases have no policy where it was the default.
    data = msgspec.msgpack.encode(small(policy=None))
    assert b"policy" not in data
    assert Config.from_bytes(data).policy == {"policy": "Adaptive"}
    # The features are those of the library's encoder.
    assert seeing().problem().encoder == ds.Encoder(**{**FEATURES, "optional": ["age", "tier"]})


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({}, "at least one"),
        ({"numbers": ["a", "a"]}, "features: .*more than once"),
        ({"numbers": ["a"], "optional": ["b"]}, "optional must be one of"),
        ({"numbers": ["a"], "project": 3}, "project needs embeddings"),
        ({"embeddings": {"e": 4096}}, "at most 4096 features|numbers for 4096 features; project embeddings to fewer"),
        ({"embeddings": {"e": 700}}, "numbers for 700 features; project embeddings to fewer"),
    ],
)
def test_features_that_cannot_be_are_refused(features: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        Desk(seeing(features=Features(**features)))


def test_the_journal_has_the_rounded_vector_and_not_the_context() -> None:
    desk, traffic = Desk(seeing()), Traffic()
    desk.campaign.take()
    row = {**traffic.context(), "tokens": 0.1, "age": 30.1}
    found = desk.do(ms.Ask(context=row))
    (event,) = desk.campaign.take()
    encoder = desk.campaign.problem.encoder
    assert encoder is not None
    assert vector_of(event.context).tolist() == encoder.encode(row).tolist()
    assert vector_of(event.context)[0] == np.float32(0.1)
    decision = desk.campaign.decisions[desk.campaign.record(found.decision).round]
    assert decision.context is not None
    assert decision.context.tolist() == vector_of(event.context).tolist()
    assert b"chat" not in journal.encode([event])
    # 32 features cost 128 bytes, and the name of the field.
    assert len(journal.encode([msgspec.structs.replace(event, context=bytes_of(np.zeros(32)))])) <= 160 + len(
        journal.encode([msgspec.structs.replace(event, context=None)])
    )


def run(desk: Desk, traffic: Traffic, count: int) -> list[Any]:
    """Ask and tell some requests, some of them late, and return the events."""
    waiting: list[tuple[int, dict[str, Any], str]] = []
    for k in range(count):
        row = traffic.context()
        found = desk.do(ms.Ask(context=row, lease=60))
        if not found.skipped:
            waiting.append((found.decision, row, found.arm))
        while len(waiting) > 5:
            number, context, arm = waiting.pop(0)
            reward, cost = traffic.outcome(context, arm)
            desk.tell(number, cost, reward)
        if k % 40 == 39:
            desk.wait(70)  # those that wait expire, and are told late
    return desk.campaign.take()


def test_a_replay_and_a_snapshot_continue_bit_for_bit() -> None:
    desk = Desk(seeing())
    events = [*desk.campaign.take(), *run(desk, Traffic(1), 200)]
    again = Campaign.new(seeing().completed())
    for event in journal.decode(journal.encode(events)):
        again.apply(event)
    assert again.book.divergences == 0
    assert desk.campaign.book.told > 100
    assert again.learner.state_hash() == desk.campaign.learner.state_hash()
    loaded = read_snapshot(seeing().completed(), write_snapshot(desk.campaign))
    assert (loaded.book, loaded.learner.state_hash()) == (again.book, again.learner.state_hash())
    row = {**Traffic(2).context(), "age": None}
    desk.campaign.take()
    for campaign in (desk.campaign, again, loaded):
        campaign.handle(ms.Ask(context=row), desk.now)
    assert (
        len({msgspec.msgpack.encode(campaign.take()[-1].context) for campaign in (desk.campaign, again, loaded)}) == 1
    )


def test_a_replay_with_other_vectors_is_noticed() -> None:
    """The planted fault: the journal keeps a number that differs in its last bit from the one that the learner saw."""
    desk = Desk(seeing())
    events = [*desk.campaign.take(), *run(desk, Traffic(1), 60)]
    again = Campaign.new(seeing().completed())
    for event in events:
        if isinstance(event, journal.Asked) and event.number == 40:
            vector = np.frombuffer(event.context or b"", "<f4").copy()
            vector[0] = np.nextafter(vector[0], np.float32(0.0))
            event.context = vector.tobytes()
        again.apply(event)
    assert again.learner.state_hash() != desk.campaign.learner.state_hash()


def test_an_exchange_decides_as_single_requests() -> None:
    one, many, traffic = Desk(seeing()), Desk(seeing()), Traffic(3)
    for _ in range(20):
        rows = [traffic.context() for _ in range(5)]
        single = [one.do(ms.Ask(context=row)) for row in rows]
        batch = exchange(many.campaign, ms.Exchange(ask=5, contexts=rows), many.now, ms_caller())
        assert [found.arm for found in batch.decisions] == [found.arm for found in single]
        tells = [
            (found.decision, *traffic.outcome(row, found.arm))
            for found, row in zip(single, rows, strict=True)
            if found.arm
        ]
        for number, reward, cost in tells:
            one.tell(number, cost, reward)
        told = [ms.TellOne(decision=n, reward=reward, costs={"usd": cost}) for n, reward, cost in tells]
        exchange(many.campaign, ms.Exchange(tells=told), many.now, ms_caller())
    assert many.campaign.learner.state_hash() == one.campaign.learner.state_hash()


def test_an_exchange_pauses_after_each_context() -> None:
    """Contexts may be large, so that a check of a thousand of them would keep others waiting."""
    desk, traffic = Desk(seeing()), Traffic(3)
    rows = [traffic.context() for _ in range(5)]
    steps = exchange_in_steps(desk.campaign, ms.Exchange(ask=5, contexts=rows), lambda: desk.now, Caller("k", b"one"))
    for _ in rows:
        next(steps)
        assert desk.campaign.book.number == 0
    assert len(list(steps)) == 5
    # The key is used by another request in such a pause: nothing happens.
    steps = exchange_in_steps(desk.campaign, ms.Exchange(ask=5, contexts=rows), lambda: desk.now, Caller("l", b"one"))
    next(steps)
    desk.do(ms.Ask(context=rows[0]), caller=Caller("l", b"two"))
    before = desk.campaign.book.number
    assert before
    with pytest.raises(Refusal) as refusal:
        list(steps)
    assert refusal.value.kind == "key-reused"
    assert desk.campaign.book.number == before


def ms_caller() -> Any:
    from driftsack.service.domain.campaign import NOBODY

    return NOBODY


@pytest.mark.parametrize(
    ("many", "message"),
    [
        (ms.Exchange(ask=2, contexts=[WHOLE]), "one entry for each of 2 requests, got 1"),
        (ms.Exchange(ask=1, contexts=[WHOLE], terms=ms.Ask(context=WHOLE)), "either contexts, or one context"),
        (ms.Exchange(ask=2, contexts=[WHOLE, {**WHOLE, "kind": 0.5}]), "contexts/1: context: 'kind' must be a string"),
        (ms.Exchange(ask=2), "'tokens', 'kind', 'prompt' missing"),
    ],
)
def test_an_exchange_with_a_wrong_context_is_refused_as_a_whole(many: ms.Exchange, message: str) -> None:
    desk = Desk(seeing())
    number = desk.ask(context=WHOLE).decision
    desk.campaign.take()
    before = write_snapshot(desk.campaign)
    outcome = ms.TellOne(decision=number, reward=1.0, costs={"usd": "0.01"})
    with pytest.raises(Refusal, match=message):
        exchange(desk.campaign, msgspec.structs.replace(many, tells=[outcome]), desk.now, ms_caller())
    assert write_snapshot(desk.campaign) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": "many"}, "'tokens' must be one number, got 'many'"),
        ({"tokens": None}, "'tokens' must be one number, got None"),
        ({"tokens": True}, "'tokens' must not be true or false"),
        ({"tokens": 1e308}, "'tokens' must lie within 1e[+]09 of 0, got 1e[+]308"),
        ({"tokens": -1e308}, "'tokens' must lie within"),
        ({"tokens": 10**400}, "'tokens' must be one number"),
        ({"tokens": float("nan")}, "'tokens' must be finite"),
        ({"tokens": {"a": 1}}, "'tokens' must be one number"),
        ({"kind": 0.5}, "'kind' must be a string or an integer"),
        ({"kind": None}, "'kind' must be a string or an integer, got None"),
        ({"kind": ["chat"]}, "'kind' must be a string or an integer"),
        ({"kind": "x" * 201}, "'kind' may have 200 characters, got 201"),
        ({"prompt": [0.5] * 5}, "'prompt' must be numbers of shape"),
        ({"prompt": [0.5] * 5 + [True]}, "'prompt' must not have true or false"),
        ({"prompt": [0.5] * 5 + [None]}, "'prompt' must be finite"),
        ({"prompt": [1e300] * 6}, "'prompt' must lie within"),
        ({"prompt": [[0.5]] * 6}, "'prompt' must be numbers"),
        ({"prompt": "text"}, "'prompt' must be numbers"),
        ({"more": 1}, "'more' unknown"),
        ({f"f{k}": 1 for k in range(10_000)}, "10,003 features, and the campaign declares 5; 'f0' is not one"),
    ],
)
def test_a_wrong_context_is_refused_by_name_and_changes_nothing(changes: dict[str, Any], message: str) -> None:
    desk = Desk(seeing())
    before = write_snapshot(desk.campaign)
    with pytest.raises(Refusal, match=message) as error:
        desk.do(ms.Ask(context={**WHOLE, **changes}))
    assert (error.value.kind, error.value.status) == ("invalid", 422)
    assert (error.value.pointer or "").startswith("/context")
    assert write_snapshot(desk.campaign) == before
    assert desk.do(ms.Ask(context=WHOLE)).decision == 1


def test_a_missing_context_is_one_without_features() -> None:
    with pytest.raises(Refusal, match="'tokens', 'kind', 'prompt' missing"):
        Desk(seeing()).do(ms.Ask())
    free = Desk(seeing(features=Features(numbers=["age"], optional=["age"])))
    assert free.do(ms.Ask()).decision == 1
    with pytest.raises(Refusal, match="the campaign has no features"):
        Desk().do(ms.Ask(context={"age": 1}))
    assert contexts.encoded(Desk().campaign, None) is None


def test_a_watching_campaign_learns_at_the_contexts_and_says_what_it_would_choose_there() -> None:
    desk, traffic = Desk(seeing(watch=True)), Traffic(5)
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(400):
        row, arm = traffic.context(), str(rng.choice(["small", "large"]))
        reward, cost = traffic.outcome(row, arm)
        desk.do(ms.Observe(arm=arm, reward=reward, costs={"usd": cost}, probability=0.5, context=row))
        rows.append(row)
    studied = [event for event in desk.campaign.take() if isinstance(event, journal.Studied)]
    assert len(studied) == 12
    assert all(len(event.mixes or []) == 32 for event in studied)
    late = [mix for event in studied[6:] for mix in event.mixes or []]
    kinds = [row["kind"] for row in rows[6 * 32 : 12 * 32]]
    large = {
        kind: np.mean([mix[1] for mix, own in zip(late, kinds, strict=True) if own == kind])
        for kind in ("chat", "code")
    }
    assert large["code"] > large["chat"] + 0.3
    with pytest.raises(Refusal, match="missing"):
        desk.do(ms.Observe(arm="small", reward=1.0, costs={"usd": "0.01"}))
    desk.do(ms.Patch("active"))
    assert desk.do(ms.Ask(context=WHOLE)).decision == 1
