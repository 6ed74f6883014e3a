"""The journal: everything that happened to a campaign, as events in segments that are chained by their hashes.

A segment is what one commit appends. Its chain is the hash of the chain before it and its body, so no event can be
changed, removed or inserted without every later hash being wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from driftsack.core.errors import DriftsackError
from driftsack.service.config import Config

START: Final = b"\0" * 32
"""The chain before the first segment."""


class JournalError(DriftsackError):
    """A journal is damaged: it was changed, cut or does not match the budgets."""


class Event(msgspec.Struct, tag_field="type", kw_only=True, omit_defaults=True):
    """What happened, and when.

    Attributes:
        at: The time in milliseconds since 1970, as people read it; it never goes back.
        tick: Milliseconds on the clock of leases, which only runs while the service runs.
        key: The idempotency key of the request, if it had one.
        digest: A digest of the request's body.
        who: The prefix of the API key that asked for it.
    """

    at: int
    tick: int
    key: str = ""
    digest: bytes = b""
    who: str = ""


class Opened(Event, tag="opened"):
    """The campaign began."""

    config: Config
    period: float | None = None  # seconds until the first refill; earlier releases did not pace by it


class Asked(Event, tag="asked"):
    """A decision was made. ``arm`` is None only before it is made."""

    number: int
    until: int  # the tick at which its lease ends
    open: list[int] | None = None
    caps: list[float | None] | None = None
    arm: int | None = None
    probability: float = 0.0
    reserved: list[int] = []


class Told(Event, tag="told"):
    """The outcome of a decision arrived."""

    number: int
    reward: float
    costs: list[float]


class Cancelled(Event, tag="cancelled"):
    """A decision was cancelled at known costs."""

    number: int
    costs: list[float]


class Extended(Event, tag="extended"):
    """A decision may wait longer."""

    number: int
    until: int


class Expired(Event, tag="expired"):
    """Outcomes did not arrive in time, or were given up: what was reserved is charged."""

    numbers: list[int]


class Dropped(Event, tag="dropped"):
    """Expired decisions that can no longer be told."""

    numbers: list[int]


class Granted(Event, tag="granted"):
    """Budgets of this season grew."""

    amounts: list[float]


class Renewed(Event, tag="renewed"):
    """A new season began."""

    season: int
    rollover: float
    following: int | None  # when the season after it begins, in milliseconds
    period: float | None = None  # seconds until then; earlier releases did not pace by it


class ArmAdded(Event, tag="arm-added"):
    """An arm was added."""

    name: str
    cost_max: list[float]


class ArmOffered(Event, tag="arm-offered"):
    """An arm was retired or is offered again."""

    arm: int
    offered: bool


class Observed(Event, tag="observed"):
    """The user's own rule chose an arm while the campaign watched."""

    arm: int
    reward: float
    costs: list[float]
    probability: float | None = None


class Studied(Event, tag="studied"):
    """The campaign learnt what was observed.

    ``mix`` has the probabilities with which it would choose now; it is None only before they are computed.
    """

    mix: list[float] | None = None


class StateChanged(Event, tag="state-changed"):
    """The campaign was switched on, paused, resumed or closed."""

    state: str
    period: float | None = None  # seconds until the next refill, if a campaign that watched is switched on


class Revised(Event, tag="revised"):
    """Another number of rounds is expected."""

    rounds_left: int


AnyEvent = (
    Opened
    | Asked
    | Told
    | Cancelled
    | Extended
    | Expired
    | Dropped
    | Granted
    | Renewed
    | ArmAdded
    | ArmOffered
    | Observed
    | Studied
    | StateChanged
    | Revised
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[AnyEvent])


class Delta(NamedTuple):
    """By how much the budget of one resource in one season moves, in grid units.

    Attributes:
        season: The season.
        resource: The number of the resource.
        new: Whether the season is new.
        granted: Change of the budget.
        reserved: Change of the reservations.
        spent: Change of the spending.
        overrun: Change of what was spent beyond reservations.
    """

    season: int
    resource: int
    new: bool
    granted: int
    reserved: int
    spent: int
    overrun: int


class Segment(NamedTuple):
    """The events of one commit.

    Attributes:
        campaign: The campaign.
        first: The number of its first event, from 1.
        last: The number of its last event.
        at: The time of the commit, in milliseconds.
        epoch: The epoch of the owner that wrote it.
        deltas: What it does to the budgets.
        body: The events.
        chain: The hash of the chain before it and the body.
    """

    campaign: str
    first: int
    last: int
    at: int
    epoch: int
    deltas: tuple[Delta, ...]
    body: bytes
    chain: bytes


def encode(events: list[Any]) -> bytes:
    """The body of a segment."""
    return _encoder.encode(events)


def decode(body: bytes) -> list[Any]:
    """The events of a body.

    Raises:
        JournalError: It is not a list of events.
    """
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise JournalError(f"a segment cannot be read: {error}") from error


def chained(before: bytes, body: bytes) -> bytes:
    """The chain after a body.

    >>> chained(START, b"").hex()[:8]
    '66687aad'
    """
    return hashlib.sha256(before + body).digest()


def verify(segments: Iterable[Segment], chain: bytes = START, seq: int = 0) -> tuple[int, bytes]:
    """Check that segments continue a journal without gaps and with the right hashes.

    Args:
        segments: The segments, oldest first.
        chain: The chain before them.
        seq: The number of the event before them.

    Returns:
        The number of the last event and the chain after it.

    Raises:
        JournalError: A segment is missing, was changed or has another number of events than it says.
    """
    for segment in segments:
        if segment.first != seq + 1:
            raise JournalError(
                f"the journal of {segment.campaign} has no event {seq + 1}; the next is {segment.first}."
            )
        chain = chained(chain, segment.body)
        if chain != segment.chain:
            raise JournalError(
                f"the journal of {segment.campaign} was changed: the hash of the events {segment.first} to "
                f"{segment.last} is not the one that was written."
            )
        count = len(decode(segment.body))
        if segment.last - segment.first + 1 != count:
            raise JournalError(f"a segment says events {segment.first} to {segment.last}, but has {count} of them.")
        seq = segment.last
    return seq, chain
