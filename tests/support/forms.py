"""In which form a test runs kernels: as machine code, which takes seconds to compile, or interpreted."""

from __future__ import annotations

from typing import Any

import pytest

from driftsack.simulation.precompile import RECOMMENDED


def interpret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpret kernels from now on, until the end of the test; for tests of few rounds."""
    monkeypatch.setenv("DRIFTSACK_COMPILE", "never")


def interpret_unless_recommended(recipe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpret the kernels for batches and logs, unless ``make kernels`` has compiled them for this policy."""
    if recipe.__name__ not in RECOMMENDED:
        interpret(monkeypatch)
