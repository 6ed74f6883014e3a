"""Whether the loop of a trial is interpreted or compiled: a short simulation is done before a compiler is.

A simulation of up to :data:`~driftsack.numerics.warm_up.MANY` rounds starts interpreted, unless machine code has been
loaded already, and goes over if it takes longer than expected. A longer one compiles first, and says so.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from driftsack.core.locks import thread_lock
from driftsack.game.protocol import refuse_redefined
from driftsack.numerics.compiled import classes_in, copy_for, interpreted, is_packaged, mode
from driftsack.numerics.warm_up import MANY

ROUNDS_AT_ONCE: Final = 5_000  # in compiled loops, between which Python can be interrupted
INTERPRETED_AT_ONCE: Final = 50
LONGEST: Final = 2.0  # seconds of interpretation
SILENT: Final = 1.0  # seconds of compilation that are not worth a message


class TrialLoop:
    """Calls the kernel of a loop of rounds, part by part, in either form.

    Args:
        kernel: The kernel; its last argument is the round before which it pauses.
        state: The policy's state.
        rounds: The number of rounds of all trials together; None to compile first in any case.
        name: The name of the policy, for messages.
        stop: Set when the trials are to end; then a call raises ``KeyboardInterrupt``.
    """

    def __init__(
        self,
        kernel: Callable[..., int],
        state: Any,
        rounds: int | None = None,
        name: str = "the policy",
        stop: threading.Event | None = None,
    ) -> None:
        self._kernel, self.name = kernel, name
        self._stop = stop
        self._prepared = False
        self._preparing = thread_lock()
        self._spent = 0.0
        few = rounds is not None and rounds <= MANY and is_packaged(classes_in(state))
        refuse_redefined(state)
        compiled: Any = copy_for(kernel, state)
        self._compiled = compiled
        self._interprets = mode() == "behind" and few and not compiled.is_loaded

    def __call__(self, played: int, *arguments: Any) -> int:
        """Run some rounds after the ``played`` ones; return the status of the kernel."""
        if self._stop is not None and self._stop.is_set():
            raise KeyboardInterrupt
        if self._interprets and self._spent < LONGEST:
            begun = time.perf_counter()
            with np.errstate(all="ignore"):
                status = int(interpreted(self._kernel)(*arguments, played + INTERPRETED_AT_ONCE))
            self._spent += time.perf_counter() - begun
            return status
        arguments = (*arguments, played + ROUNDS_AT_ONCE)
        if not self._prepared:
            self._prepare(arguments)
        return int(self._compiled(*arguments))

    def _prepare(self, arguments: tuple[Any, ...]) -> None:
        """Load or compile the machine code, with a message if it takes long."""
        with self._preparing:
            if not self._prepared and mode() == "behind":
                from numba import typeof

                with _announced(f"compiling the simulation of {self.name}; later runs load it from disk"):
                    self._compiled.dispatcher.compile(tuple(typeof(value) for value in arguments))
            self._prepared = True


@contextmanager
def _announced(what: str) -> Iterator[None]:
    """Write to stderr what is going on, if it takes longer than a second, and in the end how long it took."""
    begun, said = time.perf_counter(), threading.Event()

    def say() -> None:
        said.set()
        print(f"driftsack: {what} ...", file=sys.stderr, flush=True)  # noqa: T201

    timer = threading.Timer(SILENT, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if said.is_set():
            print(f"driftsack: compiled in {time.perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)  # noqa: T201
