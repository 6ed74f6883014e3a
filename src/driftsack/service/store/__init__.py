"""Where journals are kept: one SQLite file, or a PostgreSQL database that replicas share."""

from __future__ import annotations

from driftsack.core.errors import MissingExtraError
from driftsack.service.store.interface import Store

__all__ = ["Store", "open_store"]


def open_store(address: str, read_only: bool = False) -> Store:
    """Open a store.

    Args:
        address: A file, or ``postgresql://...``.
        read_only: Whether to look at a file that another process may be using.

    Returns:
        The store.
    """
    if address.startswith(("postgresql://", "postgres://")):
        try:
            from driftsack.service.store.postgres import PostgresStore  # noqa: PLC0415  (an optional package)
        except ImportError as error:
            raise MissingExtraError("PostgreSQL needs: pip install 'driftsack[service]'") from error
        return PostgresStore(address)
    from driftsack.service.store.sqlite import SQLiteStore  # noqa: PLC0415

    return SQLiteStore(address, read_only)
