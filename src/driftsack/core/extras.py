"""The packages of optional extras, and the error that names the extra of a missing one."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from driftsack.core.errors import MissingExtraError

EXTRAS: Final = {
    "scipy": "plan",
    "highspy": "plan",
    "polars": "logs",
    "matplotlib": "plot",
    "typer": "cli",
    "rich": "cli",
    "pydantic": "research",
    "gymnasium": "gym",
    "cvxpy": "oco",
    "clarabel": "oco",
}
"""The extra that installs a package."""


def require(*packages: str) -> None:
    """Raise ``MissingExtraError``, which names the extra to install, unless every package is installed.

    >>> require("numpy")
    >>> require("no_such_package")
    Traceback (most recent call last):
    driftsack.core.errors.MissingExtraError: this needs the package no_such_package; pip install 'driftsack[all]'.
    """
    for name in packages:
        if find_spec(name) is None:
            raise missing(name)


def missing(package: str) -> MissingExtraError:
    """Return the error for a package that is not installed."""
    return MissingExtraError(
        f"this needs the package {package}; pip install 'driftsack[{EXTRAS.get(package, 'all')}]'."
    )
