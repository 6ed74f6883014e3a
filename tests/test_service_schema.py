"""Requests that are generated from the OpenAPI document: whatever is sent, the answer is the documented one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from driftsack.service.http import handlers, routes
from driftsack.service.http.context import Context
from driftsack.service.http.keyring import Bucket
from tests.live_service import Live, serving

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


EXCLUDED = ["ignored_auth", "positive_data_acceptance"]
"""Checks that cannot hold: scopes are tried in test_service_http, and names must be those of the campaign."""
LIVELY = {"campaign": "chat", "decision": 1}  # most requests should get past the search for a campaign


def test_generated_requests_get_documented_answers(tmp_path: Path) -> None:
    with serving(str(tmp_path / "s.db")) as live:
        live.open("chat", budget={"usd": "1000"})
        live.app.service.keyring._failures = Bucket(1e9)
        assert attack(live, 15) > 200


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
