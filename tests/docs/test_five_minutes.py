"""The first five minutes: from a realistic log to a policy that spends the budget well, by the command of the README.

A log of requests to three language models is written as it would be found: columns with names of its own, dollars and
seconds, several requests in a second, 85 rows written twice, 2% of the outcomes lost, and one price change. ``driftsack
advise`` reads it, and the policy that it saved plays the continuation of that world, in which outcomes are lost too.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import driftsack as ds
from driftsack.benchmarks import lp_dynamic
from driftsack.game.world import draw_outcome, world_of
from tests.support import split_worlds as half_worlds
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow

README = ROOT / "README.md"
ROUNDS = 8_000
DUPLICATES = 85
LOST = 0.02
PAST, FUTURE = half_worlds.halves(half_worlds.language_models(ROUNDS))


def write_log(path: Path) -> None:
    """Write the log of randomly routed requests as a CSV file."""
    rng = np.random.default_rng(0)
    log = ds.gather(PAST, seed=0)
    seconds = np.sort(rng.integers(0, ROUNDS // 2, ROUNDS))
    begin = datetime(2025, 3, 1, 8, tzinfo=UTC)
    frame = pl.DataFrame(
        {
            "ts": [begin + timedelta(seconds=int(second)) for second in seconds],
            "model": [log.arms[i] for i in log.arm],
            "ok": [reward > 0 for reward in log.reward],
            "usd": log.costs[:, 0].round(6),
            "seconds": log.costs[:, 1].round(3),
        }
    )
    lost = rng.random(ROUNDS) < LOST
    frame = frame.with_columns(ok=pl.when(pl.Series(~lost)).then("ok"))
    twice = np.sort(rng.choice(ROUNDS, DUPLICATES, replace=False))
    frame[np.sort(np.concatenate([np.arange(ROUNDS), twice])).tolist()].write_csv(path)


def play(learner: ds.Learner, seed: int) -> float:
    """Play the continuation and return the reward; the costs of lost outcomes are known from the bill."""
    rng, world = np.random.default_rng(seed), world_of(FUTURE)
    unit, uses = np.array(FUTURE.problem.cost_max), np.zeros(2)
    total, t = 0.0, 0
    while not learner.done:
        decision = learner.ask()
        if not decision.skipped:
            arm = FUTURE.problem.arm_names.index(decision.name)
            reward = draw_outcome(world, t, arm, uses, rng)
            costs = dict(zip(FUTURE.problem.resource_names, (uses * unit).tolist(), strict=True))
            if rng.random() < LOST:
                learner.cancel(decision, costs)
            else:
                learner.tell(decision, reward, costs)
            total += reward if (learner.remaining >= 0).all() else 0.0  # the round that breaks a budget earns nothing
        t += 1
    return total


def command_of_readme() -> list[str]:
    """The command that the README prints, with the budgets and the number of requests of this world."""
    printed = re.search(r"```sh\n(driftsack advise .*?)```", README.read_text(), re.DOTALL)
    assert printed is not None
    words = shlex.split(printed[1].replace("\\\n", " "))
    usd, seconds = FUTURE.problem.budget
    own = {"usd=60": f"usd={usd}", "seconds=18000": f"seconds={seconds}", "10000": str(ROUNDS)}
    assert own.keys() <= set(words)
    return [sys.executable, "-m", "driftsack", *(own.get(word, word) for word in words[1:])]


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the log was written and the command was run."""
    directory = tmp_path_factory.mktemp("five-minutes")
    write_log(directory / "log.csv")
    done = subprocess.run([*command_of_readme(), "--json"], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (directory / "advice.json").write_text(done.stdout)
    return directory


def test_the_log_is_read_as_it_is(advised: Path) -> None:
    found = json.loads((advised / "advice.json").read_text())
    assert found["log"]["rows"] == ROUNDS
    assert found["log"]["repeated"] == DUPLICATES
    assert 0.5 * LOST * ROUNDS < found["log"]["lost"] < 1.5 * LOST * ROUNDS
    assert found["log"]["inferred"] == ["reward", "usd", "seconds"]
    times = pl.read_csv(advised / "log.csv")["ts"]
    assert times.n_unique() < 0.6 * ROUNDS  # most requests share their second with another
    assert found["drift"]["found"]
    assert found["drift"]["where"] == ["large", "usd"]  # the price change


def test_the_saved_policy_spends_the_budget_well(advised: Path) -> None:
    """At least 95% of LP-Dynamic on the continuation, above every simple way to spend; means of five continuations."""
    optimum = lp_dynamic(FUTURE).value
    path = advised / "advice.learner"
    shares = [play(ds.Learner.load(path, read_only=True), seed) / optimum for seed in range(5)]
    rivals = {name: ds.policies.AlwaysArm(name) for name in FUTURE.problem.arm_names} | {
        "uniform": ds.policies.UniformRandom(),
        "epsilon-greedy with pacing": ds.policies.EpsilonGreedy(),
    }
    simple = {name: ds.simulate(FUTURE, policy, trials=20).reward.mean() / optimum for name, policy in rivals.items()}
    assert np.mean(shares) >= 0.95, shares
    assert np.mean(shares) > max(simple.values()) + 0.01, simple
    assert min(simple.values()) < 0.7  # the budget is scarce: how it is spent matters
