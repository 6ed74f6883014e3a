"""The packages of the extra ``oco``, loaded only where a convex program is solved."""

from __future__ import annotations

import importlib
from typing import Any

from driftsack.core.errors import MissingExtraError


def load(name: str) -> Any:
    """A package of the extra, or an error that says how to install it.

    >>> load("no_such_package")
    Traceback (most recent call last):
    driftsack.core.errors.MissingExtraError: this needs the package no_such_package; pip install 'driftsack[oco]'.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"this needs the package {name}; pip install 'driftsack[oco]'.") from error


def cvxpy() -> Any:
    """The modelling language of the optima."""
    return load("cvxpy")
