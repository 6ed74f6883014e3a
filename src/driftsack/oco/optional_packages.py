"""Import the packages of the extra ``oco``, which only the convex programs need."""

from __future__ import annotations

import importlib
from typing import Any

from driftsack.core.errors import MissingExtraError


def import_optional(name: str) -> Any:
    """Import a package of the extra, or raise an error that says how to install it.

    >>> import_optional("no_such_package")
    Traceback (most recent call last):
    driftsack.core.errors.MissingExtraError: this needs the package no_such_package; pip install 'driftsack[oco]'.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"this needs the package {name}; pip install 'driftsack[oco]'.") from error


def cvxpy() -> Any:
    """The package cvxpy, in which the convex programs are written."""
    return import_optional("cvxpy")
