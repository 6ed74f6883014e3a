"""``offers``: the arms that can answer a request, each with the most that it may cost there."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

from driftsack.service.gateways.proxy.attempt import encoded
from driftsack.service.gateways.proxy.contexts import NO_CONTEXT, RequestContext
from driftsack.service.gateways.proxy.formats.registry import translation_of
from driftsack.service.gateways.proxy.formats.translation import UNREADABLE, Translation
from driftsack.service.gateways.proxy.formats.wire_format import WireFormat, check_fields
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.settings import Upstream
from driftsack.service.gateways.proxy.worst_case import Demand, fitting_limit, worst_case


class Offer(NamedTuple):
    """An arm that may answer a request.

    Attributes:
        upstream: Its upstream.
        translation: Between the formats of the caller and of the upstream.
        demand: What the request asks for.
    """

    upstream: Upstream
    translation: Translation
    demand: Demand

    def most(self) -> Decimal:
        """Return the maximum cost of the request, with the limit that the caller wants."""
        return worst_case(self.demand, self.upstream.prices(), self.demand.asked(self.upstream.max_tokens))

    def fitting(self, reserved: Decimal) -> int | None:
        """Return the limit with which the request costs at most what is reserved; None if there is none."""
        wanted = self.demand.asked(self.upstream.max_tokens)
        limit = fitting_limit(self.demand, self.upstream.prices(), wanted, reserved)
        unlimited = self.demand.limit is None and self.upstream.limit == "none"  # the model takes no limit
        return None if unlimited and limit != wanted else limit


class CallerRequest(NamedTuple):
    """A request that was read.

    Attributes:
        key: The driftsack key of the caller.
        campaign: The campaign.
        wire: The format.
        body: The request.
        upstreams: The upstreams that the model which the caller named stands for.
        labels: The labels in the header ``x-driftsack-labels``; None without one.
        context: Its features.
    """

    key: str
    campaign: str
    wire: WireFormat
    body: dict[str, Any]
    upstreams: list[Upstream]
    labels: dict[str, str] | None = None
    context: RequestContext = NO_CONTEXT


def offers(asked: CallerRequest) -> list[Offer]:
    """Return the arms that can answer a request; ``Rejected`` if there is none."""
    serving = [u for u in asked.upstreams if asked.wire.name in u.serves]
    if not serving:
        raise Rejected(404, "model_not_found", f"no upstream of this model serves {asked.wire.path}.")
    check_fields(asked.body, asked.wire, set.intersection(*(set(u.fields) for u in serving)))
    size = len(encoded(asked.body))
    same = demanded(asked, Translation(asked.wire), size)
    if isinstance(same, Rejected):
        raise same
    # A large body is translated and encoded once for all upstreams of the same protocol.
    known: dict[type[Translation], Demand | Rejected] = {Translation: same}
    found, reasons = [], []
    for upstream in serving:
        translation = translation_of(asked.wire, upstream)
        kind = type(translation)
        demand = known[kind] if kind in known else demanded(asked, translation, size)
        known[kind] = demand
        if isinstance(demand, Rejected):  # it cannot be translated for this upstream
            reasons.append(demand)
        else:
            found.append(Offer(upstream, translation, demand))
    if not found:
        raise reasons[0]
    return found


def demanded(asked: CallerRequest, translation: Translation, size: int) -> Demand | Rejected:
    """Return what a request asks for once it is translated, or why it cannot be.

    Args:
        size: The bytes of the request as it came.
    """
    try:
        request = translation.request(asked.body)
        most = size if request is asked.body else max(size, len(encoded(request)))
        return asked.wire.demand(asked.body, most)
    except Rejected as rejected:
        return rejected
    except UNREADABLE as error:
        return Rejected.invalid(f"the body is not one for {asked.wire.path}: {error}.")
