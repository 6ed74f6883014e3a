"""Thread locks that survive ``fork``, and lock files that admit one process at a time.

*Threads.* A child of ``fork`` has one thread. A lock that another thread held at that moment would never be released in
the child, and the data it protects would be inconsistent. Therefore every lock of :func:`thread_lock` is acquired
before a fork and released after it, in the parent and in the child, as the standard library does for ``logging``.
Numba's compiler lock is treated in the same way, once Numba is imported. The locks are re-entrant, so that a signal
handler does not wait for the thread that it interrupted.

*Files.* :func:`hold` takes an exclusive ``flock`` on ``FILE.lock``, which names the process. The operating system
releases it when the process ends for any reason. Within one process a file may be held several times. A child of
``fork`` does not inherit the files that its parent holds.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, Final

from driftsack.core.errors import FileInUseError

if sys.platform != "win32":  # files are not locked on Windows
    import fcntl

PATIENCE: Final = 60.0  # seconds that a fork waits for a lock, which may be held during a compilation
_NOT_POSSIBLE: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOLCK, errno.EOPNOTSUPP)

_register = threading.RLock()
_locks: weakref.WeakSet[threading.RLock] = weakref.WeakSet()
_taken: list[threading.RLock] = []  # locks acquired by the fork in progress
_compiler: list[Any] = []  # Numba's lock, if the fork in progress has acquired it
_opening: set[Path] = set()  # files that a thread was locking when a signal handler interrupted it


def thread_lock() -> threading.RLock:
    """Create a re-entrant lock that is safe across ``fork``."""
    lock = threading.RLock()
    with _register:
        _locks.add(lock)
    return lock


def has_taken(lock: threading.RLock) -> bool:
    """Return whether the current thread holds a lock; a signal handler uses this to detect re-entrancy."""
    return bool(lock._is_owned())  # type: ignore[attr-defined]  # noqa: SLF001  (as threading.Condition does)


def _before_fork() -> None:
    _register.acquire()
    _taken[:] = [lock for lock in _locks if lock.acquire(timeout=PATIENCE)]
    _compiler[:] = [lock for lock in [_compiler_lock()] if lock is not None]
    for compiling in _compiler:
        compiling.acquire()


def _compiler_lock() -> Any:
    """Return Numba's compiler lock; None if Numba is not imported."""
    return getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)


def _after_fork_in_parent() -> None:
    for compiling in _compiler:
        compiling.release()
    for lock in _taken:
        lock.release()
    _taken.clear()
    _register.release()


def _after_fork_in_child() -> None:
    for lock in set(_locks) - set(_taken):
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001  (as threading does with its own)
    _after_fork_in_parent()
    for held in list(_held.values()):
        held.forget()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


class HeldFile:
    """A file that this process holds for writing, until the last reference to this object is gone.

    Args:
        path: The file, with symbolic links resolved.

    Raises:
        FileInUseError: Another process holds the file.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None
        self._beside = path.with_name(f"{path.name}.lock")
        self._descriptor = None
        if path not in _opening:
            _opening.add(path)
            try:
                self._descriptor = _locked(path, self._beside)
            finally:
                _opening.discard(path)

    def forget(self) -> None:
        """Close the inherited lock in a child of ``fork``; the parent keeps it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", None)
        if descriptor is not None:
            with contextlib.suppress(OSError):
                self._beside.unlink(missing_ok=True)  # before the release: a waiting process checks the inode
            os.close(descriptor)


_held: weakref.WeakValueDictionary[Path, HeldFile] = weakref.WeakValueDictionary()


def hold(path: str | os.PathLike[str]) -> HeldFile:
    """Hold a file for writing; only one process can hold it at a time.

    The file need not exist. It is held as long as the returned handle is referenced; in a read-only directory nothing
    is locked. If another process holds it, ``FileInUseError`` is raised.
    """
    target = Path(os.path.realpath(path))
    with _register:
        held = _held.get(target)
        if held is None:
            held = _held[target] = HeldFile(target)
        return held


def _locked(path: Path, beside: Path) -> int | None:
    """Open and lock the lock file of ``path``; return its descriptor, or None where locks are not possible."""
    if sys.platform == "win32" or not path.parent.is_dir():
        return None
    while True:
        # Open the lock file.
        try:
            descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno in _NOT_POSSIBLE:
                return None
            raise
        # Lock it without waiting, and check that it was not removed in between.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_ino == _inode(beside):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()} on {socket.gethostname()}".encode(), 0)
                return descriptor
            os.close(descriptor)  # the previous holder has removed the file in the meantime: try again
        except BlockingIOError as error:
            owner = os.pread(descriptor, 200, 0).decode(errors="replace") or "unknown"
            os.close(descriptor)
            raise FileInUseError(
                f"{path} is open for writing in process {owner}; each process that loads it would spend the whole "
                "budget again. Stop that process, pass read_only=True to inspect the file, or let several "
                "processes share one learner behind a service, which driftsack serve starts."
            ) from error
        except OSError as error:
            os.close(descriptor)
            if error.errno in _NOT_POSSIBLE:
                return None
            raise


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
