"""Errors of commands whose packages are optional."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from driftsack.core.errors import MissingExtraError


@contextlib.contextmanager
def service_extra() -> Iterator[None]:
    """If a package of the service is missing, name the extra that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if isinstance(error, MissingExtraError):
            raise
        raise MissingExtraError(f"{error.name} is not installed: pip install 'driftsack[service]'") from error
