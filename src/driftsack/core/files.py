"""One file format for everything that is saved: an ``.npz`` of arrays with a JSON header that says what it is."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.errors import FileFormatError

_HEADER = "driftsack"


def write(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    content: dict[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write header and arrays to a temporary name and rename it: ``path`` is whole or untouched."""
    target = Path(path)
    header = json.dumps({"kind": kind, "version": version, "content": content})
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **{_HEADER: np.array(header)}, **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: str | os.PathLike[str], kind: str, version: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what :func:`write` wrote, or say why the file is not that."""
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(str(arrays.pop(_HEADER)))
        found, stamp, content = header["kind"], header["version"], dict(header["content"])
    except FileNotFoundError:
        raise
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise FileFormatError(
            f"{path} is not a whole driftsack {kind} file ({error}); save it again or pass another file."
        ) from error
    if found != kind:
        raise FileFormatError(f"{path} must hold a driftsack {kind}, got a {found}.")
    if stamp != version:
        raise FileFormatError(
            f"{path} must be of {kind} version {version}, got version {stamp}; read it with the release that wrote it."
        )
    return content, arrays
