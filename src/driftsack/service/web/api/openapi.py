"""The OpenAPI 3.1 document, generated from the table of routes and the types of their messages."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, get_args

import msgspec

from driftsack.core.release import __version__
from driftsack.service.domain import messages as ms
from driftsack.service.domain.config import CAMPAIGN_NAME, LABEL, LABEL_NAME, NAME
from driftsack.service.web.api.examples import EXAMPLES
from driftsack.service.web.api.paging import LARGEST_PAGE, PAGE
from driftsack.service.web.api.routes import ACCOUNT, DECISION, ROUTES, Route

PARAMETERS = {
    "campaign": {"type": "string", "pattern": CAMPAIGN_NAME},
    "decision": {"type": "integer", "minimum": 1, "maximum": 10**14},
    "arm": {"type": "string", "pattern": NAME},
    "key": {"type": "string", "pattern": "^[0-9a-f]{12}$"},
}
QUERY = {
    "after": {"type": "string", "pattern": CAMPAIGN_NAME},
    "limit": {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE},
    "cursor": {"type": "string"},
    "state": {"type": "string", "enum": list(get_args(ms.Kind))},
    "arm": {"type": "string", "pattern": NAME},
    "by": {"type": "string", "pattern": LABEL_NAME},
    "label": {"type": "string", "pattern": LABEL},
}
"""The types of the query parameters."""
TAGS = ("campaigns", "decisions", "budgets", "arms", "keys", "audit", "metrics", "health")
OPEN = {
    "/healthz": "Whether the process runs.",
    "/readyz": "Whether it can take requests, and which campaigns are damaged.",
    "/openapi.json": "This document.",
}
"""The paths that need no key."""
PROBLEMS = ("400", "401", "403", "404", "408", "409", "410", "413", "415", "422", "429", "431", "500", "503")


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    types = {route.answer for route in ROUTES if route.answer is not str} | {ms.ProblemDetails}
    types |= {route.body for route in ROUTES if route.body is not None}
    ordered = sorted(types, key=lambda kind: str(kind.__name__))
    _, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route)
    answer = {"application/json": {"schema": {"type": "object"}}}
    problem = {"application/problem+json": {"schema": reference(ms.ProblemDetails)}}
    for path, what in OPEN.items():
        status = {
            "200": {"description": what, "content": answer},
            "422": {"description": "Refused.", "content": problem},
            "503": {"description": "Not now.", "content": answer},
        }
        paths[path] = {"get": {"summary": what, "security": [], "tags": ["health"], "responses": status}}
    return {
        "openapi": "3.1.0",
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in TAGS],
        "info": {"title": "driftsack", "version": __version__, "description": "Decisions under hard budgets."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def operation(route: Route) -> dict[str, Any]:
    """Return the description of one route."""
    # The types of the response.
    kind = {"text/plain": {"schema": {"type": "string"}}}
    if route.answer is not str:
        kind = {"application/json": {"schema": reference(route.answer)}}
    problem = {"content": {"application/problem+json": {"schema": reference(ms.ProblemDetails)}}}
    names = re.findall(r"{(\w+)}", route.path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": PARAMETERS[name]} for name in names]
    parameters += [
        {"name": name, "in": "query", "required": name in ACCOUNT, "schema": QUERY[name]} for name in route.query
    ]
    if route.body is not None:
        needed = route.needs_key
        schema = {"type": "string", "minLength": int(needed), "maxLength": 200, "pattern": "^[!-~]*$"}
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": needed, "schema": schema})
    # Links to the operations on the new decision or campaign.
    done: dict[str, Any] = {"description": "Done.", "content": kind}
    if route.answer is ms.Decided:
        given = {"campaign": "$request.path.campaign", "decision": "$response.body#/decision"}
        done["links"] = {name_of(other): link_to(other, given) for other in ROUTES if other.path.startswith(DECISION)}
    if route.body is ms.NewCampaign:
        next_ones = [other for other in ROUTES if re.findall(r"{(\w+)}", other.path) == ["campaign"]]
        done["links"] = {name_of(other): link_to(other, {"campaign": "$response.body#/name"}) for other in next_ones}
    found: dict[str, Any] = {
        "operationId": name_of(route),
        "tags": [tag_of(route)],
        "summary": (route.handler.__doc__ or "").strip().splitlines()[0],
        "x-scope": route.scope,
        "x-limited-keys": route.limited_ok,
        "parameters": parameters,
        "responses": {
            str(route.status): done,
            **{status: {"description": "Refused.", **problem} for status in PROBLEMS},
        },
    }
    if route.body is not None:
        content = {"application/json": {"schema": reference(route.body), "example": EXAMPLES[route.body]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def tag_of(route: Route) -> str:
    """Return the group of a route."""
    if route.path.startswith(DECISION.removesuffix("/{decision}")) or route.path.endswith("/exchange"):
        return "decisions"
    return next((name for name in TAGS if f"/{name}" in route.path and name != "campaigns"), "campaigns")


def name_of(route: Route) -> str:
    """Return the id of an operation."""
    return f"{route.method.lower()}_{'_'.join(re.findall(r'[a-z]+', route.path))}"


def link_to(route: Route, parameters: dict[str, str]) -> dict[str, Any]:
    """Return a link to an operation that may follow, with the sources of its parameters."""
    return {"operationId": name_of(route), "parameters": parameters}


def reference(kind: Any) -> dict[str, str]:
    """Return a reference to the schema of a type."""
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
