"""Requests generated from the OpenAPI document always get a documented response."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.stateful import run_state_machine_as_test

from driftsack.service.domain import messages as ms
from driftsack.service.domain import plans
from driftsack.service.domain.campaign import Campaign
from driftsack.service.web.api import handlers, routes
from driftsack.service.web.api.context import Context
from tests.support.campaigns import small
from tests.support.live_service import Live, serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.core.failures import FailureGroup


def attack(live: Live, examples: int, only: str = "") -> int:
    """Send generated requests to every route, check each answer against the document, and return their number."""
    schema = schemathesis.openapi.from_url(f"{live.url}/openapi.json")
    chosen = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    excluded = schemathesis.checks.CHECKS.get_by_names(EXCLUDED)
    sent = 0
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]
        if only not in operation.path:
            continue

        def check(case: Any) -> None:
            nonlocal sent
            sent += 1
            case.path_parameters = {name: LIVELY.get(name, value) for name, value in case.path_parameters.items()}
            answer = case.call(headers={"Authorization": f"Bearer {live.key}"})
            case.validate_response(answer, excluded_checks=excluded)

        chosen(given(case=operation.as_strategy())(check))()
    return sent


def attack_in_sequences(live: Live, examples: int) -> Counter[tuple[str, int]]:
    """Open campaigns, ask, and use the returned decisions, following the links of the document.

    Returns:
        How often each operation was answered with each status.
    """
    schema = schemathesis.openapi.from_url(f"{live.url}/openapi.json").exclude(path_regex="/keys")
    schema.config.generation.update(modes=[schemathesis.GenerationMode.POSITIVE])
    excluded = schemathesis.checks.CHECKS.get_by_names(EXCLUDED)
    machine: Any = schema.as_state_machine()
    seen: Counter[tuple[str, int]] = Counter()

    class Sequences(machine):  # type: ignore[misc]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": {"Authorization": f"Bearer {live.key}"}}

        def before_call(self, case: Any) -> None:
            """Use valid settings, amounts of the existing resource, and a new key for each write."""
            if "Idempotency-Key" in case.headers:
                case.headers["Idempotency-Key"] = f"k{sum(seen.values())}"
            if case.operation.label == "POST /v1/campaigns":
                case.body = {"name": f"c{sum(seen.values())}", "config": CONFIG}
            elif isinstance(case.body, dict):
                for name in ("costs", "amounts", "caps"):
                    if isinstance(given := case.body.get(name), dict) and given:
                        case.body[name] = {"usd": next(iter(given.values()))}

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            seen[case.operation.label, response.status_code] += 1
            case.validate_response(response, excluded_checks=excluded)

    chosen = settings(
        max_examples=examples,
        stateful_step_count=20,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Sequences, settings=chosen)
    return seen


CONFIG = {**msgspec.to_builtins(small(budget={"usd": "1000"})), "refill": None, "period": None}
EXCLUDED = ["ignored_auth", "positive_data_acceptance"]
"""Checks that cannot hold: scopes are tried in test_service_http, and names must be those of the campaign."""
UNLIMITED = {"failures": 1e9}  # requests without a valid key
LIVELY = {"campaign": "chat", "decision": 1}  # most requests should get past the search for a campaign


@pytest.mark.slow
def test_generated_requests_get_documented_answers(tmp_path: Path) -> None:
    with serving(str(tmp_path / "s.db"), UNLIMITED) as live:
        live.open("chat", budget={"usd": "1000"})
        assert attack(live, 15) > 200


@pytest.mark.slow
def test_sequences_of_requests_get_documented_answers(tmp_path: Path) -> None:
    """Decisions are made, told, cancelled, extended, forfeited and explained, within 400 sequences at most."""
    wanted = {"decisions", "tell", "cancel", "extend", "forfeit", "why"}
    seen, done = Counter[tuple[str, int]](), set[str]()
    with serving(str(tmp_path / "s.db"), UNLIMITED) as live:
        for examples in (100, 300):
            if not done >= wanted:
                seen.update(attack_in_sequences(live, examples))
                done = {label.rpartition("/")[2] for label, status in seen if status == 200}
    assert done >= wanted
    assert max(status for _, status in seen) < 500


@pytest.mark.slow
def test_a_fault_that_needs_a_sequence_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a pending decision cannot be cancelled; requests with arbitrary numbers do not find it."""
    cancel = plans.PLANS[ms.Cancel]

    def broken(campaign: Campaign, command: Any, common: dict[str, Any], number: int) -> Any:
        if number in campaign.book.open:
            raise RuntimeError("planted")
        return cancel(campaign, command, common, number)

    monkeypatch.setitem(plans.PLANS, ms.Cancel, broken)
    with serving(str(tmp_path / "s.db"), UNLIMITED) as live, pytest.raises(FailureGroup):
        attack_in_sequences(live, 200)  # ends with the first failure


def test_an_answer_that_is_not_documented_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a handler that fails."""

    async def broken(_: Context) -> Any:
        raise RuntimeError("planted")

    place = next(key for key, route in routes.TABLE.items() if route.handler is handlers.read_arms)
    monkeypatch.setitem(routes.TABLE, place, routes.TABLE[place]._replace(handler=broken))
    with serving(str(tmp_path / "s.db")) as live:
        live.open("chat")
        with pytest.raises(FailureGroup):
            attack(live, 3, only="/arms")
