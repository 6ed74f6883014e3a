"""The file format of saved objects: an ``.npz`` file of arrays with a JSON header."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from driftsack.core.errors import FileFormatError
from driftsack.core.release import __version__

_HEADER = "driftsack"
BROKEN = (  # what NumPy, zipfile and json raise on files that they cannot read
    EOFError,
    RuntimeError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    zipfile.BadZipFile,
)


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces ``path`` once it is written and flushed to disk.

    If writing fails at any point, ``path`` keeps its previous content.

    Args:
        path: The file to write.

    Yields:
        The stream to write to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # the first error is the one to report
            temporary.unlink(missing_ok=True)


def write(
    path: str | os.PathLike[str],
    kind: str,
    layout: int,
    content: dict[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write header and arrays; if that fails, ``path`` keeps its previous content."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        problem = "is a folder" if target.is_dir() else f"cannot be written: the folder {target.parent} does not exist"
        raise FileNotFoundError(f"{target} {problem}; name a file in a folder that exists.")
    seal = _digest(content, arrays)
    header = json.dumps({"kind": kind, "version": layout, "release": __version__, "content": content, "digest": seal})
    with atomic_write(target) as stream:
        np.savez(stream, allow_pickle=False, **{_HEADER: np.array(header)}, **arrays)


def read(path: str | os.PathLike[str], kind: str, layout: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read a file that :func:`write` wrote; raise an error if it is damaged or of another kind or version."""
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(str(arrays.pop(_HEADER)))
        stored_kind, stored_layout, content = header["kind"], header["version"], dict(header["content"])
        writer, seal = header["release"], header.get("digest")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{path} does not exist; pass a driftsack {kind} file that was written by save."
        ) from error
    except OSError:
        raise
    except BROKEN as error:
        raise FileFormatError(
            f"{path} is not a complete driftsack {kind} file: it is truncated, or another program wrote it; "
            "save it again or pass another file."
        ) from error
    if stored_kind != kind:
        raise FileFormatError(f"{path} must hold a driftsack {kind}, got a file of kind {stored_kind!r}.")
    if stored_layout != layout:
        raise FileFormatError(
            f"{path} must be of {kind} version {layout}, got version {stored_layout}; read it with driftsack {writer}."
        )
    if seal is not None and seal != _digest(content, arrays):  # files of earlier releases have none
        raise FileFormatError(f"{path} is not as it was written: its content has changed; save it again.")
    return content, arrays


def _digest(content: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """A digest of everything in a file, so that an altered one is noticed before a kernel reads it."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}:{array.dtype}:{array.shape};".encode() + array.tobytes())
    return digest.hexdigest()
