"""Derandomised examples do not depend on the modules that a process has imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from tests.support.same_draws import constants_of_imported_modules


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Path]:
    """A file of 1,000 constants for :func:`load`, which is forgotten after the test."""
    path = tmp_path / "numbers_of_nobody.py"
    path.write_text(f"NUMBERS = {[10**6 + number for number in range(1_000)]}\n")
    yield path
    sys.modules.pop(path.stem)
    providers.CONSTANTS_CACHE.cache.clear()


def load(path: Path) -> None:
    """Import a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    sys.modules[path.stem] = importlib.util.module_from_spec(spec)


def drawn() -> list[int]:
    """Draw 300 integers."""
    found: list[int] = []

    def keep(number: int) -> None:
        found.append(number)

    chosen = settings(max_examples=300, derandomize=True, phases=[Phase.generate], database=None)
    chosen(given(number=st.integers())(keep))()
    return found


def test_an_imported_module_does_not_change_what_is_drawn(module: Path) -> None:
    before = drawn()
    load(module)
    assert drawn() == before


def test_an_imported_module_changes_what_hypothesis_draws(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the constants are those of the modules that the process has imported, as without the patch."""
    monkeypatch.setattr(providers, "_get_local_constants", constants_of_imported_modules)
    before = drawn()
    load(module)
    assert drawn() != before
