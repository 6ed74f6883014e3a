"""The cache of kernels on disk: stamped with all code that decides results, sealed against corruption.

Numba stamps a cached function with the content of its own file only. A kernel that calls kernels of other files would
then be loaded from the cache although a callee has changed. Kernels of the library are stamped with the digest of all
code that decides results instead (:mod:`driftsack.core.stamp`).

Errors of the cache are never fatal: a file that cannot be read, written or trusted is ignored, and the kernel is
compiled in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.serialize import dumps

DIGEST_BYTES: Final = 32


class _SealedFile(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's cache files, protected against corruption and against concurrent writers.

    Every file begins with a checksum of its content. A data file is named after its key and contains the key and the
    stamp, so that machine code is loaded only for the code that it was compiled from, even if the index is wrong. Data
    is written before the index; if an update of the index is lost, the kernel is compiled again.
    """

    def save(self, key: Any, data: Any) -> None:
        """Store the machine code of a signature, and remove data files that the index does not list."""
        name = (
            f"{Path(self._index_path).stem}.{hashlib.sha256(_sealed((self._source_stamp, key))).hexdigest()[:20]}.nbc"
        )
        self._save_data(name, (self._source_stamp, key, data))
        overloads = self._load_index()
        overloads[key] = name
        self._save_index(overloads)
        for other in Path(self._cache_path).glob(f"{Path(self._index_path).stem}.*.nbc"):
            if other.name not in overloads.values():
                other.unlink(missing_ok=True)

    def load(self, key: Any) -> Any:
        """Return the machine code of a signature, or None."""
        name = self._load_index().get(key)
        if name is None:
            return None
        stamp, stored, data = _opened(Path(self._data_path(name)).read_bytes())
        return data if (stamp, stored) == (self._source_stamp, key) else None

    def _dump(self, obj: object) -> bytes:
        return _sealed(obj)

    def _load_index(self) -> dict[Any, str]:
        """Return the signatures on disk; none if the index is missing, corrupted or stale."""
        with contextlib.suppress(Exception):
            with Path(self._index_path).open("rb") as stream:
                version = pickle.load(stream)  # noqa: S301  (Numba's format, in the user's own cache)
                sealed = stream.read()
            if version == self._version:  # otherwise the rest may refer to a class that no longer exists
                stamp, overloads = _opened(sealed)
                return dict(overloads) if stamp == self._source_stamp else {}
        return {}


def _sealed(obj: object) -> bytes:
    """Serialise an object, preceded by a checksum."""
    content: bytes = dumps(obj)
    return hashlib.sha256(content).digest() + content


def _opened(sealed: bytes) -> Any:
    """Deserialise an object; ``ValueError`` if the checksum does not match."""
    digest, content = sealed[:DIGEST_BYTES], sealed[DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("a file of the kernel cache is corrupted")
    return pickle.loads(content)  # noqa: S301


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's per-function cache, invalidated by changes of code that decides results; its errors are ignored."""

    def __init__(self, function: Callable[..., object], stamp: str, suffix: str = "") -> None:
        super().__init__(function)
        self._cache_file = _SealedFile(self.cache_path, self._impl.filename_base + suffix, stamp)
        self._cache_file._version += stamp  # noqa: SLF001  (compared before anything else is unpickled)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load machine code, or return None."""
        with contextlib.suppress(Exception):
            return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store machine code if possible."""
        with contextlib.suppress(Exception):
            super().save_overload(sig, data)

    def holds(self, sig: Any, codegen: Any) -> bool:
        """Return whether there is machine code for a signature."""
        with contextlib.suppress(Exception):  # removed by another process, or corrupted
            return self._cache_file.load(self._index_key(sig, codegen)) is not None
        return False


class PinnedCache(KernelCache):
    """The cache of the pinned entries of one kernel: the types of the pinned arguments are part of the key."""

    def __init__(self, function: Callable[..., object], stamp: str, pinned: tuple[Any, ...]) -> None:
        super().__init__(function, stamp, "-pinned")  # no dot: the kernel's own cache removes stale files by its name
        self._pinned = pinned

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (self._pinned, *super()._index_key(sig, codegen))
