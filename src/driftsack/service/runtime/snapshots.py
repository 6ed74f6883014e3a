"""Snapshots: an encoded campaign, so that a recovery replays only the events after it."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from driftsack.core.errors import DriftsackError
from driftsack.core.release import __version__
from driftsack.policies.learner import Learner
from driftsack.service.domain.book import Book
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.config import Config
from driftsack.service.domain.journal import JournalError

LAYOUT: Final = 1


class Content(msgspec.Struct):
    """The content of a snapshot.

    Attributes:
        library: The version of the library that wrote it.
        layout: The version of this layout.
        state_hash: The hash of the learner's state.
        book: The encoded book.
        learner: The learner, as ``Learner.to_bytes`` writes it.
        digest: The SHA-256 of book and learner.
    """

    library: str
    layout: int
    state_hash: str
    book: bytes
    learner: bytes
    digest: bytes


def write_snapshot(campaign: Campaign) -> bytes:
    """Encode a campaign, which must not have events that wait for a commit."""
    book, learner = msgspec.msgpack.encode(campaign.book), campaign.learner.to_bytes()
    digest = hashlib.sha256(book + learner).digest()
    content = Content(__version__, LAYOUT, campaign.learner.state_hash(), book, learner, digest)
    return msgspec.msgpack.encode(content)


def read_snapshot(config: Config, data: bytes) -> Campaign:
    """Decode a campaign with the given settings from the bytes of :func:`write_snapshot`.

    Raises:
        JournalError: The bytes are damaged or have another layout.
    """
    try:
        content = msgspec.msgpack.decode(data, type=Content)
        if content.layout != LAYOUT:
            raise JournalError(f"a snapshot must have layout {LAYOUT}, got {content.layout}.")
        if hashlib.sha256(content.book + content.learner).digest() != content.digest:
            raise JournalError("a snapshot is damaged: its digest is wrong.")
        campaign = Campaign(
            config, msgspec.msgpack.decode(content.book, type=Book), Learner.from_bytes(content.learner)
        )
    except (msgspec.MsgspecError, DriftsackError, ValueError) as error:
        raise error if isinstance(error, JournalError) else JournalError(f"a snapshot is damaged: {error}") from error
    if campaign.learner.state_hash() != content.state_hash:
        raise JournalError("a snapshot is damaged: its learner has another digest.")
    return campaign
