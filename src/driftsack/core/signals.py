"""Defer signal handlers while several instructions of Python must run as one."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the functions of signal without its enumerations, which are slow
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Final

_NUMBERS: Final = sorted(int(number) for number in _signal.valid_signals())


class DeferredSignals:
    """A context in which the signal handlers of Python do not run; those of signals that arrive run at its end.

    Handlers run in the main thread only, so elsewhere there is nothing to do.
    """

    __slots__ = ("_arrived", "_handlers")

    def __init__(self) -> None:
        self._handlers: list[tuple[int, Any]] = []
        self._arrived: list[int] = []

    def __enter__(self) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        try:
            for number in _NUMBERS:
                handler = _signal.getsignal(number)
                if callable(handler):
                    self._handlers.append((number, handler))
                    _signal.signal(number, self._note)
        except ValueError:  # not the main thread of the main interpreter, whatever ``threading`` says
            if _signal.getsignal(self._handlers[-1][0]) is not self._handlers[-1][1]:
                self._restore()
                raise
            self._handlers.clear()
        except BaseException:  # of a handler that is not deferred yet
            self._restore()
            raise

    def _note(self, number: int, _: FrameType | None) -> None:
        self._arrived.append(number)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handlers:
            self._restore()

    def _restore(self) -> None:
        """Put every handler back, also if one that is back already raises; then let the signals arrive."""
        raised: BaseException | None = None
        while self._handlers:
            try:
                _signal.signal(*self._handlers[-1])
                self._handlers.pop()
            except BaseException as error:
                raised = error
        for number in dict.fromkeys(self._arrived):
            handler = _signal.getsignal(number)  # called, not raised: asyncio has been told already
            try:
                if callable(handler):
                    handler(number, sys._getframe(2))  # noqa: SLF001
            except BaseException as error:  # the others arrive, too
                raised = error
        if raised is not None:
            raise raised
