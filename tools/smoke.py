"""A smoke test of an installed driftsack, run by tools/release.py in a fresh environment: it imports nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import driftsack as ds


def main(expected: str) -> None:
    """Run the quick start, a simulation and the command line; exit with a message if a check fails."""
    check(ds.__version__ == expected, f"version {expected}, got {ds.__version__}")
    check((Path(ds.__file__).parent / "py.typed").exists(), "the marker py.typed")
    problem = ds.Problem(horizon=200, arms=["small", "large"], budget={"usd": 1}, cost_max={"usd": 0.05})
    learner = ds.Adaptive().start(problem, seed=0, safe=True)
    while not learner.done:
        decision = learner.ask()
        if not decision.skipped:
            large = decision.name == "large"
            learner.tell(decision, reward=0.9 if large else 0.5, costs={"usd": 0.02 if large else 0.002})
    check(bool((learner.remaining >= 0).all()), "a budget that is not overspent")
    with tempfile.TemporaryDirectory() as directory:
        learner.save(Path(directory) / "learner")
        again = ds.Learner.load(Path(directory) / "learner", read_only=True)
        check(again.state_hash() == learner.state_hash(), "a learner that is the same after save and load")
    world = ds.instances.example_2(horizon=500)
    run = ds.simulate(world, ds.Adaptive(), trials=4, seed=0)
    best = ds.benchmarks.lp_dynamic(world)
    check(0.5 * best.value < run.reward.mean() < 1.1 * best.value, f"a simulation near {best.value}, got {run.reward}")
    command = [sys.executable, "-m", "driftsack", "--version"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    check(done.stdout.strip() == expected, f"the command to print {expected}, got {done.stdout}")


def check(holds: bool, expected: str) -> None:
    """Exit with a message unless something holds."""
    if not holds:
        sys.exit(f"smoke test: expected {expected}")


if __name__ == "__main__":
    main(sys.argv[1])
