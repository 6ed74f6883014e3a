"""If an upstream fails, other arms are asked, each with its own reservation; circuits keep dead upstreams out."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import openai
import pytest

from driftsack.service.gateways.proxy.breaker import FAILURES, CircuitBreaker
from tests.support.gateways import HELLO, Gate, gate
from tests.support.hostile_upstream import HostileUpstream

BAD = ("fails", "dead-key", "html")


def test_another_arm_answers_and_each_attempt_is_learnt(tmp_path: Any) -> None:
    with gate(str(tmp_path), ["fine", "fails"], rest=0.0001) as found:
        for stream in (False, True) * 10:
            answer = found.complete("driftsack", stream=stream)
            assert list(answer) if stream else answer.choices
        told, reward, spent = found.told()
        assert reward == 20.0
        assert told == len(found.upstream.seen) > 20
        assert spent == found.upstream.charged()


def test_the_number_of_attempts_is_limited(tmp_path: Any) -> None:
    with gate(str(tmp_path), BAD, attempts=2, rest=0.0001) as found:
        with pytest.raises(openai.InternalServerError):
            found.complete("driftsack")
        assert found.told().told == len(found.upstream.seen) == 2


def test_fallback_can_be_switched_off(tmp_path: Any) -> None:
    with gate(str(tmp_path), BAD, fallback=False, rest=0.0001) as found:
        with pytest.raises(openai.InternalServerError):
            found.complete("driftsack")
        assert found.told().told == len(found.upstream.seen) == 1


def test_a_fallback_never_passes_the_budget(tmp_path: Any) -> None:
    """The failed call is charged at its worst case, and the money for the second is not there."""
    campaign = {"budget": {"usd": "0.0009"}}
    with gate(str(tmp_path), ["html", "fine"], campaign, rest=0.0001) as found:
        statuses = [found.post("/v1/chat/completions", {**BODY, "model": "driftsack"})[0] for _ in range(6)]
        assert statuses[-1] == 402
        assert found.told().spent <= Decimal("0.0009")


BODY = {"messages": HELLO, "max_tokens": 50}


def test_an_upstream_that_hangs_leaves_time_for_another(tmp_path: Any) -> None:
    with gate(str(tmp_path), ["fine", "hangs"], attempt_seconds=0.3, rest=0.0001) as found:
        for _ in range(6):
            assert found.complete("driftsack").choices
        told, reward, spent = found.told()
        assert reward == 6.0
        assert told == len(found.upstream.seen)
        assert spent >= found.upstream.charged()


def seen(found: Gate, model: str) -> int:
    return sum(body["model"] == model for _, _, body in found.upstream.seen)


def test_a_dead_key_is_not_used_again_until_it_is_probed(tmp_path: Any) -> None:
    with gate(str(tmp_path), ["fine", "dead-key"], rest=1000.0) as found:
        for _ in range(20):
            assert found.complete("driftsack").choices
        assert seen(found, "dead-key") == 1
        with pytest.raises(openai.InternalServerError, match="tried again soon") as caught:
            found.complete("dead-key")
        assert caught.value.status_code == 503
        assert int(caught.value.response.headers["retry-after"]) > 900
        text = found.openai(base_url=found.url).get("/metrics", cast_to=str)
        assert 'driftsack_proxy_resting{arm="dead-key"} 1.0' in text
        assert found.told().told == 21


def test_an_upstream_that_works_again_is_used_again(tmp_path: Any) -> None:
    hostile = HostileUpstream(most=20)
    hostile.behaviour = lambda model: "dead-key"
    with gate(str(tmp_path), ["fine"], rest=0.0001, hostile=hostile) as found:
        with pytest.raises(openai.InternalServerError):
            found.complete("fine")
        hostile.behaviour = lambda model: "fine"
        while found.post("/v1/chat/completions", {**BODY, "model": "fine"})[0] == 503:
            pass
        assert found.complete("fine").choices


class Time:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_circuit_opens_after_failures_in_a_row_and_lets_one_probe_pass() -> None:
    clock = Time()
    breaker = CircuitBreaker(10.0, probe=60.0, clock=clock)
    for _ in range(FAILURES - 1):
        breaker.failed("a")
    breaker.succeeded("a")
    for _ in range(FAILURES):
        assert breaker.allowed(["a", "b"]) == ["a", "b"]
        breaker.failed("a")
    assert breaker.allowed(["a", "b"]) == ["b"]
    assert breaker.waits(["a"]) == 10.0
    # One probe at a time; a second failure doubles the rest.
    clock.now = 10.0
    assert breaker.allows("a")
    breaker.begin("a")
    assert not breaker.allows("a")
    breaker.failed("a")
    clock.now = 29.0
    assert not breaker.allows("a")
    clock.now = 30.0
    assert breaker.allows("a")
    # A probe that never ends does not keep the arm out for ever, and one that says nothing makes way at once.
    breaker.begin("a")
    clock.now = 90.0
    assert breaker.allows("a")
    breaker.begin("a")
    breaker.leave("a")
    assert breaker.allows("a")
    breaker.succeeded("a")
    assert breaker.resting() == []


def test_rests_grow_up_to_ten_times_the_first() -> None:
    clock = Time()
    breaker = CircuitBreaker(10.0, clock=clock)
    for _ in range(50):
        breaker.failed("a", fatal=True)
        clock.now += 1000.0
    breaker.failed("a", fatal=True)
    assert breaker.waits(["a"]) == 100.0
    breaker.succeeded("a")
    breaker.failed("a", rest=30.0)
    assert breaker.waits(["a"]) == 30.0
