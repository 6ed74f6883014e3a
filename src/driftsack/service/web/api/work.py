"""``WorkBudgets``: how much work each key may cause, besides the number of its requests.

Explaining a decision, an export or a large exchange takes seconds, an ordinary request 0.1 milliseconds. Each key may
use a share of a processor for such requests. Once it has used more, these requests of the key are refused until the
debt is paid off, but only while other keys are active, so that a key alone may use the whole service. While they are,
its exchanges also pause after each part, so that all of them together use at most a sixth of the event loop.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.slices import Meter

SHARE: Final = 0.1  # seconds of work per second
AT_ONCE: Final = 1.0  # seconds of work that a key may save up
PAUSE: Final = 1.0  # seconds after which a request is refused
OTHERS_FIRST: Final = 5.0  # seconds for which other keys go first after each second of an exchange
REFUSED: Final = 0.01  # seconds of work that a refused exchange counts as, with reading it and answering
ACTIVE: Final = 2.0  # seconds after its latest request during which a key counts as active


class WorkBudgets:
    """The budgets of work of the keys of a process.

    Args:
        share: Seconds of work per second that each key may cause while others are active; 0 for no limit.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, share: float = SHARE, clock: Callable[[], float] = time.monotonic) -> None:
        self._share, self._clock = share, clock
        self._active: dict[str, float] = {}  # the time of the latest request, by key
        self._saved: dict[str, tuple[float, float]] = {}  # seconds of work that are left, and when, by key
        self._turns: dict[str, asyncio.Lock] = {}
        self.running: Counter[str] = Counter()  # exchanges, by key

    def note(self, prefix: str) -> None:
        """Note a request of a key."""
        self._active[prefix] = self._clock()

    def check(self, prefix: str) -> None:
        """Raise a refusal if a key has used up its budget while other keys are active."""
        left = self._left(prefix)
        if not self._share or left >= 0.0 or not self._others_active(prefix):
            return
        raise Refusal(
            "rate-limited",
            f"the key has used more than {self._share:g} seconds of work a second for explanations, exports and "
            "exchanges; other keys are waiting.",
            math.ceil(-left / self._share),
        )

    async def admit(self, prefix: str) -> None:
        """Raise a refusal as :meth:`check` does, but not at once, because refusing again and again is work, too."""
        try:
            self.check(prefix)
        except Refusal:
            await asyncio.sleep(PAUSE)
            raise

    def charge(self, prefix: str, seconds: float) -> None:
        """Charge a key for work that was done for it."""
        self._saved[prefix] = (self._left(prefix) - seconds, self._clock())

    def meter(self, prefix: str) -> KeyMeter:
        """Return what charges a key for an exchange."""
        return KeyMeter(self, prefix)

    def pause_after(self, prefix: str, seconds: float) -> float:
        """Return the seconds for which others go first after a part of one of the exchanges of a key."""
        wanted = self._share and self._others_active(prefix)
        return OTHERS_FIRST * self.running[prefix] * seconds if wanted else 0.0

    def turn(self, prefix: str) -> asyncio.Lock:
        """Return the lock with which long requests of a key wait for each other."""
        return self._turns.setdefault(prefix, asyncio.Lock())

    def _left(self, prefix: str) -> float:
        left, at = self._saved.get(prefix, (AT_ONCE, 0.0))
        return min(AT_ONCE, left + (self._clock() - at) * self._share)

    def _others_active(self, prefix: str) -> bool:
        since = self._clock() - ACTIVE
        return any(at >= since for other, at in self._active.items() if other != prefix)


class KeyMeter(Meter):
    """Charges a key for an exchange.

    Args:
        budgets: The budgets of all keys.
        prefix: The key.
    """

    def __init__(self, budgets: WorkBudgets, prefix: str) -> None:
        self._budgets, self._prefix = budgets, prefix

    def __enter__(self) -> None:
        """Begin; raises a refusal if earlier exchanges have used up the budget of the key."""
        self._budgets.check(self._prefix)
        self._budgets.running[self._prefix] += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End; refused exchanges are charged, too, because a client may repeat them without end."""
        if error is not None:
            self._budgets.charge(self._prefix, REFUSED)
        self._budgets.running[self._prefix] -= 1
        if not self._budgets.running[self._prefix]:
            del self._budgets.running[self._prefix]

    def charge(self, seconds: float) -> float:
        """Charge a part, and return the seconds for which other keys go first."""
        self._budgets.charge(self._prefix, seconds)
        return self._budgets.pause_after(self._prefix, seconds)


class Timed:
    """A function that is called in a thread and whose duration is measured.

    On a busy machine the duration is longer than the processor time, and others are delayed for as long.

    Attributes:
        seconds: The duration of the call.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self.seconds = function, 0.0

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        begin = time.perf_counter()
        try:
            return self._function(*arguments)
        finally:
            self.seconds = time.perf_counter() - begin
