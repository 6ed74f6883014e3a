"""Deprecated: ``driftsack.experiments`` is now ``driftsack.sweeps``. Its public names work for one more release."""

from __future__ import annotations

import warnings
from typing import Any

from driftsack import sweeps

_MOVED = tuple(sweeps.__all__)


def __getattr__(name: str) -> Any:
    """Forward the public names of ``driftsack.sweeps`` with a ``DeprecationWarning``."""
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        f"driftsack.experiments.{name} is deprecated; import {name} from driftsack.sweeps instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(sweeps, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MOVED])
