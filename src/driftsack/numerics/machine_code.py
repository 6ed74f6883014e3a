"""Prepare machine code without making the caller wait: compile it in a child process, and load it in a thread.

A child process of low priority compiles into the cache, unless the machine code is there. One child compiles at a time,
for all processes that share a cache, and the others wait for it; a child ends with its parent. Then a thread of this
process imports Numba and loads the machine code. If the child fails, for example because no directory can be written
to, the thread compiles in memory.

What may be loaded is decided by Numba and by the seals of :mod:`driftsack.numerics.kernel_cache`. The *mark* of machine
code, an empty file, only tells processes that have not imported Numba that no child is needed.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NamedTuple

from driftsack.core.locks import thread_lock
from driftsack.core.stamp import PACKAGE
from driftsack.numerics.compiled import part_of, source, stamp_of
from driftsack.numerics.exemplars import describe

CHILD: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.readline()); "
    "from driftsack.numerics.compiling_child import main; main()"
)
CPU_FLAGS_WITHIN: Final = 8192  # bytes of /proc/cpuinfo

_log = logging.getLogger("driftsack")
_loading = thread_lock()  # held while machine code is loaded; a fork waits for it
_known: Final[dict[str, MachineCode]] = {}


class KernelCall(NamedTuple):
    """A call of a kernel: its pinned arguments and the types of the others; without ``others`` an ordinary call."""

    kernel: Any
    arguments: tuple[Any, ...]
    others: tuple[type, ...] | None = None

    def described(self) -> list[Any]:
        """Describe the call to another process; ``CannotPinError`` if that is not possible."""
        names = None if self.others is None else [kind.__name__ for kind in self.others]
        return [self.kernel.__module__, self.kernel.__qualname__, describe(self.arguments), names]


def machine_code(calls: Sequence[KernelCall]) -> MachineCode:
    """Return the machine code of some calls; calls with arguments of the same types share it."""
    described = [call.described() for call in calls]
    stamps = sorted({stamp_of(part_of(source(call.kernel))) for call in calls})
    name = hashlib.sha256(json.dumps([described, stamps, _platform()]).encode()).hexdigest()[:32]
    return _known.setdefault(name, MachineCode(name, described))  # atomic


class MachineCode:
    """The machine code of some calls, as far as it is prepared.

    Args:
        name: A digest of everything that it depends on.
        calls: The calls, described.
    """

    def __init__(self, name: str, calls: list[Any]) -> None:
        self._name = name
        self._mark = f"driftsack-{name}.ready"
        self._calls = calls
        self._loaded = False
        self._advancing = thread_lock()  # learners in several threads share this object
        self.child: subprocess.Popen[bytes] | None = None
        self.thread: threading.Thread | None = None

    def advance(self) -> bool:
        """Return whether the machine code is loaded; begin the next step of its preparation if one has ended."""
        if self._loaded or self.thread is not None or not self._advancing.acquire(blocking=False):
            return self._loaded
        try:
            self._begin_next_step()
        finally:
            self._advancing.release()
        return False

    def _begin_next_step(self) -> None:
        """Start the child if nobody has compiled yet, and the thread that loads once the child has ended."""
        if self.child is None and not self.is_marked():
            if any(code.child is not None and code.child.poll() is None for code in list(_known.values())):
                return  # this process has a child already
            self.child = _new_child([os.getpid(), self._name, self._calls])
        if self.child is None or self.child.poll() is not None:
            with suppress(RuntimeError):  # the interpreter is shutting down
                thread = threading.Thread(target=self._load_in_thread, name="driftsack-loader")
                thread.start()
                self.thread = thread

    def load(self) -> None:
        """Load the machine code, or compile it; mark it if it is in the cache."""
        from driftsack.numerics.compiling_child import load

        with _loading:
            if not self._loaded:
                cached = [load(call) for call in self._calls]
                if all(cached):
                    self._leave_mark()
                self._loaded = True

    def is_marked(self) -> bool:
        """Return whether a process has found the machine code in the cache, or has put it there."""
        return any(os.path.exists(place / self._mark) for place in places())  # noqa: PTH110  (False if unknown)

    def _leave_mark(self) -> None:
        if not self.is_marked():
            for place in places():
                with suppress(OSError):
                    place.mkdir(parents=True, exist_ok=True)
                    (place / self._mark).touch()
                    return

    def _load_in_thread(self) -> None:
        try:
            self.load()
        except Exception:
            _log.warning("kernels stay interpreted, because their machine code cannot be loaded.", exc_info=True)


def places() -> list[Path]:
    """Return the directories for marks and for the lock of compiling children, best first."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen)]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  (as it is without a home)
    return [PACKAGE / "numerics" / "__pycache__", Path(home) / "driftsack"]


def _new_child(work: list[Any]) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles; None if that is not possible."""
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").name.startswith(("python", "pypy")):
        return None  # the executable is an application, which must not be started again
    try:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "DRIFTSACK_COMPILE": "first"},
            start_new_session=True,  # Ctrl-C is for the parent
        )
        with child.stdin as stream:  # type: ignore[union-attr]
            stream.write(f"{json.dumps([str(place) for place in sys.path])}\n{json.dumps(work)}".encode())
    except OSError:
        return None
    atexit.register(_end, child, os.getpid())
    return child


def _end(child: subprocess.Popen[bytes], parent: int) -> None:
    """End a child, when its parent ends."""
    if os.getpid() == parent and child.poll() is None:
        child.kill()
        child.wait()


@cache
def _platform() -> list[Any]:
    """Return what machine code depends on besides the code: versions, the processor, settings, the place of files."""
    versions = [_version(name) for name in ("numba", "llvmlite", "numpy")]
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    return [sys.version, versions, platform.machine(), _cpu_flags(), settings, str(PACKAGE)]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _cpu_flags() -> str:
    """Return the instructions that the processor has, on Linux."""
    with suppress(OSError), Path("/proc/cpuinfo").open("rb") as stream:
        lines = stream.read(CPU_FLAGS_WITHIN).decode(errors="replace").splitlines()
        return next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return ""


def _after_fork_in_child() -> None:
    """Forget the child and the thread of the parent: this process has neither."""
    for code in _known.values():
        code.thread = None
        if code.child is not None:
            code.child.returncode = 0  # for its destructor
            code.child = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
