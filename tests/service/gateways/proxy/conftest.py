"""The key of the upstreams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hostile_upstream import SECRET


@pytest.fixture(scope="session", autouse=True)
def upstream_key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UPSTREAM_KEY", SECRET)
        yield
