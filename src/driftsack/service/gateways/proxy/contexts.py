"""``ContextReader``: the features of requests, from where the settings of the proxy say."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from driftsack.service.gateways.prompts.features import PROMPT, prompt_features
from driftsack.service.gateways.proxy.rejections import Rejected, json_object
from driftsack.service.gateways.proxy.settings import HEADER, ProxySettings, function_of

NAME: Final = b"x-driftsack-context"
log = logging.getLogger("driftsack.proxy")


class RequestContext(NamedTuple):
    """The features of a request.

    Attributes:
        features: The features by name; None without features.
        from_caller: Whether the caller sent them.
    """

    features: dict[str, Any] | None = None
    from_caller: bool = False


NO_CONTEXT: Final = RequestContext()


class ContextReader:
    """Reads the features of requests.

    Args:
        settings: The settings of the proxy.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self._sources = {route.name: settings.features_of(route) for route in settings.routes()}
        own = {source for source in self._sources.values() if source not in ("", PROMPT, HEADER)}
        self._functions: dict[str, Callable[[dict[str, Any]], Mapping[str, Any]]] = {
            source: function_of(source, "features") for source in own
        }

    def read(self, campaign: str, request: dict[str, Any], headers: Mapping[bytes, bytes]) -> RequestContext:
        """Return the features of a request.

        Raises:
            Rejected: The caller's header is not a JSON object, or it is not used; or the user's function fails.
        """
        source, given = self._sources[campaign], headers.get(NAME)
        if source == HEADER:
            return RequestContext(None if given is None else json_object(given, NAME.decode()), from_caller=True)
        if given is not None:
            raise Rejected.invalid(
                f"{NAME.decode()} is not used for the campaign {campaign}; omit it, or let the operator set features = "
                f'"{HEADER}".'
            )
        if not source:
            return NO_CONTEXT
        return RequestContext(prompt_features(request) if source == PROMPT else self._computed(source, request))

    def _computed(self, source: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return what the user's function makes of a request."""
        try:
            found = dict(self._functions[source](request))
            json.dumps(found, allow_nan=False)
        except Exception as error:
            log.exception("the function %s failed", source)
            raise Rejected(500, "misconfigured", f"{source} gave no features; see the log of the proxy.") from error
        return found
