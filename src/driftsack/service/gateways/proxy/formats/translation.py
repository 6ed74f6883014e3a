"""``Translation``: between the format of a caller and that of an upstream; usually they are the same."""

from __future__ import annotations

from typing import Any, Final

from driftsack.service.gateways.proxy.formats.wire_format import WireFormat

UNREADABLE: Final = (TypeError, ValueError, AttributeError, LookupError, RecursionError)
"""What a translation raises if a body has values of other types, or is nested too deeply."""


class Relay:
    """Passes the events of a stream on as they came.

    Args:
        hide: Whether the event with the usage is left out, because the caller did not ask for it.
    """

    def __init__(self, hide: bool) -> None:
        self._hide = hide

    def events(self, event: bytes, content: Any, shown: bool) -> list[bytes]:
        """Return the events for the caller that follow from an event of the upstream.

        Args:
            content: Its content; None if it is no JSON.
            shown: Whether it has more than the usage.
        """
        return [event] if shown or not self._hide else []

    def last(self) -> list[bytes]:
        """Return the events that are still missing at the end of a complete answer."""
        return []


class Translation:
    """From one format into the same.

    Args:
        wire: The format.

    Attributes:
        caller: The format of the caller.
        upstream: The format of the upstream.
    """

    def __init__(self, wire: WireFormat) -> None:
        self.caller = self.upstream = wire

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request for the upstream; ``Rejected`` if it cannot be translated."""
        return request

    def answer(self, content: bytes, answer: dict[str, Any]) -> bytes:
        """Return the answer for the caller.

        Args:
            content: The answer of the upstream.
            answer: The same, decoded.
        """
        return content

    def relay(self, request: dict[str, Any]) -> Relay:
        """Return what passes a stream on."""
        return Relay(self.caller.hides_usage(request))
