"""Policies written outside the package: each plays its own kernels, whatever else runs in the process.

Numba's dispatcher tells NamedTuples apart by name and fields only. Two modules copied from the template of
CONTRIBUTING.md therefore look the same to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.slow  # each process compiles the loop for classes that are not in the package

TEMPLATE = (ROOT / "tests/support/in_turn.py").read_text()
PULLS = """
import json, sys, threading
import numpy as np
import driftsack as ds
from driftsack.policies import SpendingPlan

world = ds.Instance.stationary([1.0, 0.0], [[0.0, 0.0]], horizon=40, budget=10.0, noise="deterministic")

def reward(policy, **options):
    return ds.simulate(world, policy, trials=2, seed=0, **options).reward.tolist()
"""


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """Two modules with the same class names and fields: ``always_0`` plays arm 0, ``always_1`` arm 1."""
    for arm in (0, 1):
        source = TEMPLATE.replace("arm = round.t % mix.size", f"arm = {arm}")
        assert source != TEMPLATE
        (tmp_path / f"always_{arm}.py").write_text(source)
    return tmp_path


def run(modules: Path, code: str, **environment: str) -> Any:
    """Run a program that can import both modules, and return the JSON that it prints."""
    path = os.pathsep.join([str(modules), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", PULLS + code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_policies_of_one_process_play_their_own_kernels(modules: Path, order: tuple[int, int]) -> None:
    """In either order, in one thread or two, again later, by ask and tell, and (in one order) inside other policies."""
    code = f"""
import always_0, always_1
modules = {{0: always_0, 1: always_1}}
order = {order}
found = {{}}
for arm in order:
    policy = modules[arm].InTurn()
    found[f"simulate {{arm}}"] = reward(policy, threads=1)
    found[f"threads {{arm}}"] = reward(policy, threads=2)
    if order == (0, 1):
        found[f"wrapped {{arm}}"] = reward(SpendingPlan(policy, curve=[0.0, 1.0]))
        found[f"batch {{arm}}"] = policy.start(world.problem, seed=0).ask_many(2).arms.tolist()
    learner = policy.start(world.problem, seed=0)
    decision = learner.ask()
    learner.tell(decision, reward=1.0, costs=[0.0])
    found[f"ask {{arm}}"] = [decision.arm, learner.ask().arm]
for arm in order:
    found[f"again {{arm}}"] = reward(modules[arm].InTurn())
print(json.dumps(found))
"""
    found = run(modules, code)
    for arm in (0, 1):
        earned = [40.0, 40.0] if arm == 0 else [0.0, 0.0]
        in_one_order = order == (0, 1)
        for way in ("simulate", "threads", "again", *["wrapped"] * in_one_order):
            assert found[f"{way} {arm}"] == earned, (way, arm)
        for way in ("ask", *["batch"] * in_one_order):
            assert found[f"{way} {arm}"] == [arm, arm]


def test_two_threads_may_compile_them_at_once(modules: Path) -> None:
    """Each thread simulates a policy of its own; a second process finds no code of theirs on disk."""
    code = """
import always_0, always_1
found = {}
def play(arm, module):
    found[arm] = reward(module.InTurn(), threads=1)
threads = [threading.Thread(target=play, args=(arm, module)) for arm, module in enumerate((always_0, always_1))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps([found[0], found[1]]))
"""
    cache = modules / "cache"
    for _ in range(2):
        assert run(modules, code, NUMBA_CACHE_DIR=str(cache)) == [[40.0, 40.0], [0.0, 0.0]]
    assert not [path for path in cache.rglob("*") if "run_rounds" in path.name]


def test_a_copy_of_a_policy_of_the_package_plays_its_own_kernels(modules: Path) -> None:
    """The state has the name and the fields of the original; both orders."""
    source = (ROOT / "src/driftsack/policies/always_arm.py").read_text()
    reads = "arm = int(state.arm[0])"
    assert reads in source
    copied = source.replace("AlwaysArm", "NeverArm").replace(reads, "arm = 1 - int(state.arm[0])")
    (modules / "never_arm.py").write_text(copied)
    code = """
from never_arm import NeverArm
policies = {"always": ds.policies.AlwaysArm(0), "never": NeverArm(0)}
order = %s
print(json.dumps({name: reward(policies[name]) for name in order}))
"""
    for order in (["always", "never"], ["never", "always"]):
        assert run(modules, code % order) == {"always": [40.0, 40.0], "never": [0.0, 0.0]}


def test_reload_and_a_cell_that_is_run_again_take_effect(modules: Path) -> None:
    """The second definition plays its own kernels; a kernel that is redefined alone is refused with advice."""
    code = """
import importlib, pathlib
import always_0
found = [reward(always_0.InTurn())]
path = pathlib.Path(always_0.__file__)
path.write_text(path.read_text().replace("arm = 0", "arm = 1"))
importlib.invalidate_caches()
importlib.reload(always_0)
found.append(reward(always_0.InTurn()))

cell = path.read_text()
exec(compile(cell, "<cell 1>", "exec"), globals())
found.append(reward(InTurn()))
exec(compile(cell.replace("arm = 1", "arm = 0"), "<cell 2>", "exec"), globals())
found.append(reward(InTurn()))

kernels = cell[cell.index("@kernel"):cell.index("@kernel", cell.index("@kernel") + 1)]
exec(compile(kernels, "<cell 3>", "exec"), globals())
refused = []
for use in (lambda: reward(InTurn()), lambda: InTurn().start(world.problem)):
    try:
        use()
    except ds.errors.SettingError as error:
        refused.append(str(error))
print(json.dumps([found, refused]))
"""
    found, refused = run(modules, code, PYTHONDONTWRITEBYTECODE="1")
    assert found == [[40.0, 40.0], [0.0, 0.0], [0.0, 0.0], [40.0, 40.0]]
    assert len(refused) == 2
    for message in refused:
        assert "choose of __main__ was defined again" in message
        assert "define State again too" in message


def test_ray_workers_play_each_policy_with_its_own_kernels(modules: Path) -> None:
    """Both policies in one worker, in both orders."""
    code = """
from driftsack.sweeps.ray_engine import RAY_ENVIRONMENT
import os
os.environ.update(RAY_ENVIRONMENT)
import ray

def play(order):
    import always_0, always_1
    policies = {0: always_0.InTurn(), 1: always_1.InTurn()}
    return {arm: reward(policies[arm]) for arm in order}

ray.init(num_cpus=1, log_to_driver=False, include_dashboard=False)
task = ray.remote(play)
found = ray.get([task.remote(order) for order in ([0, 1], [1, 0])])
ray.shutdown()
print(json.dumps(found))
"""
    for found in run(modules, code):
        assert found == {"0": [40.0, 40.0], "1": [0.0, 0.0]}


def test_the_check_notices_a_dispatcher_that_all_classes_share(modules: Path) -> None:
    """The planted fault is what the library did: one copy of the loop for all states from outside."""
    code = """
import always_0, always_1
from driftsack.game import trial_loop
trial_loop.copy_for = lambda kernel, state: kernel
print(json.dumps([reward(module.InTurn()) for module in (always_0, always_1)]))
"""
    assert run(modules, code, NUMBA_CACHE_DIR=str(modules / "cache")) == [[40.0, 40.0], [40.0, 40.0]]
