"""The table of routes, from which the router and the OpenAPI document are built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from driftsack.service.domain import messages as ms
from driftsack.service.projections import explain
from driftsack.service.web.api import decisions, handlers
from driftsack.service.web.api.context import Context

HOT_LIMIT: Final = 64 * 1024
LARGE_LIMIT: Final = 4 * 1024 * 1024
ACCOUNT: Final = ("by", "label")
LISTED: Final = ("limit", "cursor", "state", "arm")
CAMPAIGN: Final = "/v1/campaigns/{campaign}"
DECISION: Final = CAMPAIGN + "/decisions/{decision}"


class Route(NamedTuple):
    """A route.

    Attributes:
        path: The path, with names in braces.
        scope: The scope that a key needs.
        handler: The function that carries out a request.
        answer: The type of the answer; ``str`` for text.
        body: The type of the body; None if it takes none.
        status: The status of a successful response.
        limit: Maximum size of the body, in bytes.
        limited_ok: Allow campaign-scoped keys on this route although it names no campaign.
        query: The query parameters; a route with some refuses all others.
        needs_key: Whether a request must have an idempotency key, because carrying it out twice would cost money.
        direct: Whether the handler is an ordinary function that returns the campaign and the answer, which is sent once
            the changes of the campaign are durable.
    """

    method: str
    path: str
    scope: ms.Scope
    handler: Callable[[Context], Any]
    answer: Any
    body: Any = None
    status: int = 200
    limit: int = HOT_LIMIT
    limited_ok: bool = False
    query: tuple[str, ...] = ()
    needs_key: bool = False
    direct: bool = False


ROUTES: Final = (
    Route("GET", "/v1/campaigns", "read", handlers.list_campaigns, ms.Campaigns, limited_ok=True, query=("after",)),
    Route("POST", "/v1/campaigns", "admin", handlers.create_campaign, ms.CampaignView, ms.NewCampaign, 201),
    Route("GET", CAMPAIGN, "read", handlers.read_campaign, ms.CampaignView),
    Route("PATCH", CAMPAIGN, "operate", handlers.patch_campaign, ms.CampaignView, ms.Patch),
    Route("DELETE", CAMPAIGN, "admin", handlers.delete_campaign, ms.Done),
    Route("POST", CAMPAIGN + "/decisions", "decide", handlers.ask, ms.Decided, ms.Ask, direct=True),
    Route("GET", CAMPAIGN + "/decisions", "read", decisions.list_decisions, ms.Page, query=LISTED),
    Route("GET", DECISION, "read", handlers.read_decision, ms.DecisionView),
    Route("GET", DECISION + "/why", "read", handlers.why, explain.Why),
    Route("DELETE", DECISION + "/context", "operate", handlers.forget_contexts, ms.Done),
    Route("POST", DECISION + "/tell", "decide", handlers.settle, ms.Settled, ms.Tell, direct=True),
    Route("POST", DECISION + "/cancel", "decide", handlers.settle, ms.Settled, ms.Cancel, direct=True),
    Route("POST", DECISION + "/extend", "decide", handlers.settle, ms.Settled, ms.Extend, direct=True),
    Route("POST", DECISION + "/forfeit", "decide", handlers.settle, ms.Settled, ms.Forfeit, direct=True),
    Route("POST", CAMPAIGN + "/exchange", "decide", handlers.exchange, ms.Exchanged, ms.Exchange, limit=LARGE_LIMIT),
    Route("POST", CAMPAIGN + "/observations", "decide", handlers.observe, ms.Noted, ms.Observe, direct=True),
    Route("GET", CAMPAIGN + "/apprentice", "read", handlers.read_apprentice, ms.Apprentice),
    Route("DELETE", CAMPAIGN + "/contexts", "operate", handlers.forget_contexts, ms.Done),
    Route("GET", CAMPAIGN + "/budgets", "read", handlers.read_budgets, ms.Budgets),
    Route("GET", CAMPAIGN + "/limits", "read", handlers.read_label_accounts, ms.AccountsOfLabel, query=ACCOUNT),
    Route("POST", CAMPAIGN + "/grants", "operate", handlers.change, ms.Budgets, ms.Grant, needs_key=True),
    Route("POST", CAMPAIGN + "/charges", "operate", handlers.change, ms.Budgets, ms.Charge, needs_key=True),
    Route("GET", CAMPAIGN + "/arms", "read", handlers.read_arms, ms.Arms),
    Route("POST", CAMPAIGN + "/arms", "operate", handlers.change, ms.Arms, ms.AddArm),
    Route("PATCH", CAMPAIGN + "/arms/{arm}", "operate", handlers.offer_arm, ms.Arms, ms.OfferArm),
    Route("GET", CAMPAIGN + "/export", "read", handlers.export_log, str),
    Route("GET", "/v1/keys", "admin", handlers.list_keys, ms.Keys),
    Route("POST", "/v1/keys", "admin", handlers.create_key, ms.CreatedKey, ms.NewKey, 201),
    Route("DELETE", "/v1/keys/{key}", "admin", handlers.remove_key, ms.Done),
    Route("GET", "/v1/audit", "admin", handlers.read_audit, ms.AuditPage, query=("limit", "cursor")),
    Route("GET", "/metrics", "read", handlers.metrics, str),
)


def shape_of(path: str) -> tuple[tuple[str, ...], str, str]:
    """Return a path with ``{}`` in place of its names, the campaign, and the name within it.

    >>> shape_of("/v1/campaigns/chat/decisions/7/tell")
    (('', 'v1', 'campaigns', '{}', 'decisions', '{}', 'tell'), 'chat', '7')
    """
    parts, campaign, item = path.split("/"), "", ""
    if len(parts) > 3 and parts[2] == "campaigns":
        campaign, parts[3] = parts[3], "{}"
        if len(parts) > 5 and parts[4] == "decisions":
            item, parts[5] = parts[5], "{}"
        elif len(parts) > 5 and parts[4] == "arms":
            item, parts[5:] = "/".join(parts[5:]), ["{}"]
    elif len(parts) == 4 and parts[2] == "keys":
        item, parts[3] = parts[3], "{}"
    return tuple(parts), campaign, item


TABLE: Final = {(route.method, shape_of(route.path)[0]): route for route in ROUTES}
