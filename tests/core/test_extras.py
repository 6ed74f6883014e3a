"""The core needs NumPy and Numba only, and a missing extra is named in one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest

from driftsack.core.errors import MissingExtraError
from driftsack.core.extras import EXTRAS, require
from tests.support.paths import ROOT

BLOCKED = ("scipy", "highspy", "polars", "matplotlib", "pydantic", "typer", "rich", "ruptures", "msgspec", "pandas")
BLOCK = f"import sys; sys.modules.update(dict.fromkeys({BLOCKED}))\n"
CORE = """
import json, tempfile
import numpy as np
import driftsack as ds

problem = ds.Problem(horizon=10_000, arms=["small", "medium", "large"], budget={"usd": 60}, cost_max={"usd": 0.5})
learner = ds.Adaptive().start(problem, seed=0, safe=True)
for _ in range(20):
    decision = learner.ask()
    if not decision.skipped:
        learner.tell(decision, reward=1.0, costs={"usd": 0.004})
with tempfile.TemporaryDirectory() as directory:
    learner.save(f"{directory}/learner")
    same = ds.Learner.load(f"{directory}/learner", read_only=True).state_hash() == learner.state_hash()
world = ds.instances.example_2(horizon=300)
run = ds.simulate(world, ds.NaiveUCB(scale=0.1), trials=2)
best = ds.lp.step_lp(rewards=[0.5, 1.0], costs=[[0.2, 1.0]], rate=0.5)
log = ds.gather(world)
value = ds.logs.evaluate_mix(log, [0.5, 0.5])
print(json.dumps([same, float(run.reward.mean()) > 0, best.value]))
"""
NEEDY = {
    "ds.benchmarks.lp_dynamic(ds.instances.example_2(horizon=200))": "plan",
    "ds.logs.read('no-such-file.csv')": "logs",
    "ds.plot": "plot",
    "ds.paper": "logs",
    "ds.sweeps": "logs",
    "ds.verify": "plan",
}


def run_blocked(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DRIFTSACK_COMPILE": "never"}
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code], env=environment, capture_output=True, text=True, check=False
    )


def test_the_core_works_without_every_optional_package() -> None:
    done = run_blocked(CORE)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, True, 0.6875]


@pytest.mark.parametrize("code", NEEDY)
def test_a_missing_extra_is_named_where_it_is_needed(code: str) -> None:
    done = run_blocked(f"import driftsack as ds; {code}")
    last = done.stderr.strip().splitlines()[-1]
    assert re.fullmatch(
        rf"driftsack\.core\.errors\.MissingExtraError: this needs the package \w+; "
        rf"pip install 'driftsack\[{NEEDY[code]}\]'\.",
        last,
    ), done.stderr


def test_the_command_without_its_extra_prints_one_line() -> None:
    done = run_blocked("from driftsack.__main__ import main; main()")
    assert done.returncode == 1
    assert done.stderr == "driftsack: this needs the package typer; pip install 'driftsack[cli]'.\n"


@pytest.mark.parametrize("command", [["verify"], ["league"], ["measure", "example-2"]])
def test_a_command_without_an_extra_that_it_needs_prints_one_line(command: list[str]) -> None:
    blocked = BLOCK.replace("'typer', 'rich', ", "")
    code = f"{blocked}import sys\nsys.argv[1:] = {command}\nfrom driftsack.__main__ import main\nmain()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.startswith("driftsack: ")
    assert "pip install" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_each_extra_that_is_named_has_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(re.match(rf"{package}\b", wanted) for wanted in extras[extra]), (package, extra)
    mandatory = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert sorted(re.match(r"\w+", wanted)[0] for wanted in mandatory) == ["numba", "numpy"]  # type: ignore[index]


def test_require_accepts_what_is_installed() -> None:
    require("numpy", "numba")
    with pytest.raises(MissingExtraError, match=r"no_such_package; pip install 'driftsack\[all\]'"):
        require("numpy", "no_such_package")
