"""Kernels: compiled equals interpreted, nothing allocates, and a changed file is never served from the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.errors import NumbaError

import driftsack
from driftsack.numerics.compiled import kernel

WORK = """
import json
import numpy as np
import driftsack as ds
rng = np.random.default_rng(0)
answers = [ds.lp.step_lp(rng.random(4), rng.random((2, 4)) - 0.3, rng.random(2)) for _ in range(40)]
runs = [
    ds.simulate(ds.instances.example_2(horizon=250, noise=noise), policy, trials=2, seed=1, threads=1, safe=safe)
    for policy in (ds.SlidingWindowUCB(windows=(20, 30), scale=0.1), ds.NaiveUCB(budget_rule="remaining", clip=True))
    for noise in ("bernoulli", "uniform", "deterministic")
    for safe in (False, True)
]
print(json.dumps({
    "mixes": [a.mix.tolist() for a in answers],
    "prices": [a.prices.tolist() for a in answers],
    "rewards": [r.reward.tolist() for r in runs],
    "pulls": [r.pulls.tolist() for r in runs],
    "spent": [r.spent.tolist() for r in runs],
}))
"""


def run_python(code: str, **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_compiled_and_interpreted_agree_bit_for_bit() -> None:
    """The whole package without Numba, in its own process."""
    assert run_python(WORK, NUMBA_DISABLE_JIT="1") == run_python(WORK)


def test_a_kernel_that_allocates_does_not_compile() -> None:
    """Kernels have no memory manager: allocation-free is checked by the compiler, not by hope."""

    @kernel
    def allocates(size: int) -> float:
        return float(np.zeros(size).sum())

    assert njit(allocates.py_func)(3) == 0.0  # type: ignore[attr-defined]  # with a memory manager it would
    with pytest.raises(NumbaError, match="zeros"):
        allocates(3)


def test_a_change_in_a_called_file_is_noticed(tmp_path: Path) -> None:
    """Numba's own stamp covers one file; ours covers the package, so an edited callee is compiled anew."""
    package = Path(driftsack.__file__).parent
    copy = tmp_path / "driftsack"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import json, numpy as np; from driftsack.game.ledger import open_ledger, breaks; "
        "from driftsack.simulation.loop import Tally, settle; "
        "i = np.zeros(3, dtype=np.int64); f = np.zeros(1); "
        "tally = Tally(i, f.copy(), i.copy(), f.copy(), i.copy(), f.copy(), np.array([0.6]), f.copy(), f.copy()); "
        "ledger = open_ledger(np.array([1.0]), 2); "
        "print(json.dumps([bool(settle(tally, ledger, t, 0, 1.0)) for t in range(2)]))"
    )
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run_python(code, **environment) == [True, False]
    callee = copy / "numerics" / "ledger.py"
    text = callee.read_text()
    assert "ledger.spent[j] + costs[j] > ledger.limit[j]" in text
    callee.write_text(text.replace("ledger.spent[j] + costs[j] > ledger.limit[j]", "costs[j] > ledger.limit[j]"))
    assert run_python(code, **environment) == [True, True]  # settle's own file did not change


def test_a_policy_that_is_gone_leaves_no_trace(tmp_path: Path) -> None:
    """The loop was compiled for a policy whose file was then removed: others must still load it, or compile anew."""
    copy = tmp_path / "driftsack"
    shutil.copytree(Path(driftsack.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    planted = copy / "policies" / "planted.py"
    planted.write_text((copy / "policies" / "always_arm.py").read_text().replace("AlwaysArm", "Planted"))
    code = (
        "import json, driftsack as ds; from driftsack.policies.{} import {} as policy; "
        "print(json.dumps(ds.simulate(ds.instances.example_1(horizon=20), policy(0), trials=1).reward.tolist()))"
    )
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    played = run_python(code.format("planted", "Planted"), **environment)
    planted.unlink()
    assert run_python(code.format("always_arm", "AlwaysArm"), **environment) == played


def test_without_a_place_for_the_cache_kernels_still_run(tmp_path: Path) -> None:
    """A read-only installation and no home: compiled anew each time, but not refused."""
    code = (
        "import json, numba.core.caching as caching; caching.CacheImpl._locator_classes = []; "
        "from driftsack.numerics.sampling import draw; import numpy as np; "
        "print(json.dumps(int(draw(np.array([0.0, 1.0]), 0.5))))"
    )
    assert run_python(code, HOME=str(tmp_path)) == 1


def test_import_stays_light() -> None:
    """What only some commands need is not imported by ``import driftsack``."""
    code = "import json, sys, driftsack; print(json.dumps(sorted(sys.modules)))"
    loaded = set(run_python(code))
    assert "numba" in loaded
    assert not loaded & {"scipy.optimize", "highspy", "polars", "matplotlib", "pydantic", "typer", "rich"}
