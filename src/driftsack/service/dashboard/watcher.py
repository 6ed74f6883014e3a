"""``Watcher``: follows the journals of campaigns for the pages, a little at a time, and only while somebody looks."""

from __future__ import annotations

import asyncio
import itertools
from typing import Final

import msgspec

from driftsack.service.config import Config
from driftsack.service.dashboard.track import Track
from driftsack.service.owner import Keeper
from driftsack.service.refusals import Refusal
from driftsack.service.store.interface import CampaignRow, StoreError

AT_ONCE: Final = 400  # segments that are read in one go, so that requests are not kept waiting
PATIENCE: Final = 40


class Watcher:
    """The tracks of campaigns.

    Args:
        keeper: Where the journals are.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._tracks: dict[str, Track] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def rows(self) -> list[CampaignRow]:
        """Every campaign.

        Raises:
            Refusal: The store does not answer.
        """
        try:
            return await self._keeper.in_thread(self._keeper.store.campaigns)
        except StoreError as error:
            raise Refusal.unavailable(str(error)) from error

    async def track(self, name: str, goes: int = PATIENCE) -> tuple[Track, bool]:
        """A campaign as its journal has it.

        Args:
            name: The campaign.
            goes: How often some segments are read before the track is shown as far as it is.

        Returns:
            Its track, and whether it has come to the end of the journal.

        Raises:
            Refusal: There is no such campaign, or the store does not answer.
        """
        if name not in self._tracks:
            rows = {row.name: row for row in await self.rows()}
            if name not in rows:
                raise Refusal("unknown-campaign", f"there is no campaign {name!r:.60}.")
            config = msgspec.msgpack.decode(rows[name].config, type=Config)
            self._tracks.setdefault(name, Track(name, config))
        track = self._tracks[name]
        async with self._locks.setdefault(name, asyncio.Lock()):
            for _ in range(goes):
                try:
                    if not await self._keeper.in_thread(self._read, track):
                        return track, True
                except StoreError as error:
                    raise Refusal.unavailable(str(error)) from error
        return track, False

    def _read(self, track: Track) -> bool:
        """Take in some segments; return whether there may be more."""
        count = 0
        for segment in itertools.islice(self._keeper.store.segments(track.name, track.first), AT_ONCE):
            track.feed(segment)
            count += 1
        if count:
            track.close_bucket()
        return count == AT_ONCE
