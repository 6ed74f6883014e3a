"""Snapshots: an encoded campaign, so that a recovery replays only the events after it."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from driftsack.core.errors import DriftsackError
from driftsack.core.release import __version__
from driftsack.policies.learner import Learner
from driftsack.service.domain.accounts import Saved
from driftsack.service.domain.book import Book
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.config import Config
from driftsack.service.domain.journal import JournalError
from driftsack.service.store.interface import SnapshotRow

LAYOUT: Final = 1


class Content(msgspec.Struct):
    """The content of a snapshot.

    Attributes:
        library: The version of the library that wrote it.
        layout: The version of this layout.
        state_hash: The hash of the learner's state.
        learner: The learner, as ``Learner.to_bytes`` writes it.
        digest: The SHA-256 of book, learner and limits.
        limits: The accounts of limits; empty without limits.
    """

    library: str
    layout: int
    state_hash: str
    book: bytes
    learner: bytes
    digest: bytes
    limits: bytes = b""


def write_snapshot(campaign: Campaign) -> bytes:
    """Encode a campaign, which must not have events that wait for a commit."""
    limits = msgspec.msgpack.encode(campaign.limits.save()) if campaign.limits.rules else b""
    return _written(campaign, campaign.book, limits)


def _written(campaign: Campaign, book: Book, limits: bytes) -> bytes:
    """Encode a campaign with the given book and accounts of limits."""
    encoded, learner = msgspec.msgpack.encode(book), campaign.learner.to_bytes()
    digest = _digest(encoded, learner, limits)
    content = Content(__version__, LAYOUT, campaign.learner.state_hash(), encoded, learner, digest, limits)
    return msgspec.msgpack.encode(content)


def _digest(*parts: bytes) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.digest()


def write_milestone(campaign: Campaign) -> bytes:
    """Encode a campaign without settled decisions, idempotency cache and limits, which explanations do not need."""
    book = msgspec.structs.replace(campaign.book, settled={}, keys={}, writes=[], changes=[], tellers={})
    return _written(campaign, book, b"")


def read_book(snapshot: SnapshotRow) -> Book:
    """Decode the book in a snapshot, without its learner.

    Raises:
        JournalError: The bytes are damaged.
    """
    try:
        return msgspec.msgpack.decode(msgspec.msgpack.decode(snapshot.body, type=Content).book, type=Book)
    except (msgspec.MsgspecError, ValueError) as error:
        raise JournalError(f"a snapshot is damaged: {error}") from error


def read_snapshot(config: Config, data: bytes) -> Campaign:
    """Decode a campaign with the given settings from the bytes of :func:`write_snapshot`.

    Raises:
        JournalError: The bytes are damaged or have another layout.
    """
    try:
        content = msgspec.msgpack.decode(data, type=Content)
        if content.layout != LAYOUT:
            raise JournalError(f"a snapshot must have layout {LAYOUT}, got {content.layout}.")
        if _digest(content.book, content.learner, content.limits) != content.digest:
            raise JournalError("a snapshot is damaged: its digest is wrong.")
        campaign = Campaign(
            config, msgspec.msgpack.decode(content.book, type=Book), Learner.from_bytes(content.learner)
        )
        if content.limits:
            campaign.limits.restore(msgspec.msgpack.decode(content.limits, type=list[Saved]))
    except (msgspec.MsgspecError, DriftsackError, ValueError) as error:
        raise error if isinstance(error, JournalError) else JournalError(f"a snapshot is damaged: {error}") from error
    if campaign.learner.state_hash() != content.state_hash:
        raise JournalError("a snapshot is damaged: its learner has another digest.")
    return campaign
