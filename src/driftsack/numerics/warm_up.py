"""Interpret kernels first, and go over to machine code when it is ready.

A :class:`WarmUp` belongs to one user of kernels, such as a learner, which starts interpreted. Once interpretation has
taken :data:`PATIENCE` seconds, machine code is prepared (:mod:`driftsack.numerics.machine_code`). The user asks
:meth:`WarmUp.ready` between two calls, and goes over when it is. Nothing depends on when that happens: both forms
change the same arrays in the same way.

A call of machine code is one instruction for Python, so signal handlers see no half of it. While a kernel is
interpreted, they are deferred.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from driftsack.core.signals import DeferredSignals
from driftsack.numerics.compiled import interpreted, is_packaged, mode
from driftsack.numerics.machine_code import KernelCall, MachineCode, machine_code

PATIENCE: Final = 0.05  # seconds of interpretation after which machine code is prepared
MANY: Final = 2_000  # rounds in one call that are worth waiting for machine code
SLOW: Final = 0.005  # seconds per call that are worth a message
CALLS_BEFORE_MESSAGE: Final = 4  # the first one also makes the interpreted forms

_loaded: Final[set[tuple[Callable[..., Any], tuple[type, ...]]]] = set()  # whose machine code is in this process
_log = logging.getLogger("driftsack")


class WarmUp:
    """The way of one user of kernels from interpretation to machine code.

    Args:
        calls: Returns the calls that the user makes; asked once, when machine code is prepared.
        kernel: The first kernel of these calls.
        classes: The classes in the state. Once machine code for them has been loaded, other users in this process run
            it from the beginning. Code outside the package is never interpreted by itself: nobody has checked that
            both of its forms do the same.
    """

    def __init__(
        self, calls: Callable[[], Sequence[KernelCall]], kernel: Callable[..., Any], classes: tuple[type, ...]
    ) -> None:
        self._key = (kernel, classes)
        loaded = self._key in _loaded or not is_packaged(classes)
        self.compiles_first = mode() == "first" or (mode() == "behind" and loaded)
        self._calls = calls
        self._code: MachineCode | None = None
        self._spent = 0.0
        self._count = 0
        self._waits = mode() == "behind"  # whether there is something to wait for

    def ready(self, count: int = 1) -> bool:
        """Return whether the calls run machine code from now on; begin to prepare it when it is time.

        Args:
            count: The number of rounds in the next call; for more than :data:`MANY` the machine code is awaited.
        """
        if self.compiles_first:
            return True
        if not self._waits or (self._spent < PATIENCE and count <= MANY):
            return False
        if self._code is None:
            self._say_if_slow()
        if count > MANY:
            self.compile()
        if not self._prepared().advance():
            return False
        _loaded.add(self._key)
        return True

    def compile(self) -> None:
        """Compile the machine code into the cache, or load it, and wait for it."""
        self._prepared().load()

    def _prepared(self) -> MachineCode:
        if self._code is None:
            self._code = machine_code(self._calls())
        return self._code

    def interpret(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Run the interpreted form of a kernel as if it were one instruction."""
        begun = time.perf_counter()
        with DeferredSignals(), np.errstate(all="ignore"):
            result = interpreted(kernel)(*arguments)
        self._spent += time.perf_counter() - begun
        self._count += 1
        return result.item() if isinstance(result, np.generic) else result

    def call(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Run a kernel that is too small to be worth machine code of its own, unless that is compiled first."""
        return kernel(*arguments) if self.compiles_first else self.interpret(kernel, *arguments)

    def _say_if_slow(self) -> None:
        if self._count < CALLS_BEFORE_MESSAGE or self._spent < SLOW * self._count:
            return
        _log.warning(
            "kernels are interpreted, at %.0f ms a call, until they are compiled; DRIFTSACK_COMPILE=first or "
            "`driftsack compile` avoids it.",
            1000 * self._spent / self._count,
        )


class Warming:
    """A kernel with pinned arguments that is interpreted until its machine code is ready.

    Args:
        warm_up: The warm-up of its user.
        kernel: The kernel.
        fixed: The first arguments, as for :func:`driftsack.numerics.pinned.pin`.
        go_over: Called when machine code is ready, before the kernel runs; it replaces this object.
    """

    __slots__ = ("_fixed", "_go_over", "_kernel", "_pinned", "_warm_up")

    def __init__(
        self,
        warm_up: WarmUp,
        kernel: Callable[..., Any],
        fixed: tuple[Any, ...],
        go_over: Callable[[], object] = lambda: None,
    ) -> None:
        self._warm_up, self._kernel, self._fixed, self._go_over = warm_up, kernel, fixed, go_over
        self._pinned: Callable[..., Any] | None = None

    def __call__(self, *others: Any) -> Any:
        """Call the kernel with the remaining arguments."""
        if self._pinned is None and self._warm_up.ready():
            from driftsack.numerics.pinned import pin

            self._pinned = pin(self._kernel, *self._fixed)
            self._go_over()
        if self._pinned is not None:
            return self._pinned(*others)
        return self._warm_up.interpret(self._kernel, *self._fixed, *others)
