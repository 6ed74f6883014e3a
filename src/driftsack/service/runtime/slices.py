"""Long work on the event loop, in slices between which other requests are answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar

Result = TypeVar("Result")
SLICE: Final = 0.003  # seconds for which the work keeps the event loop busy


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
