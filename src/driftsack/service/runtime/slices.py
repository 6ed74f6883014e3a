"""Long work on the event loop, in slices between which other requests are answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Final, TypeVar

Result = TypeVar("Result")
SLICE: Final = 0.003  # seconds for which the work keeps the event loop busy


class Meter:
    """Charges somebody for long work while the block runs; this one charges nobody."""

    def __enter__(self) -> None:
        """Begin the work; raises a refusal if it is not allowed now."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the work."""

    def charge(self, seconds: float) -> float:
        """Charge a part of the work, and return the seconds for which other requests go first."""
        return 0.0


async def in_slices(
    steps: Generator[None, None, Result], charge: Callable[[float], float], check: Callable[[], None]
) -> Result:
    """Return the result of a generator, which is interrupted for other requests after each slice of time.

    Args:
        steps: The generator.
        charge: Called with the seconds that each slice took; returns the seconds until the next one.
        check: Called after each interruption; raises if the work cannot continue.
    """
    begin = time.perf_counter()
    try:
        while True:
            next(steps)
            now = time.perf_counter()
            if now - begin > SLICE:
                await asyncio.sleep(charge(now - begin))
                begin = time.perf_counter()
                check()
    except StopIteration as done:
        charge(time.perf_counter() - begin)
        return done.value  # type: ignore[no-any-return]
