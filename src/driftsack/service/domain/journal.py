"""The journal: everything that happened to a campaign, as events in segments that form a hash chain.

A commit appends one segment. Its hash covers its body and the hash of the previous segment, so changing, removing or
inserting an event makes every later hash wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from driftsack.core.errors import DriftsackError
from driftsack.service.domain.accounts import HeldAccount
from driftsack.service.domain.config import Config

START: Final = b"\0" * 32
"""The hash before the first segment."""
FORMAT: Final = 1
"""The format that this release writes.

Since format 1, changes that follow from an event by rule (:mod:`driftsack.service.domain.rules`) are events themselves.
"""


class JournalError(DriftsackError):
    """A journal is damaged: it was changed or truncated, or does not match the budgets."""


class Event(msgspec.Struct, tag_field="type", kw_only=True, omit_defaults=True):
    """What happened, and when.

    Attributes:
        at: The time in milliseconds since 1970; decreases only when an operator sets the clock back (``ClockSet``).
        tick: Milliseconds on the clock of leases, which runs only while the service runs.
        key: A digest of the idempotency key of the request, if it had one; earlier releases wrote the key itself.
        digest: A digest of the request's body.
        who: The prefix of the API key of the request.
        format: The format of the journal from this event on; 0 if it is the same as before. A journal begins with
            format 0.
    """

    at: int
    tick: int
    key: str = ""
    digest: bytes = b""
    who: str = ""
    format: int = 0


class Opened(Event, tag="opened"):
    """The campaign began."""

    config: Config
    period: float | None = None  # seconds until the first refill; None in journals of releases that did not pace by it

    def __post_init__(self) -> None:
        """Read integers in the settings as micro-units, which only journals of releases before 0.2 have."""
        self.config = self.config.completed(micros=True)


class Asked(Event, tag="asked"):
    """A decision was made; ``arm`` is None only while it is being made.

    ``token`` is needed to settle the decision; journals of releases that did not write one do not have it. ``context``
    has the encoded features of the request, in single precision; None without features. ``held`` lists the accounts of
    limits that the decision is charged to, and ``limited`` the arms that limits closed for the request.
    """

    number: int
    until: int  # the tick at which its lease ends
    open: list[int] | None = None
    caps: list[float | None] | None = None
    arm: int | None = None
    probability: float = 0.0
    reserved: list[int] = []
    must: bool = False
    costs: list[list[float | None] | None] | None = None  # (d, m) by the price list of the request
    token: str = ""
    context: bytes | None = None
    held: list[HeldAccount] = []
    limited: list[int] = []


class Told(Event, tag="told"):
    """The outcome of a decision arrived.

    Here and below, ``units`` has the costs in grid units, by which accounts of limits were charged; None if there are
    none.
    """

    number: int
    reward: float
    costs: list[float]
    units: list[int] | None = None


class Billed(Event, tag="billed"):
    """The costs of a decision arrived before its reward; a ``Told`` with both follows when that arrives."""

    number: int
    costs: list[float]
    units: list[int] | None = None


class Earned(Event, tag="earned"):
    """The reward of a decision arrived before its costs; a ``Told`` with both follows when these arrive."""

    number: int
    reward: float


class Cancelled(Event, tag="cancelled"):
    """A decision was cancelled at known costs."""

    number: int
    costs: list[float]
    units: list[int] | None = None


class Refused(Event, tag="refused"):
    """The outcome of a decision was refused, because it cost more than the campaign accepts; nothing was charged.

    Only the first such outcome of a decision is an event.
    """

    number: int
    costs: list[float]


class Extended(Event, tag="extended"):
    """The lease of a decision was extended."""

    number: int
    until: int


class Expired(Event, tag="expired"):
    """Decisions expired or were forfeited: their reservations are charged.

    ``dropped`` lists the oldest expired decisions that were dropped to keep to the limit of their number. It is None
    only while the event happens, and in journals of releases that did not write it.
    """

    numbers: list[int]
    dropped: list[int] | None = None


class Dropped(Event, tag="dropped"):
    """The late windows of expired decisions ended; they can no longer be told."""

    numbers: list[int]


class Granted(Event, tag="granted"):
    """Budgets of the current season were increased."""

    amounts: list[float]


class Charged(Event, tag="charged"):
    """Money of the current season was spent outside the campaign."""

    amounts: list[float]


class Renewed(Event, tag="renewed"):
    """A new season began."""

    season: int
    rollover: float
    following: int | None  # when the next season begins, in milliseconds since 1970
    period: float | None = None  # seconds until then; None in journals of releases that did not pace by it


class ArmAdded(Event, tag="arm-added"):
    """An arm was added."""

    name: str
    cost_max: list[float]


class ArmOffered(Event, tag="arm-offered"):
    """An arm was retired, or is offered again."""

    arm: int
    offered: bool


class Observed(Event, tag="observed"):
    """The user's own rule chose an arm while the campaign was watching."""

    arm: int
    reward: float
    costs: list[float]
    probability: float | None = None
    context: bytes | None = None


class Studied(Event, tag="studied"):
    """The campaign learnt from the latest observations.

    ``mix`` has the probabilities with which it would choose each arm now; it is None only while they are computed. In
    a campaign with features, ``mixes`` has those for the context of each of these observations, computed before they
    were learnt from.
    """

    mix: list[float] | None = None
    mixes: list[list[float]] | None = None


class StateChanged(Event, tag="state-changed"):
    """An operator switched on, paused, resumed or closed the campaign, or a rule paused or closed it.

    Attributes:
        state: ``active``, ``paused`` or ``closed``.
        period: Seconds until the next refill, if a campaign that was watching is switched on.
        reason: The rule that changed the state, ``overrun`` or ``drained``; empty for a change by an operator.
    """

    state: str
    period: float | None = None
    reason: str = ""

    @property
    def new_state(self) -> str:
        """The state after the event; a campaign that an operator closes first waits for its pending decisions."""
        return "draining" if self.state == "closed" and not self.reason else self.state


class ClockSet(Event, tag="clock-set"):
    """The clock was set back by an operator: the times of earlier events lie in the future, because it was wrong."""

    following: int | None  # when the next season begins, in milliseconds since 1970
    period: float | None = None  # seconds until then, if the campaign is paced by them
    before: int = 0  # the time of the latest event, by the wrong clock
    ends: list[int] = []  # when the present period of each limit ends; 0 for a limit without periods


class Revised(Event, tag="revised"):
    """The expected number of remaining rounds was revised."""

    rounds_left: int


class Crossed(Event, tag="crossed"):
    """A threshold of a budget or of a limit was crossed, for the first time in its season or period.

    Attributes:
        percent: The threshold. 100 is also crossed when a request is refused because of what was spent.
        resource: The number of the resource.
        spent: The spending, in grid units.
        amount: The budget or the limit, in grid units.
        limit: The number of the limit; None for the budget of the campaign.
        label: The label; empty for the budget of the campaign.
        until: The time at which the account of the label ends, in milliseconds since 1970; 0 for the budget.
    """

    percent: int
    resource: int
    spent: int
    amount: int
    limit: int | None = None
    label: str = ""
    until: int = 0


AnyEvent = (
    Opened
    | Asked
    | Told
    | Billed
    | Earned
    | Cancelled
    | Refused
    | Extended
    | Expired
    | Dropped
    | Granted
    | Charged
    | Renewed
    | ArmAdded
    | ArmOffered
    | Observed
    | Studied
    | StateChanged
    | ClockSet
    | Revised
    | Crossed
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[AnyEvent])


class Delta(NamedTuple):
    """The change of the budget of one resource in one season, in grid units.

    Attributes:
        season: The season, from 0.
        new: Whether the season is new.
        granted: Change of the budget.
        reserved: Change of the reservations.
        spent: Change of the spending.
        overrun: Change of the spending above reservations.
    """

    season: int
    resource: int
    new: bool
    granted: int
    reserved: int
    spent: int
    overrun: int


class RawContext(NamedTuple):
    """The context of a request as it was sent, which is stored outside the journal.

    Attributes:
        number: The number of the decision; for an observation its number times -1.
        until: When it is deleted, in milliseconds since 1970.
        body: The context as JSON.
    """

    number: int
    until: int
    body: bytes


class Segment(NamedTuple):
    """The events of one commit.

    Attributes:
        first: The number of the first event, from 1.
        last: The number of the last event.
        at: The time of the last event, in milliseconds since 1970.
        epoch: The epoch of the owner that wrote the segment.
        deltas: The changes of the budgets.
        body: The encoded events.
        chain: The hash of the previous segment's hash and the body.
        entries: Entries of the audit that are written in the same transaction: when, who, action, campaign and detail.
        milestone: A milestone after these events that is written in the same transaction: the number of decisions, and
            the encoded campaign.
        contexts: Contexts as they were sent, which are written in the same transaction.
    """

    campaign: str
    first: int
    last: int
    at: int
    epoch: int
    deltas: tuple[Delta, ...]
    body: bytes
    chain: bytes
    entries: tuple[tuple[int, str, str, str | None, str], ...] = ()
    milestone: tuple[int, bytes] | None = None
    contexts: tuple[RawContext, ...] = ()


def encode(events: list[Any]) -> bytes:
    """Encode events as the body of a segment."""
    return _encoder.encode(events)


def decode(body: bytes) -> list[Any]:
    """Decode the body of a segment.

    Raises:
        JournalError: The body is not a list of events.
    """
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise JournalError(f"a segment cannot be read: {error}") from error


def chained(before: bytes, body: bytes) -> bytes:
    """Extend the hash chain by one segment.

    >>> chained(START, b"").hex()[:8]
    '66687aad'
    """
    return hashlib.sha256(before + body).digest()


def verify(segments: Iterable[Segment], chain: bytes = START, seq: int = 0) -> tuple[int, bytes]:
    """Check that segments continue a journal without gaps and with the right hashes.

    Args:
        segments: The segments, oldest first.
        chain: The hash before them.
        seq: The number of the event before them.

    Returns:
        The number of the last event and the hash after it.

    Raises:
        JournalError: A segment is missing, was changed, or does not have as many events as it says.
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
