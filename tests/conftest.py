"""Settings of all tests: reproducible examples of hypothesis, the stores, and markers set from fixtures."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.local_postgres import LocalPostgres
from tests.support.same_draws import draw_the_same_everywhere

os.environ.setdefault("DRIFTSACK_COMPILE", "first")  # interpreted kernels have tests of their own

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
draw_the_same_everywhere()


@pytest.hookimpl(tryfirst=True)  # before ``-m`` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start PostgreSQL or drive a browser, by the fixtures that they use."""
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if "postgres" in (*item.fixturenames, parameters.get("store_address")):
            item.add_marker(pytest.mark.postgres)
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def postgres() -> Iterator[LocalPostgres]:
    """A PostgreSQL server from a wheel. Its directory is not pytest's, which other runs of pytest clean up."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        server = LocalPostgres(Path(directory))
        yield server
        server.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, once for each kind of store."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: LocalPostgres = request.getfixturevalue("postgres")
    return server.new_database()
