"""Import the packages of the extra ``oco``, which only the convex programs need."""

from __future__ import annotations

import importlib
from typing import Any

from driftsack.core.extras import require


def import_optional(name: str) -> Any:
    """Import a package of the extra, or raise an error that says how to install it."""
    require(name)
    return importlib.import_module(name)


def cvxpy() -> Any:
    """The package cvxpy, in which the convex programs are written."""
    return import_optional("cvxpy")
