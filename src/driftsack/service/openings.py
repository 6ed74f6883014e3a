"""Openings: which request opened a campaign, and whether one that is repeated has the same content.

The campaigns of a service have different owners, so the store is asked: the first event of each journal says it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from driftsack.service import journal
from driftsack.service.config import Config
from driftsack.service.refusals import Refusal
from driftsack.service.store.interface import Store


def check_key(store: Store, key: str, digest: bytes) -> None:
    """Refuse to open a campaign with the key of another opening.

    Args:
        store: The store.
        key: The idempotency key.
        digest: The digest of the request.

    Raises:
        Refusal: A campaign was opened with this key and another body.
    """
    for row in store.campaigns():
        event = _first(store, row.name)
        if event is not None and event.key == key and event.digest != digest:
            raise Refusal(
                "key-reused",
                f"the campaign {row.name} was opened with this Idempotency-Key and another body; use a new key.",
            )


def is_same(store: Store, name: str, config: Config) -> bool:
    """Whether a campaign exists that was opened with the same settings.

    Args:
        store: The store.
        name: The campaign.
        config: The settings.

    Returns:
        Whether it does.
    """
    rows = (row for row in store.campaigns() if row.name == name)
    return any(msgspec.msgpack.decode(row.config, type=Config) == config for row in rows)


def _first(store: Store, name: str) -> Any:
    """The first event of a journal; None if it has none."""
    segment = next(iter(store.segments(name)), None)
    return None if segment is None else next(iter(journal.decode(segment.body)), None)
