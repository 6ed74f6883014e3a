"""Kernels: compiled equals interpreted, nothing allocates, and outdated machine code is never loaded from the cache."""

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
from driftsack.numerics.compiled import classes_in, is_packaged, kernel
from driftsack.verify import auditor

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
    """Kernels have no memory manager, so the compiler rejects allocation."""

    @kernel
    def allocates(size: int) -> float:
        return float(np.zeros(size).sum())

    assert njit(allocates.py_func)(3) == 0.0  # type: ignore[attr-defined]  # with a memory manager it compiles
    with pytest.raises(NumbaError, match="zeros"):
        allocates(3)


STOPS, NEVER_STOPS = "breaks |= ledger.charged[j] > ledger.granted[j]", "breaks = False"
BOOK = """
import json, numpy as np
from driftsack.core.problem import Problem
from driftsack.game.ledger import open_ledger
from driftsack.game.trial import book, new_tally
tally = new_tally(Problem(2, 1, [1.0]), np.zeros(0, dtype=np.int64), np.zeros(0))
tally.costs[0] = 0.6
ledger = open_ledger(Problem(2, 1, [1.0]))
booked = [bool(book(tally, ledger, t, 0, 1.0)) for t in range(2)]
print(json.dumps({"booked": booked, "loaded": sum(book.dispatcher.stats.cache_hits.values())}))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that a test may edit; :func:`run_copy` imports it."""
    copy = tmp_path / "driftsack"
    shutil.copytree(Path(driftsack.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def run_copy(package: Path, code: str, **environment: str) -> Any:
    """Run a program on the copy, with a kernel cache of its own."""
    cache = {"NUMBA_CACHE_DIR": str(package.parent / "cache")}
    return run_python(code, PYTHONPATH=str(package.parent), **cache | environment)


@pytest.mark.slow
def test_a_change_in_a_called_file_causes_recompilation(package: Path) -> None:
    """Numba's own stamp covers one file; ours covers all code that decides results, so a callee is recompiled."""
    assert run_copy(package, BOOK) == {"booked": [True, False], "loaded": 0}
    assert run_copy(package, BOOK) == {"booked": [True, False], "loaded": 1}
    callee = package / "game" / "ledger.py"
    text = callee.read_text()
    assert STOPS in text
    callee.write_text(text.replace(STOPS, NEVER_STOPS))
    assert run_copy(package, BOOK) == {"booked": [True, True], "loaded": 0}  # the file of ``book`` did not change


@pytest.mark.slow
def test_only_code_that_decides_results_recompiles_kernels(package: Path) -> None:
    """A comment in a report, a figure or a command causes no recompilation; one in a file that decides results does."""
    run_copy(package, BOOK)
    for parts, loaded in ((("advice", "cli", "plot", "sweeps"), 1), (("numerics",), 0)):
        for part in parts:
            edited = sorted((package / part).glob("*.py"))[-1]
            edited.write_text(edited.read_text() + "# A comment.\n")
        assert run_copy(package, BOOK)["loaded"] == loaded


def cache_files(package: Path, pattern: str) -> list[Path]:
    found = [path for path in (package.parent / "cache").rglob(pattern) if "book" in path.name]
    assert found
    return found


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


@pytest.mark.slow
def test_a_damaged_cache_file_is_ignored(package: Path) -> None:
    """Empty, truncated, foreign or with one wrong byte: the kernel is compiled, and a valid file is written again."""
    run_copy(package, BOOK)
    for pattern, damage in (
        ("*.nbi", lambda _: b""),
        ("*.nbi", flipped),
        ("*.nbc", lambda content: content[: len(content) // 2]),
        ("*.nbc", lambda _: b"\x80garbage" * 99),
        ("*.nbc", flipped),
    ):
        for path in cache_files(package, pattern):
            path.write_bytes(damage(path.read_bytes()))
        assert run_copy(package, BOOK) == {"booked": [True, False], "loaded": 0}
    assert run_copy(package, BOOK) == {"booked": [True, False], "loaded": 1}


@pytest.mark.slow
def test_a_write_that_fails_halfway_leaves_no_stale_kernel(package: Path) -> None:
    """An edit, then a disk on which the index fits and the machine code does not: the old code is never served."""
    run_copy(package, BOOK)
    callee = package / "game" / "ledger.py"
    callee.write_text(callee.read_text().replace(STOPS, NEVER_STOPS))
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
    for code in (limit + BOOK, BOOK, BOOK):
        assert run_copy(package, code)["booked"] == [True, True]


@pytest.mark.slow
def test_an_index_that_names_another_signature_is_ignored(package: Path) -> None:
    """What two processes that write at once could leave behind: index entries that point to each other's data."""
    swap = """
import json, numpy as np
from driftsack.numerics.sampling import draw
chances = np.array([0.0, 0.0, 1.0, 0.0])
found = [draw(chances, 0.5), draw(chances[::2], 0.5)]  # machine code for contiguous arrays, and for all others
file = draw.dispatcher._cache._cache_file
index = file._load_index()
keys = list(index)
file._save_index(dict(zip(keys, [index[key] for key in reversed(keys)])))
print(json.dumps([found, len(keys)]))
"""
    for _ in range(2):
        assert run_copy(package, swap) == [[2, 1], 2]


def test_a_state_that_the_stamp_does_not_cover_is_not_cached() -> None:
    """A kernel of ``verify`` runs in the loop of a trial, whose stamp does not include that package."""
    problem = driftsack.Problem(horizon=50, arms=2, budget=[9.0])
    state = driftsack.SlidingWindowUCB(windows=(9, 9)).new_state(problem)
    empty = np.zeros((1, 1))
    audited = auditor.State(state, empty, empty, np.zeros(1, dtype=np.int32), empty, empty, empty, empty, 0.0, empty)
    assert is_packaged(classes_in(state))
    assert not is_packaged(classes_in(audited))


def test_a_called_kernel_that_prints_is_refused() -> None:
    """Linked kernels have no environment of their own: printing would hang."""

    @kernel
    def talks(value: int) -> int:
        print("value", value)  # noqa: T201
        return value

    @kernel
    def calls(value: int) -> int:
        return talks(value)

    with pytest.raises(NumbaError, match="cannot print"):
        calls(3)


@pytest.mark.slow
def test_a_full_disk_is_no_reason_to_fail(package: Path) -> None:
    """No file may grow beyond zero bytes: kernels are compiled in memory, and nothing useful is left behind."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    assert run_copy(package, limit + BOOK) == {"booked": [True, False], "loaded": 0}
    assert run_copy(package, BOOK) == {"booked": [True, False], "loaded": 0}


def test_a_deleted_cache_directory_raises_no_error(package: Path) -> None:
    """The directory is replaced by a file after Numba has found it."""
    delete = (
        "import os, shutil, pathlib\n"
        "from driftsack.game.trial import book\n"
        "book.dispatcher\n"
        "cache = pathlib.Path(os.environ['NUMBA_CACHE_DIR'])\n"
        "shutil.rmtree(cache); cache.write_text('')\n"
    )
    assert run_copy(package, delete + BOOK) == {"booked": [True, False], "loaded": 0}


def test_a_kernel_compiles_once_whatever_the_units() -> None:
    """Rewards up to 1 are used unchanged and others are divided; both must have the same type in the kernel."""
    code = """
import json, driftsack as ds
from driftsack.game.protocol import kernel_for
from driftsack.game.trial import run_rounds
worlds = [
    ds.Instance.stationary([0.2, 0.4], [[0.5, 0.5]], horizon=20, budget=10.0),
    ds.Instance.stationary([2, 4], [[5, 5]], horizon=20, budget=100.0, reward_max=9.0, cost_max=10.0),
]
for world in worlds:
    ds.simulate(world, ds.policies.UniformRandom(), trials=1)
state = ds.policies.UniformRandom().new_state(worlds[0].problem)
print(json.dumps(len(kernel_for(state, run_rounds).signatures)))
"""
    assert run_python(code) == 1


@pytest.mark.slow
def test_the_cache_works_after_a_policy_is_deleted(package: Path) -> None:
    """The loop was compiled for a policy whose file was then removed: others must still load it, or recompile."""
    planted = package / "policies" / "planted.py"
    planted.write_text((package / "policies" / "always_arm.py").read_text().replace("AlwaysArm", "Planted"))
    code = (
        "import json, driftsack as ds; from driftsack.policies.{} import {} as policy; "
        "print(json.dumps(ds.simulate(ds.instances.example_1(horizon=20), policy(0), trials=1).reward.tolist()))"
    )
    reward = run_copy(package, code.format("planted", "Planted"))
    planted.unlink()
    assert run_copy(package, code.format("always_arm", "AlwaysArm")) == reward


def test_without_a_place_for_the_cache_kernels_still_run(tmp_path: Path) -> None:
    """A read-only installation and no home: kernels are compiled in each process."""
    code = (
        "import json, numba.core.caching as caching; caching.CacheImpl._locator_classes = []; "
        "from driftsack.numerics.sampling import draw; import numpy as np; "
        "print(json.dumps(int(draw(np.array([0.0, 1.0]), 0.5))))"
    )
    assert run_python(code, HOME=str(tmp_path)) == 1


def test_import_loads_no_heavy_packages() -> None:
    """``import driftsack`` does not import packages that only some commands need."""
    code = "import json, sys, driftsack; print(json.dumps(sorted(sys.modules)))"
    loaded = set(run_python(code))
    assert "driftsack" in loaded
    assert not loaded & {"numba", "scipy", "highspy", "polars", "matplotlib", "pydantic", "typer", "rich"}
