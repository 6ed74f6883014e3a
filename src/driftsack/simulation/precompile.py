"""Compile the kernels of policies into the disk cache before they are needed.

Machine code depends on the classes of a policy's state, not on its settings or on the size of the problem, so it is
enough to use each policy once on a tiny problem.
"""

from __future__ import annotations

import inspect
import math
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Final

import numpy as np

from driftsack import policies
from driftsack.benchmarks import present
from driftsack.core.contextual import ContextualInstance
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.policies.learner import Learner
from driftsack.policies.oracles import Oracle
from driftsack.policies.policy import Policy, recipes
from driftsack.simulation.simulate import simulate

ROUNDS: Final = 20
SLOWEST: Final = ("LinearBwK", "Adaptive", "Master", "BanditOverBandit", "DetectAndRestart")
RECOMMENDED: Final = ("Adaptive", "DisjointBwK", "LinearBwK", "SlidingWindowUCB")
COMPARED: Final = ("Adaptive", "AlwaysArm", "UniformRandom")  # baselines of simulations with contexts
POLICIES_PER_PROCESS: Final = 14  # what they share is lowered once per process; each adds about 70 MB

Variant = Callable[[Problem], Policy]


def flat_forecast(problem: Problem) -> Instance:
    """A forecast for a problem in which every mean is a third of its maximum."""
    rewards = np.full((1, problem.arms), problem.reward_max / 3)
    costs = np.tile(np.asarray(problem.cost_max)[:, None] / 3, (1, 1, problem.arms))
    return Instance(problem, rewards, costs, np.zeros(problem.horizon, dtype=np.int32))


def paid_block(problem: Problem) -> int:
    """A block length of 200 rounds, or enough rounds to pay for one at the maximum cost."""
    return max(200, 1 + math.ceil(min(1.0 / float(problem.rate.min()), problem.horizon)))


# Policies that have no default settings, and variants whose states have other classes.
NEEDED: Final[dict[str, Variant]] = {
    "SlidingWindowUCB": lambda _: policies.SlidingWindowUCB(windows=(30, 40)),
    "BanditOverBandit": lambda problem: policies.BanditOverBandit(block=paid_block(problem)),
    "PlanWithForecast": lambda problem: policies.PlanWithForecast(flat_forecast(problem)),
}
FURTHER: Final[dict[str, Variant]] = {
    "ThompsonBwK, two-speed": lambda _: policies.ThompsonBwK(budget_rule="two-speed"),
}


def variants() -> dict[str, Variant]:
    """Every policy of the library except the oracles, by name; newly imported policies are included."""
    found: dict[str, Variant] = {}
    for recipe in recipes():
        ours = recipe.__module__.startswith("driftsack.policies.")
        if ours and not inspect.isabstract(recipe) and not issubclass(recipe, Oracle):
            found[recipe.__name__] = NEEDED.get(recipe.__name__, _with_defaults(recipe))
    return dict(sorted((found | FURTHER).items()))


def _with_defaults(recipe: type[Policy]) -> Variant:
    return lambda _: recipe()


def compile_decisions(name: str) -> float:
    """Compile asking, telling and restoring a learner for a key of :func:`variants`; return the seconds it took."""
    begun = time.perf_counter()
    problem = Problem(horizon=100, arms=2, budget={"usd": 1.0}, cost_max={"usd": 0.01}, features=1)
    learner = variants()[name](problem).start(problem, seed=0, safe=True)
    learner._engine.kernels.compile()  # noqa: SLF001
    learner.tell(learner.ask(context=[1.0]), 0.0, [0.0])
    type(learner).from_bytes(learner.to_bytes()).ask(context=[1.0])
    return time.perf_counter() - begun


def compile_everything(name: str) -> float:
    """Compile every kernel for a key of :func:`variants`; return the seconds it took.

    These are simulations and single requests and, for recommended policies, batches and learning from a log.
    """
    begun = time.perf_counter()
    budgets = 1 if name == "Exp3BwK" else 2  # it supports a single resource
    problem = Problem(horizon=ROUNDS, arms=2, budget=[10.0] * budgets, cost_max=[1.0] * budgets)
    policy = variants()[name](problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _simulate_once(name, policy, problem)
        learner = _use_once(policy, problem)
        if name in RECOMMENDED:
            _use_batches(learner)
    return time.perf_counter() - begun


def _simulate_once(name: str, policy: Policy, problem: Problem) -> None:
    """Simulate a policy with and without contexts, as far as it can be, and compute the benchmark of leagues."""
    rewards, costs = np.full((1, 2), 0.5), np.full((1, problem.resources, 2), 0.3)
    phase = np.zeros(ROUNDS, dtype=np.int32)
    if policy.needs_context or name in COMPARED:
        by_context = [np.repeat(part[:, None], 2, axis=1) for part in (rewards, costs)]
        order = np.arange(ROUNDS, dtype=np.int32) % 2
        featured = replace(problem, features=2)
        world = ContextualInstance(featured, np.eye(2), by_context[0], by_context[1], phase, order=order)
        simulate(world, policy, trials=1)
    instance = Instance(problem, rewards, costs, phase)
    if not policy.needs_context:
        simulate(instance, policy, trials=1)
    if name == "Adaptive":  # leagues and advice compare policies with it
        present(instance)


def _use_once(policy: Policy, problem: Problem) -> Learner:
    """Start a learner, let it make a decision, and return it."""
    learner = policy.start(replace(problem, features=2) if policy.needs_context else problem, safe=True)
    learner._engine.kernels.compile()  # noqa: SLF001
    decision = learner.ask(context=[1.0, 0.0] if policy.needs_context else None)
    if not decision.skipped:
        learner.tell(decision, 0.5, np.full(problem.resources, 0.1))
    return learner


def _use_batches(learner: Learner) -> None:
    """Let a learner decide in a batch, and teach it a log if it can learn from one."""
    policy, problem = learner.policy, learner.problem
    contexts = np.eye(2) if policy.needs_context else None
    batch = learner.ask_many(2, contexts=contexts)
    learner.tell_many(batch, np.full(2, 0.5), np.full((2, problem.resources), 0.1))
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


def compile_in_processes(names: Sequence[str], processes: int) -> Iterator[tuple[str, float]]:
    """Compile everything for several keys of :func:`variants` in parallel; yield each with the seconds it took."""
    slowest_first = sorted(names, key=lambda name: (name not in SLOWEST, name))
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=POLICIES_PER_PROCESS) as pool:
        yield from pool.imap_unordered(_compile_named, slowest_first)


def _compile_named(name: str) -> tuple[str, float]:
    return name, compile_everything(name)
