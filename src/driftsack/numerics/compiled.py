"""``kernel``: Numba's ``njit`` with a disk cache that notices a change in any file of the package.

Numba stamps a cached function with the content of its own file only. A kernel that calls kernels of other
files would then be loaded from the cache although a callee has changed, after an upgrade as well as after an
edit. Every kernel here carries the stamp of the whole package instead.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar, cast

from numba import config, njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

Function = TypeVar("Function", bound=Callable[..., object])
PACKAGE: Final = Path(__file__).resolve().parents[1]
OPTIONS: Final = {"nogil": True, "forceinline": True, "_nrt": False}
"""No GIL; calls cost nothing; no memory manager, so no allocation. See docs/decisions/0001-kernels.md."""


@lru_cache(maxsize=1)
def package_stamp() -> bytes:
    """A digest of every Python file of the package."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(PACKAGE)).encode())
        digest.update(path.read_bytes())
    return digest.digest()


class _PackageCache(FunctionCache):  # type: ignore[misc]
    """Numba's per-function cache, stale as soon as any file of the package is."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(self.cache_path, self._impl.filename_base, package_stamp())
        # Numba compares the version before it unpickles the rest, which may name a class that is gone.
        self._cache_file._version += package_stamp().hex()  # noqa: SLF001


def kernel(function: Function) -> Function:
    """Compile ``function`` on first use, without the GIL and without a memory manager: it cannot allocate.

    The machine code is kept on disk if the function belongs to the package, whose stamp then covers it, and if
    there is a folder to write to.
    """
    if config.DISABLE_JIT:
        return function
    dispatcher = njit(**OPTIONS)(function)
    if PACKAGE in Path(function.__code__.co_filename).resolve().parents:
        with contextlib.suppress(RuntimeError):  # Numba's word for: nowhere to write
            dispatcher._cache = _PackageCache(function)  # noqa: SLF001  (there is no public way to set the stamp)
    return cast("Function", dispatcher)
