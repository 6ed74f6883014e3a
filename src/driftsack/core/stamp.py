"""Digest of the code that determines results; it stamps compiled kernels and stored sweeps.

A kernel on disk and a cell of a sweep are valid only for the code that produced them. Both use the same definition of
that code, so that editing a report, a figure or a command does not invalidate them.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[1]
DECIDING: Final = ("core", "numerics", "lp", "game", "benchmarks", "theory", "policies", "simulation")
"""The packages whose code determines the results of a trial."""


@cache
def code_digest(*more: str) -> str:
    """Compute a hexadecimal digest of every Python file in ``DECIDING`` and in ``more`` packages or files."""
    digest = hashlib.sha256()
    for part in sorted({*DECIDING, *more}):
        place = PACKAGE / part
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            digest.update(path.relative_to(PACKAGE).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def is_covered(module: str, *more: str) -> bool:
    """Return whether the digest with the packages ``more`` covers the file of a module.

    >>> is_covered("driftsack.game.ledger"), is_covered("driftsack.plot.lines"), is_covered("notebook")
    (True, False, False)
    """
    package, _, rest = module.partition(".")
    return package == PACKAGE.name and rest.partition(".")[0] in {*DECIDING, *more}
