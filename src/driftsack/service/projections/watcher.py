"""``Watcher``: follows the journals of campaigns on demand, in small steps."""

from __future__ import annotations

import asyncio
import itertools
from typing import Final

from driftsack.service.domain.config import Config
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.track import Track
from driftsack.service.runtime.keeper import Keeper
from driftsack.service.store.interface import CampaignRow, StoreError

AT_ONCE: Final = 400  # segments per step, so that requests do not have to wait
PATIENCE: Final = 40  # steps per call


class Watcher:
    """Keeps the tracks of campaigns up to date.

    Args:
        keeper: Gives access to the store in threads.

    Attributes:
        tracks: The tracks that were asked for, by campaign.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self.tracks: dict[str, Track] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def rows(self) -> list[CampaignRow]:
        """Return all campaigns.

        Raises:
            Refusal: The store is unavailable.
        """
        try:
            return await self._keeper.in_thread(self._keeper.store.campaigns)
        except StoreError as error:
            raise Refusal.unavailable(str(error)) from error

    async def track(self, name: str, goes: int = PATIENCE) -> tuple[Track, bool]:
        """Bring the track of a campaign up to date.

        Args:
            name: The campaign.
            goes: Maximum number of steps of ``AT_ONCE`` segments.

        Returns:
            The track, and whether it has reached the end of the journal.

        Raises:
            Refusal: There is no such campaign, or the store is unavailable.
        """
        # Start a track at the first request for it.
        if name not in self.tracks:
            rows = {row.name: row for row in await self.rows()}
            if name not in rows:
                raise Refusal("unknown-campaign", f"there is no campaign {name!r:.60}.")
            config = Config.from_bytes(rows[name].config)
            self.tracks.setdefault(name, Track(name, config))
        # Read the journal from where the track ends; one caller at a time.
        track = self.tracks[name]
        async with self._locks.setdefault(name, asyncio.Lock()):
            for _ in range(goes):
                try:
                    if not await self._keeper.in_thread(self._read, track):
                        return track, True
                except StoreError as error:
                    raise Refusal.unavailable(str(error)) from error
        return track, False

    def _read(self, track: Track) -> bool:
        """Read some segments, and return whether there may be more."""
        count = 0
        for segment in itertools.islice(self._keeper.store.segments(track.name, track.first), AT_ONCE):
            track.feed(segment)
            count += 1
        if count:
            track.close_bucket()
        return count == AT_ONCE
