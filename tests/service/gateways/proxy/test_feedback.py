"""Feedback by id: the cost is charged at once, and the reward comes later, or by default."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import pytest

from tests.support.gateways import HELLO, Gate, Told, gate


def answered(found: Gate, model: str = "fine") -> str:
    """Ask for an answer; return its id once its cost is charged."""
    raw = found.openai().chat.completions.with_raw_response.create(model=model, messages=HELLO, max_tokens=9)
    end = time.monotonic() + 10
    while state(found)[1] != found.upstream.charged() and time.monotonic() < end:
        time.sleep(0.02)
    return str(raw.headers["x-driftsack-decision"])


def state(found: Gate) -> tuple[Told, Decimal, int]:
    """Return outcomes and rewards, the spending, and the number of decisions without a reward."""
    _, campaign = found.live.call("GET", "/v1/campaigns/chat")
    _, budgets = found.live.call("GET", "/v1/campaigns/chat/budgets")
    spent = Decimal(budgets["budgets"][0]["spent"])
    return Told(campaign["told"], campaign["reward"], spent), spent, campaign["pending"]


def score(found: Gate, name: Any, value: Any, key: str | None = None) -> tuple[int, Any]:
    status, _, body = found.post("/v1/feedback", {"id": name, "score": value}, key)
    return status, json.loads(body)


def test_a_reward_comes_after_its_cost(tmp_path: Any) -> None:
    with gate(str(tmp_path), ["fine", "fails"], feedback=3600.0, feedback_default=0.5) as found:
        name = answered(found)
        told, spent, pending = state(found)
        assert (told.told, pending, spent) == (0, 1, found.upstream.charged())
        assert score(found, name, 0.75) == (200, {"ok": True})
        assert score(found, name, 0.75) == (200, {"ok": True})  # the same again
        assert score(found, name, 0.25)[0] == 409
        assert found.told()[:2] == (1, 0.75)
        # A thumb is a reward, too; a failure has its reward at once.
        assert score(found, answered(found), True)[0] == 200
        assert found.told()[:2] == (2, 1.75)
        assert found.post("/v1/chat/completions", {"model": "fails", "messages": HELLO})[0] == 502
        assert found.told()[:2] == (3, 1.75)


def test_without_feedback_the_default_is_told(tmp_path: Any) -> None:
    with gate(str(tmp_path), ["fine"], feedback=0.3, feedback_default=0.5) as found:
        name = answered(found)
        assert found.told()[:2] == (1, 0.5)
        assert score(found, name, 1.0)[0] == 409


def test_without_a_default_nothing_is_learnt_and_nothing_more_is_charged(tmp_path: Any) -> None:
    with gate(str(tmp_path), ["fine"], feedback=0.3) as found:
        name = answered(found)
        assert found.told() == Told(0, 0.0, found.upstream.charged())
        assert score(found, name, 1.0)[0] == 200  # late, and still welcome
        assert found.told() == Told(1, 1.0, found.upstream.charged())


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with gate(str(tmp_path_factory.mktemp("feedback")), ["fine"]) as found:
        yield found


@pytest.mark.parametrize(
    "name", [None, 7, "", "chat", "chat/x/y", "chat/-1/y", "chat/1/x/y", f"chat/{10**20}/y", "\ud83d/1/y"]
)
def test_an_id_must_be_that_of_an_answer(one: Gate, name: Any) -> None:
    assert score(one, name, 1.0)[0] == 400


@pytest.mark.parametrize("value", [None, "good", [], 1e300, pytest.param(10**400, id="huge"), 2e15])
def test_a_score_must_be_a_number(one: Gate, value: Any) -> None:
    assert score(one, "chat/1/x", value)[0] == 400


def test_another_token_or_campaign_settles_nothing(one: Gate) -> None:
    assert score(one, "nowhere/1/x", 1.0)[0] == 404
    assert score(one, "chat/99/x", 1.0)[0] == 404
    name = answered(one)
    assert score(one, name[:-4] + "0000", 1.0)[0] == 409
    _, created = one.live.call("POST", "/v1/keys", {"scopes": ["decide"], "campaigns": ["other"]})
    assert score(one, name, 1.0, created["key"])[0] == 403
