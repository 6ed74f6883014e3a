"""Openings: whether a repeated request to open a campaign has the same content as the first one.

Campaigns may have different owners, so the first event of each journal in the store is compared.
"""

from __future__ import annotations

from typing import Any

from driftsack.service.domain import journal
from driftsack.service.domain.config import Config
from driftsack.service.domain.journal import JournalError
from driftsack.service.domain.refusals import Refusal
from driftsack.service.store.interface import Store


def check_key(store: Store, key: str, digest: bytes) -> None:
    """Check that no campaign was opened with the same idempotency key and another request.

    Raises:
        Refusal: A campaign was opened with this key and another body.
    """
    for name in store.names():
        try:
            event = _first(store, name)
        except JournalError:  # of a damaged campaign
            continue
        if event is not None and event.key == key and event.digest != digest:
            raise Refusal(
                "key-reused",
                f"the campaign {name} was opened with this Idempotency-Key and another body; use a new key.",
            )


def is_same(store: Store, name: str, config: Config) -> bool:
    """Whether a campaign of this name exists that was opened with the same settings."""
    row = store.campaign(name)
    return row is not None and Config.from_bytes(row.config) == config


def _first(store: Store, name: str) -> Any:
    """The first event of a journal; None if the journal is empty."""
    segment = store.opening(name)
    return None if segment is None else next(iter(journal.decode(segment.body)), None)
