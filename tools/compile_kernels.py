"""Compile the kernels of every policy into the cache, each in one process.

Tests run in several processes, and each compiles what it needs and does not find. Without this step many kernels are
compiled by several of them at once. Usage: python -m tools.compile_kernels
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

import driftsack as ds
from driftsack.bench.soak.driver import cores
from driftsack.bench.soak.worlds import variants

ROUNDS = 20
FIRST = ("LinearBwK", "Adaptive", "Master", "BanditOverBandit", "DetectAndRestart")  # they take longest
COMPARED = ("Adaptive", "AlwaysArm", "UniformRandom")  # tests simulate them in worlds with contexts, too
PROBLEM = ds.Problem(horizon=ROUNDS, arms=2, budget=[10.0, 10.0], cost_max=[1.0, 1.0])


def compile_policy(name: str) -> tuple[str, float]:
    """Use a policy in all ways that have a kernel of their own; return its name and how many seconds that took."""
    start = time.perf_counter()
    warnings.simplefilter("ignore")
    single = name == "Exp3BwK"
    problem = ds.Problem(horizon=ROUNDS, arms=2, budget=10.0, cost_max=1.0) if single else PROBLEM
    policy = variants()[name](problem)
    means = np.full((1, 2), 0.5), np.full((1, problem.resources, 2), 0.3)
    plain = ds.Instance(problem, *means, np.zeros(ROUNDS, dtype=np.int32))
    rewards, costs = (np.repeat(part[:, None], 2, axis=1) for part in means)
    order = np.arange(ROUNDS, dtype=np.int32) % 2
    featured = replace(problem, features=2)
    if policy.needs_context or name in COMPARED:
        world = ds.ContextualInstance(featured, np.eye(2), rewards, costs, plain.phase, order=order)
        ds.simulate(world, policy, trials=1)
    if not policy.needs_context:
        ds.simulate(plain, policy, trials=1)
    learner = policy.start(featured if policy.needs_context else problem, safe=True)
    contexts = np.eye(2) if policy.needs_context else None
    decision = learner.ask(context=None if contexts is None else contexts[0])
    if not decision.skipped:
        learner.tell(decision, 0.5, np.full(problem.resources, 0.1))
    learner.tell_many(learner.ask_many(2, contexts=contexts), np.full(2, 0.5), np.full((2, problem.resources), 0.1))
    if policy.teachable:
        log = SimpleNamespace(
            arms=problem.arm_names,
            resources=problem.resource_names,
            arm=np.zeros(1, dtype=np.int32),
            reward=np.ones(1),
            costs=np.ones((1, problem.resources)),
            propensity=None,
            contexts=np.eye(2)[:1],
        )
        learner.teach(log)
    return name, time.perf_counter() - start


def main() -> None:
    """Compile all policies, those that take longest first."""
    names = sorted(variants(), key=lambda name: (name not in FIRST, name))
    with multiprocessing.get_context("spawn").Pool(cores(), maxtasksperchild=4) as pool:
        for name, seconds in pool.imap_unordered(compile_policy, names):
            print(f"compiled {name} in {seconds:.0f} seconds", flush=True)


if __name__ == "__main__":
    main()
