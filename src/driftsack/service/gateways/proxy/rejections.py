"""``Rejected``: the answer to a request that no upstream has answered."""

from __future__ import annotations

import json
from typing import Any, Final

DO_NOT_RETRY: Final = (b"x-should-retry", b"false")  # the clients of OpenAI and Anthropic obey it
PAYMENT: Final = 402
SKIPPED: Final = {
    "budget": (PAYMENT, "budget_exhausted", "the budgets of the campaign do not cover this request."),
    "limit": (PAYMENT, "limit_exhausted", "a limit of the labels of this request, or of its key, does not cover it."),
    "horizon": (PAYMENT, "horizon_reached", "the campaign has made all its decisions."),
    "policy": (429, "saved_by_plan", "the campaign saves its budget for later requests and skips this one."),
    "paused": (503, "paused", "the campaign is paused."),
    "watching": (503, "watching", "the campaign only watches; switch it on first."),
}
"""Status, code and message for each reason for which a campaign skips a request."""


class Rejected(Exception):  # noqa: N818  (it is an answer)
    """A request that is answered by the proxy itself.

    Args:
        status: The status of the response.
        code: A stable identifier of the reason.
        message: What was expected, what was received and what to do.
        retry_after: Seconds after which the request may be repeated; None if a repetition does not help.
    """

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after

    @classmethod
    def invalid(cls, message: str) -> Rejected:
        """A request whose maximum cost cannot be computed, or that an upstream could not read."""
        return cls(400, "invalid_request", message)

    @classmethod
    def skipped(cls, reason: str) -> Rejected:
        """A request that the campaign skips."""
        return cls(*SKIPPED.get(reason, SKIPPED["policy"]))

    @classmethod
    def unavailable(cls, message: str, seconds: float = 1.0) -> Rejected:
        """A request that may succeed in a moment."""
        return cls(503, "unavailable", message, seconds)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that tell a client whether to repeat the request."""
        if self.retry_after is None:
            return [DO_NOT_RETRY]
        return [(b"retry-after", b"%d" % max(1, round(self.retry_after)))]


def json_object(raw: bytes, what: str) -> dict[str, Any]:
    """Return an object of JSON without NaN, which a caller sent as ``what``.

    Raises:
        Rejected: It is something else.
    """
    try:
        found = json.loads(raw, parse_constant=unknown_number)
    except (ValueError, RecursionError) as error:
        raise Rejected.invalid(f"{what} must be JSON: {error}.") from error
    if not isinstance(found, dict):
        raise Rejected.invalid(f"{what} must be an object.")
    return found


def unknown_number(name: str) -> float:
    """Refuse NaN and the infinities, which JSON does not have."""
    raise ValueError(f"{name} is no number")
