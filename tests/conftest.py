"""Settings of all tests: hypothesis draws the same examples in every run, so that failures are reproducible."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from driftsack.service.trials.local_postgres import LocalPostgres

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture(scope="session")
def postgres() -> Iterator[LocalPostgres]:
    """A real PostgreSQL server, from a wheel; not in pytest's folder, which other runs of pytest tidy up."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = LocalPostgres(Path(folder))
        yield server
        server.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: LocalPostgres = request.getfixturevalue("postgres")
    return server.new_database()
