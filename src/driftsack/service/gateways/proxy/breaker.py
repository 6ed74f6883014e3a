"""``CircuitBreaker``: stops using what fails repeatedly, and probes it again after a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

FAILURES: Final = 3  # in a row, after which a circuit opens
LONGEST: Final = 10.0  # rests: a circuit that stays open is probed at least this often


@dataclass
class Circuit:
    """What is known of one name.

    Attributes:
        failures: The failures since the last success.
        rests: How often it has rested since the last success.
        until: When it may be probed; 0 while it is in use.
        probed: When the present probe counts as lost; 0 without a probe.
    """

    failures: int = 0
    rests: int = 0
    until: float = 0.0
    probed: float = 0.0


class CircuitBreaker:
    """The circuits of several names.

    Args:
        rest: Seconds for which a name rests first; each further rest takes twice as long, up to ten times ``rest``.
        probe: Seconds after which a probe without an outcome counts as lost.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, rest: float, probe: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._rest, self._probe, self._clock = rest, probe, clock
        self._circuits: dict[str, Circuit] = {}

    def allows(self, name: str) -> bool:
        """Return whether a name may be used: its circuit is closed, or it is time for a probe."""
        circuit = self._circuits.get(name)
        now = self._clock()
        return circuit is None or not circuit.until or (now >= circuit.until and now >= circuit.probed)

    def allowed(self, names: Iterable[str]) -> list[str]:
        """Return the names that may be used."""
        return [name for name in names if self.allows(name)]

    def begin(self, name: str) -> None:
        """Note that a name is used; if it rests, this is the probe, and there is no other beside it."""
        circuit = self._circuits.get(name)
        if circuit is not None and circuit.until:
            circuit.probed = self._clock() + self._probe

    def leave(self, name: str) -> None:
        """Note that a use said nothing about whether the name works."""
        circuit = self._circuits.get(name)
        if circuit is not None:
            circuit.probed = 0.0

    def succeeded(self, name: str) -> None:
        """Note a success, which closes the circuit."""
        self._circuits.pop(name, None)

    def failed(self, name: str, fatal: bool = False, rest: float = 0.0) -> None:
        """Note a failure.

        Args:
            fatal: Whether one failure is enough, because a repetition will fail, too.
            rest: Seconds for which the name asked to be left alone.
        """
        circuit = self._circuits.setdefault(name, Circuit())
        circuit.failures += 1
        circuit.probed = 0.0
        if fatal or rest or circuit.until or circuit.failures >= FAILURES:
            own = min(self._rest * 2**circuit.rests, self._rest * LONGEST)
            circuit.rests = min(circuit.rests + 1, 32)
            circuit.until = self._clock() + max(own, min(rest, self._rest * LONGEST))

    def waits(self, names: Iterable[str]) -> float:
        """Return the seconds until the first of some names may be used."""
        now = self._clock()
        untils = [max(c.until, c.probed) - now for name in names if (c := self._circuits.get(name)) is not None]
        return max(min(untils, default=0.0), 0.0)

    def resting(self) -> list[str]:
        """Return the names that are not in use."""
        return [name for name in self._circuits if not self.allows(name)]
