"""``Refusal``: why a request is not carried out, with the status code and a stable type."""

from __future__ import annotations

from typing import Final

from driftsack.core.errors import DriftsackError

TITLES: Final = {
    "invalid": (422, "The request is not valid"),
    "malformed": (400, "The body cannot be read"),
    "unauthenticated": (401, "A key is needed"),
    "forbidden": (403, "The key does not allow this"),
    "unknown-campaign": (404, "There is no such campaign"),
    "unknown-decision": (404, "There is no such decision"),
    "not-found": (404, "There is nothing here"),
    "method-not-allowed": (405, "The method is not allowed here"),
    "too-slow": (408, "The request took too long"),
    "absurd-cost": (422, "The cost is absurd"),
    "already-settled": (409, "The decision was settled before, in another way"),
    "wrong-token": (409, "The decision was made for another request"),
    "forgotten": (409, "The decision is too old"),
    "campaign-closed": (409, "The campaign takes no more requests"),
    "not-watching": (409, "The campaign decides itself"),
    "still-watching": (409, "The campaign does not decide yet"),
    "name-taken": (409, "The name is taken"),
    "not-closed": (409, "The campaign is not closed"),
    "archived": (410, "The decision was archived"),
    "last-admin-key": (409, "It is the last administrator's key"),
    "too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The body must be JSON"),
    "key-reused": (422, "The idempotency key was used with another body"),
    "too-many-pending": (429, "Too many decisions wait for an outcome"),
    "too-many-labels": (429, "There are too many labels"),
    "rate-limited": (429, "Too many requests"),
    "head-too-large": (431, "The header is too large"),
    "internal": (500, "The service failed"),
    "unavailable": (503, "The service is not available just now"),
    "damaged": (503, "The campaign's journal is damaged"),
}
"""The status code and title of each type of problem; a type never changes its meaning."""


class Refusal(DriftsackError):  # noqa: N818  (it is an answer)
    """A request that is not carried out; nothing was changed.

    Args:
        kind: One of the types in ``TITLES``.
        detail: What was expected, what was received and what to do.
        retry_after: Seconds after which to retry, if that may help.
        allow: The allowed methods, if the method was not.
    """

    def __init__(self, kind: str, detail: str, retry_after: int | None = None, allow: tuple[str, ...] = ()) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.retry_after, self.allow = kind, detail, retry_after, allow
        self.status, self.title = TITLES[kind]
        self.pointer: str | None = None  # a JSON pointer to the invalid field of the body

    @classmethod
    def invalid(cls, detail: str) -> Refusal:
        """A request with invalid content."""
        return cls("invalid", detail)

    @classmethod
    def unavailable(cls, detail: str) -> Refusal:
        """A request that may be retried in a moment."""
        return cls("unavailable", detail, retry_after=1)
