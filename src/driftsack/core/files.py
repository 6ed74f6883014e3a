"""One file format for everything that is saved: an ``.npz`` of arrays with a JSON header that says what it is."""

from __future__ import annotations

import json
import os
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


def write(
    path: str | os.PathLike[str],
    kind: str,
    layout: int,
    content: dict[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write header and arrays to a temporary name and rename it: ``path`` is whole or untouched."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        trouble = "is a folder" if target.is_dir() else f"is in no folder: {target.parent} does not exist"
        raise FileNotFoundError(f"{target} {trouble}; name a file in a folder that exists.")
    header = json.dumps({"kind": kind, "version": layout, "release": __version__, "content": content})
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        with temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **{_HEADER: np.array(header)}, **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: str | os.PathLike[str], kind: str, layout: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what :func:`write` wrote, or say why the file is not that."""
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(str(arrays.pop(_HEADER)))
        found, stamp, content = header["kind"], header["version"], dict(header["content"])
        writer = header["release"]
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{path} does not exist; it must be a driftsack {kind} file, as save writes it."
        ) from error
    except OSError:
        raise
    except BROKEN as error:
        raise FileFormatError(
            f"{path} is not a whole driftsack {kind} file: it is cut short, or something else wrote it; "
            "save it again or pass another file."
        ) from error
    if found != kind:
        raise FileFormatError(f"{path} must hold a driftsack {kind}, but holds: {found}.")
    if stamp != layout:
        raise FileFormatError(
            f"{path} must be of {kind} version {layout}, got version {stamp}; read it with driftsack {writer}."
        )
    return content, arrays
