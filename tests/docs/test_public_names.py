"""The public names: a short top level and lazy modules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import driftsack as ds
from tests.support.paths import ROOT


def test_everything_that_is_listed_exists() -> None:
    assert dir(ds) == sorted(ds.__all__)
    for name in ds.__all__:
        assert getattr(ds, name) is not None, name
    assert ds.errors.DriftsackError is ds.DriftsackError
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = ds.nonsense


def test_lazy_modules_are_loaded_when_they_are_used() -> None:
    code = (
        "import sys, driftsack as ds; lazy = [f'driftsack.{n}' for n in ds._LAZY]; "
        "assert not set(lazy) & set(sys.modules), set(lazy) & set(sys.modules); "
        "assert ds.sweeps.run and 'driftsack.sweeps' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_policy_is_in_policies() -> None:
    """A policy that is not exported is detected."""
    ours = [
        recipe.__name__
        for recipe in ds.policies.policy.recipes()
        if recipe.__module__.startswith("driftsack.policies.") and not recipe.__abstractmethods__
    ]
    assert set(ours) <= set(ds.policies.__all__)
    assert len(ours) >= 18


def test_the_policy_of_contributing_can_be_pasted_into_the_library(tmp_path: Path) -> None:
    """A policy inside the package may import from ``driftsack.authoring``, whatever is imported first."""
    copy = shutil.copytree(
        Path(ds.__file__).parent, tmp_path / "driftsack", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "tests/support/in_turn.py", copy / "policies" / "in_turn.py")
    exports = copy / "policies" / "__init__.py"
    exports.write_text(exports.read_text() + "\nfrom driftsack.policies.in_turn import InTurn\n")
    for first in ("driftsack", "driftsack.authoring", "driftsack.policies.in_turn"):
        code = f"import {first}, driftsack as ds; assert ds.policies.InTurn().to_spec() == {{'policy': 'InTurn'}}"
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
