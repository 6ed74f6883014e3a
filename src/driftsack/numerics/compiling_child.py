"""The child process that compiles kernels into the cache, see :mod:`driftsack.numerics.machine_code`."""

from __future__ import annotations

import json
import operator
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import signature
from typing import Any, BinaryIO, Final

from driftsack.numerics.compiled import copy_for
from driftsack.numerics.exemplars import NUMBERS, exemplar
from driftsack.numerics.machine_code import MachineCode, places

LOWEST_PRIORITY: Final = 19
WATCH_EVERY: Final = 0.2  # seconds between two looks at the parent


def main() -> None:
    """Compile the calls on standard input into the cache, as soon as no other process compiles."""
    parent, name, calls = json.load(sys.stdin)
    if hasattr(os, "nice"):
        os.nice(LOWEST_PRIORITY)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    code = MachineCode(name, calls)
    with _alone():
        if not code.is_marked():
            code.load()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended; on Windows that is not noticed."""
    while os.getppid() == parent:
        time.sleep(WATCH_EVERY)
    os._exit(1)


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process compiles; ``OSError`` if nothing can be written. On Windows nothing is locked."""
    with _lock_file() as stream:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _lock_file() -> BinaryIO:
    for place in places():
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            return (place / "driftsack-compiling.lock").open("wb")
    raise OSError("there is no directory for the cache")


def load(call: list[Any]) -> bool:
    """Load or compile a described call; return whether it is in the cache on disk."""
    from numba import typeof

    from driftsack.numerics.pinned import entry_of

    module, name, arguments, others = call
    kernel, values = operator.attrgetter(name)(import_module(module)), exemplar(arguments)
    kinds = tuple(typeof(value) for value in values)
    if others is not None:
        remaining = tuple(signature(kernel.py_func).parameters)[len(kinds) :]
        entry = entry_of(kernel, kinds, remaining)
        entry.point(tuple(NUMBERS[other] for other in others))
        return all(entry.dispatcher.is_on_disk(known) for known in entry.dispatcher.overloads)
    dispatcher = copy_for(kernel, values[0]).dispatcher
    dispatcher.compile(kinds)
    return bool(dispatcher.is_on_disk(kinds))
