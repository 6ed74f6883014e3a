"""Requests generated from the OpenAPI document always get a documented response."""

from __future__ import annotations

import copy
import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from driftsack.service.domain import messages as ms
from driftsack.service.domain import plans
from driftsack.service.domain.campaign import Campaign
from driftsack.service.web.api import handlers, routes
from driftsack.service.web.api.context import Context
from driftsack.service.web.api.openapi import document
from tests.support.live_service import Live, serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.core.failures import FailureGroup


def drawn_with(examples: int) -> settings:
    """Settings of Hypothesis with which the same requests are drawn in every run; see tests/support/same_draws.py."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def attack(live: Live, examples: int, only: str = "") -> int:
    """Send generated requests to every route, check each answer against the document, and return their number."""
    schema = schemathesis.openapi.from_url(f"{live.url}/openapi.json")
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
            answer = case.call(headers={"Authorization": f"Bearer {live.key}"}, timeout=PATIENCE)
            case.validate_response(answer, excluded_checks=excluded)

        drawn_with(examples)(given(case=operation.as_strategy())(check))()
    return sent


class Step(NamedTuple):
    """A generated request of a sequence.

    Attributes:
        case: The request; its path gets the names of the running sequence before it is sent.
        recent: The decision that it concerns, counted from the latest one of the campaign.
    """

    case: Any
    recent: int


def draw_sequences(schema: Any, sequences: int) -> list[list[Step]]:
    """Draw sequences of valid requests about one campaign. Nothing is sent, so no answer changes what is drawn.

    A generator arranges requests that were drawn for each operation on its own. If Hypothesis draws whole sequences,
    they are variants of a few, and half of their steps are the simplest request.
    """
    found = (result.ok() for result in schema.get_all_operations())
    cases = [draw_requests(operation) for operation in found if "{campaign}" in operation.path]
    generator = random.Random(0)
    return [
        [Step(generator.choice(generator.choice(cases)), generator.randrange(3)) for _ in range(STEPS)]
        for _ in range(sequences)
    ]


def draw_requests(operation: Any) -> list[Any]:
    """Draw 100 valid requests of an operation, and return those whose bodies or queries differ."""
    drawn: dict[str, Any] = {}

    def keep(case: Any) -> None:
        drawn.setdefault(repr((case.body, case.query)), case)

    cases = operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
    drawn_with(100)(given(case=cases)(keep))()
    return list(drawn.values())


def attack_in_sequences(live: Live, sequences: int) -> Counter[tuple[str, int]]:
    """Open a campaign for each sequence, make a decision, and send the sequence's requests about its decisions.

    Returns:
        How often each operation was answered with each status.
    """
    schema = schemathesis.openapi.from_url(f"{live.url}/openapi.json")
    excluded = schemathesis.checks.CHECKS.get_by_names(EXCLUDED)
    seen: Counter[tuple[str, int]] = Counter()
    for number, steps in enumerate(draw_sequences(schema, sequences)):
        live.open(f"c{number}", budget={"usd": "1000"})
        decisions = [live.ask(f"c{number}")]
        for case, recent in steps:
            aim(case, f"c{number}", decisions[-1 - recent % len(decisions)], f"k{sum(seen.values())}")
            answer = case.call(headers={"Authorization": f"Bearer {live.key}"}, timeout=PATIENCE)
            seen[case.operation.label, answer.status_code] += 1
            case.validate_response(answer, excluded_checks=excluded)
            if case.operation.label == ASK and answer.status_code == 200 and answer.json()["decision"]:
                decisions.append(answer.json())
    return seen


def aim(case: Any, campaign: str, decision: dict[str, Any], key: str) -> None:
    """Point a request at a campaign, a decision, an arm and the resource that exist, with a new key."""
    names = {"campaign": campaign, "decision": decision["decision"], "arm": "large"}
    case.path_parameters = {name: names.get(name, value) for name, value in case.path_parameters.items()}
    if "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = key
    if isinstance(case.body, dict):
        for name in ("costs", "amounts", "caps"):
            if isinstance(given := case.body.get(name), dict):
                case.body[name] = {"usd": next(iter(given.values()), "0.01")}
        if case.body.get("token"):
            case.body["token"] = decision["token"]
        if case.body.get("open"):
            case.body["open"] = ["large"]


def broken_links(document: dict[str, Any]) -> list[str]:
    """Return the links to operations that do not exist, and those that name wrong parameters or sources."""
    every = [operation for path in document["paths"].values() for operation in path.values()]
    operations = {operation["operationId"]: operation for operation in every if "operationId" in operation}
    found = []
    for name, operation in operations.items():
        for answer in operation["responses"].values():
            for link in answer.get("links", {}).values():
                target = operations.get(link["operationId"])
                required = None if target is None else path_parameters_of(target)
                sources = set(link["parameters"].values())
                if link["parameters"].keys() != required or not sources <= sources_of(document, operation, answer):
                    found.append(f"{name} -> {link['operationId']}")
    return found


def path_parameters_of(operation: dict[str, Any]) -> set[str]:
    """Return the names in the path of an operation; a caller chooses headers such as the idempotency key itself."""
    return {each["name"] for each in operation["parameters"] if each["in"] == "path"}


def sources_of(document: dict[str, Any], operation: dict[str, Any], answer: dict[str, Any]) -> set[str]:
    """Return the expressions with which a link may refer to a request and to its answer."""
    kind = answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    fields = document["components"]["schemas"][kind]["properties"]
    paths = {f"$request.path.{name}" for name in path_parameters_of(operation)}
    return paths | {f"$response.body#/{name}" for name in fields}


STEPS = 20  # requests of a sequence
PATIENCE = 120  # seconds for an answer: other tests may keep the cores busy while a kernel compiles
ASK = "POST /v1/campaigns/{campaign}/decisions"
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
    """Decisions are made, told, cancelled, extended, forfeited and explained in the course of 100 sequences."""
    with serving(str(tmp_path / "s.db"), UNLIMITED) as live:
        seen = attack_in_sequences(live, 100)
    done = {label.rpartition("/")[2] for label, status in seen if status == 200}
    assert done >= {"tell", "cancel", "extend", "forfeit", "why", "charges", "grants", "exchange", "export"}
    assert seen[ASK, 200] > 0
    assert max(status for _, status in seen) < 500
    assert sum(seen.values()) == 100 * STEPS


def test_the_links_of_the_document_resolve() -> None:
    """Each link names an operation, all parameters that it requires, and existing sources of their values."""
    assert broken_links(document()) == []
    linked = [each for each in document()["paths"].values() for part in each.values() if "links" in str(part)]
    assert len(linked) == 2


@pytest.mark.parametrize(
    "planted",
    [
        {"operationId": "post_nothing", "parameters": {}},
        {"operationId": "get_v_campaigns_campaign", "parameters": {"decision": "$response.body#/decision"}},
        {"operationId": "get_v_campaigns_campaign", "parameters": {"campaign": "$response.body#/nothing"}},
    ],
)
def test_a_link_that_does_not_resolve_is_found(planted: dict[str, Any]) -> None:
    faulty = copy.deepcopy(document())
    faulty["paths"]["/v1/campaigns/{campaign}/decisions"]["post"]["responses"]["200"]["links"] = {"next": planted}
    assert broken_links(faulty) == [f"post_v_campaigns_campaign_decisions -> {planted['operationId']}"]


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
        attack_in_sequences(live, 100)  # ends with the first failure


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
