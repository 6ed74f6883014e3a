"""Which campaign and which upstreams a request means, by its key and by the name of its model."""

from __future__ import annotations

from typing import Any, Final

from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.settings import ANY, CampaignRoute, ProxySettings, Upstream

PREFIX: Final = 15  # characters of a key that are public


class Routing:
    """The campaigns of a proxy and their upstreams.

    Args:
        settings: The settings of the proxy.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self._routes = {route.name: route for route in settings.routes()}
        self._first = settings.routes()[0]
        self._by_key = {prefix: route for route in settings.routes() for prefix in route.keys}
        self._upstreams = settings.upstream

    def campaign_of(self, key: str) -> CampaignRoute:
        """Return the campaign that the model ``driftsack`` means for a key."""
        return self._by_key.get(key[:PREFIX], self._first)

    def find(self, key: str, model: Any) -> tuple[str, list[Upstream]]:
        """Return the campaign and the upstreams that a model stands for.

        ``driftsack`` allows any arm of the key's campaign, and ``driftsack/NAME`` or the name of a campaign any arm of
        that one. The name of an arm allows only this arm, in the key's campaign.
        """
        own = self.campaign_of(key)
        name = model if isinstance(model, str) else ""
        route = own if name == ANY else self._routes.get(name.removeprefix(f"{ANY}/"))
        if route is not None:
            return route.name, self._of(route)
        only = [upstream for upstream in self._of(own) if upstream.arm == name]
        if not only:
            models = [*self.models(key)][:20]
            raise Rejected(404, "model_not_found", f"model must be one of {models}, got {model!r:.60}.")
        return own.name, only

    def models(self, key: str) -> list[str]:
        """Return the names of the models that a key may ask for."""
        arms = [upstream.arm for upstream in self._of(self.campaign_of(key))]
        return [ANY, *(f"{ANY}/{name}" for name in self._routes), *arms]

    def _of(self, route: CampaignRoute) -> list[Upstream]:
        """Return the upstreams of a campaign."""
        return [upstream for upstream in self._upstreams if route.has(upstream.arm)]


def described(name: str) -> dict[str, Any]:
    """Return a model as the clients of OpenAI and Anthropic expect it."""
    openai = {"id": name, "object": "model", "created": 0, "owned_by": ANY}
    return {**openai, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


def listed(names: list[str]) -> dict[str, Any]:
    """Return a list of models."""
    models = [described(name) for name in names]
    return {"object": "list", "data": models, "has_more": False, "first_id": names[0], "last_id": names[-1]}
