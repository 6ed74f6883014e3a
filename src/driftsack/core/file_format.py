"""File format of saved objects: an ``.npz`` file of arrays with a JSON header.

Files are untrusted. Members are stored without compression and each must have exactly the length in its header, so
reading never allocates more memory than the size of the file. The digest in the header detects corruption, not
tampering, so callers must validate the content as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import math
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.errors import FileFormatError
from driftsack.core.release import __version__

_HEADER: Final = "driftsack"
_MOST_ARRAYS: Final = 10_000
_MOST_AXES: Final = 8
_writes = itertools.count()  # a signal handler may write while it interrupts another write


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces ``path`` once it has been written and flushed to disk.

    If writing fails at any point, ``path`` keeps its previous content. A symbolic link is followed, so the file that it
    points to is replaced. The permissions of an existing file are kept.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{next(_writes)}.part")
    try:
        with temporary.open("wb") as stream:
            with contextlib.suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
        _sync_directory(target.parent)
    finally:
        with contextlib.suppress(OSError):  # report the first error, not this one
            temporary.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    """Flush a directory to disk, so that a replacement survives a power failure."""
    with contextlib.suppress(OSError):  # some systems and file systems cannot open or flush a directory
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write(
    path: str | os.PathLike[str],
    kind: str,
    layout: int,
    content: dict[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write header and arrays to ``path``; on failure, ``path`` keeps its previous content."""
    check_target(path)
    data = encode(kind, layout, content, arrays)
    with atomic_write(Path(path)) as stream:
        stream.write(data)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise unless ``path`` can be written as a file: it is not a directory, and its parent directory exists."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        missing = f"cannot be written: the directory {target.parent} does not exist"
        problem = "is a directory" if target.is_dir() else missing
        raise FileNotFoundError(f"{target} {problem}; name a file in an existing directory.")


def encode(kind: str, layout: int, content: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return header and arrays as the bytes of a file; equal content gives equal bytes."""
    seal = digest(content, arrays)
    header = json.dumps({"kind": kind, "version": layout, "release": __version__, "content": content, "digest": seal})
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **{_HEADER: np.array(header)}, **arrays)
    return stream.getvalue()


def read(path: str | os.PathLike[str], kind: str, layout: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read a file that :func:`write` wrote; raise an error if it is corrupted or of another kind or version."""
    return decode(read_bytes(path, kind), kind, layout, str(path))


def read_bytes(path: str | os.PathLike[str], kind: str) -> bytes:
    """Return the bytes of a file; the error for a missing file or a directory names the expected kind."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist; pass a driftsack {kind} file written by save.") from error
    except IsADirectoryError as error:
        raise FileFormatError(f"{path} is a directory; pass a driftsack {kind} file written by save.") from error


def decode(data: bytes, kind: str, layout: int, name: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Content and arrays of the bytes that :func:`encode` returned; ``name`` is what errors call them."""
    try:
        arrays = _stored_arrays(data)
        header = json.loads(arrays.pop(_HEADER).item())
        stored_kind, stored_layout, content = header["kind"], header["version"], dict(header["content"])
        writer, seal = header["release"], header["digest"]
    except Exception as error:  # zipfile, NumPy and json raise errors of many kinds on damaged files
        raise FileFormatError(
            f"{name} is not a complete driftsack {kind} file: it is truncated, or another program wrote it; "
            "save it again or pass another file."
        ) from error
    # Check kind, version and digest.
    if stored_kind != kind:
        raise FileFormatError(f"{name} must hold a driftsack {kind}, got a file of kind {stored_kind!r:.80}.")
    if stored_layout != layout:
        raise FileFormatError(
            f"{name} must be of {kind} version {layout}, got version {stored_layout!r:.80}; "
            f"read it with driftsack {writer!s:.80}."
        )
    if seal != digest(content, arrays):
        raise FileFormatError(f"{name} is corrupted: its content does not match its digest; save it again.")
    return content, arrays


def _stored_arrays(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an ``.npz`` file by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > _MOST_ARRAYS or sum(member.file_size for member in members) > len(data):
            raise ValueError("the members are larger than the file")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("a member is compressed")
        arrays = {member.filename.removesuffix(".npy"): _stored_array(archive.read(member)) for member in members}
    if len(arrays) != len(members):
        raise ValueError("two members have the same name")
    return arrays


def _stored_array(data: bytes) -> npt.NDArray[Any]:
    """Return the array of an ``.npy`` member after checking its length against its header."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    count, start = math.prod(shape), stream.tell()
    if dtype.kind not in "biufU" or len(shape) > _MOST_AXES or min(shape, default=0) < 0:
        raise ValueError("an array is of a kind that is never written")
    if count * dtype.itemsize != len(data) - start:
        raise ValueError("an array is not as long as its header says")
    return np.frombuffer(data, dtype, count, start).reshape(shape, order="F" if fortran else "C").copy()


def digest(content: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return a digest of the content and arrays of a file, which detects corruption."""
    found = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name}:{array.dtype}:{array.shape};".encode() + array.tobytes())
    return found.hexdigest()
