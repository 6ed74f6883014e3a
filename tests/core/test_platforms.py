"""The library without ``fcntl`` and ``fork``, as on Windows, and what its metadata says about platforms."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PROGRAM = """
import os, sys
import numpy  # which asks for the real platform
sys.platform = sys.argv[1]
if sys.platform == "win32":
    sys.modules["fcntl"] = None
    for name in ("fork", "register_at_fork", "sched_getaffinity"):
        if hasattr(os, name):
            delattr(os, name)
import driftsack as ds

learner = ds.Adaptive().start(ds.Problem(50, ["a", "b"], {"usd": 20}, cost_max=1), seed=0, safe=True)
decision = learner.ask()
learner.tell(decision, reward=1.0, costs={"usd": 0.5})
learner.save(sys.argv[2])
loaded = ds.Learner.load(sys.argv[2], read_only=sys.platform != "win32")
assert loaded.state_hash() == learner.state_hash()
run = ds.simulate(ds.instances.example_2(horizon=100), ds.NaiveUCB(scale=0.1), trials=2, seed=0)
print(loaded.remaining[0], run.reward.shape)
"""


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_library_runs_on_each_platform(platform: str, tmp_path: Path) -> None:
    """With a planted platform; on Windows nothing is locked, so the file can be loaded while it is held."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, platform, str(tmp_path / "one.learner")],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "src"), "DRIFTSACK_COMPILE": "never"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "19.5 (2,)\n"


def test_the_metadata_name_the_platforms_and_versions_of_the_docs() -> None:
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    for system in ("MacOS", "Microsoft :: Windows", "POSIX :: Linux"):
        assert f"Operating System :: {system}" in named
    assert [name.rpartition(" ")[2] for name in named if "Python :: 3." in name] == ["3.11", "3.12", "3.13", "3.14"]
    page = " ".join((ROOT / "docs" / "install.md").read_text(encoding="utf-8").split())
    assert "on Windows, where there is no `flock` and no `fork`, files of learners are not locked" in page
