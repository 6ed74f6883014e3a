"""``Watcher``: follows the journals of campaigns on demand, in small steps."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.beginnings import begun
from driftsack.service.projections.track import Track
from driftsack.service.runtime.keeper import Keeper
from driftsack.service.store.interface import StoreError

Result = TypeVar("Result")
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
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # those that are in use
        self._reading = asyncio.Lock()  # of the positions
        self._positions: dict[str, int] = {}
        self._positions_at = -math.inf

    async def positions(self, age: float) -> dict[str, int]:
        """Return the number of events of every campaign, as it was at most ``age`` seconds ago.

        Raises:
            Refusal: The store is unavailable.
        """
        async with self._reading:
            if time.monotonic() - self._positions_at >= age:
                self._positions = await self._asked(self._keeper.store.positions)
                self._positions_at = time.monotonic()
            return self._positions

    async def names(self) -> list[str]:
        """Return the names of all campaigns, sorted.

        Raises:
            Refusal: The store is unavailable.
        """
        return await self._asked(self._keeper.store.names)

    async def _asked(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a short function of the store in a thread."""
        try:
            return await self._keeper.ask_store(function, *arguments)
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
            Refusal: There is no such campaign, it is damaged, or the store is unavailable.
        """
        # Read the journal from where the track ends; one caller at a time.
        async with self._lock(name):
            try:
                track = await self._keeper.in_thread(self._current, name)
                for _ in range(goes):
                    if not await self._keeper.in_thread(self._read, track):
                        return track, True
            except Refusal:
                raise
            except StoreError as error:
                raise Refusal.unavailable(str(error)) from error
            except Exception as error:
                raise _damaged(name, error) from error
        return track, False

    def _lock(self, name: str) -> asyncio.Lock:
        """Return the lock of a track; it is dropped when nobody holds it or waits for it."""
        return self._locks.setdefault(name, asyncio.Lock())

    def _current(self, name: str) -> Track:
        """Return the track of a campaign; a new one if it was deleted or archived beyond its track."""
        store, track = self._keeper.store, self.tracks.get(name)
        row, opening, base = store.campaign(name), store.opening(name), store.base(name)
        if row is None:
            self.tracks.pop(name, None)
            raise Refusal("unknown-campaign", f"there is no campaign {name!r:.60}.")
        deleted = track is None or opening is None or track.opening != opening.chain
        if track is None or deleted or (base is not None and track.seq < base.seq):
            track = self.tracks[name] = begun(store, row)
        return track

    async def shown(self, name: str, show: Callable[[Track, bool], Result]) -> Result:
        """Bring the track of a campaign up to date, and call a function with the result of :meth:`track` in a thread.

        The track does not change meanwhile, and requests do not wait.
        """
        track, done = await self.track(name)
        async with self._lock(name):
            return await self._keeper.in_thread(show, track, done)

    def _read(self, track: Track) -> bool:
        """Read some segments, and return whether there may be more."""
        count = 0
        for segment in itertools.islice(self._keeper.store.segments(track.name, track.first), AT_ONCE):
            track.feed(segment)
            count += 1
        if count:
            track.close_bucket()
        return count == AT_ONCE


def _damaged(name: str, error: Exception) -> Refusal:
    return Refusal("damaged", f"the campaign {name} cannot be shown: {error}")
