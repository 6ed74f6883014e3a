"""The stores of journals: a SQLite file, or a PostgreSQL database that replicas share."""

from __future__ import annotations

from driftsack.core.errors import MissingExtraError, SettingError
from driftsack.service.store.interface import Store

__all__ = ["Store", "open_store"]


def open_store(address: str, read_only: bool = False, shared: bool = False) -> Store:
    """Open a store.

    Args:
        address: The path of a file, or ``postgresql://...``.
        read_only: Whether to only read a file that another process may be using.
        shared: Whether to change API keys in a file that another process may be using.

    Raises:
        SettingError: The address names another kind of database.

    >>> open_store("mysql://host/name")
    Traceback (most recent call last):
    driftsack.core.errors.SettingError: a store is a file or a PostgreSQL database, postgresql://..., got 'mysql://...'.
    """
    if address.startswith(("postgresql://", "postgres://")):
        try:
            from driftsack.service.store.postgres import PostgresStore
        except ImportError as error:
            raise MissingExtraError("PostgreSQL needs: pip install 'driftsack[service]'") from error
        return PostgresStore(address)
    scheme, found, _ = address.partition("://")
    if found:
        raise SettingError(f"a store is a file or a PostgreSQL database, postgresql://..., got '{scheme:.20}://...'.")
    from driftsack.service.store.sqlite import SQLiteStore

    return SQLiteStore(address, read_only, shared)
