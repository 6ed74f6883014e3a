# ruff: noqa: T201
"""Programs as a user writes them, which ``make check`` type-checks strictly: those of the docs, and choices by name.

``test_user_snippets.py`` compares the programs with the docs; ``test_quickstart.py`` runs them.
"""

from __future__ import annotations

from typing import assert_type

import driftsack as ds
from driftsack.client import Client, RemoteDecision

KEY = "key"


def quick_start() -> None:
    # fmt: off
    # from docs/quickstart.md
    import driftsack as ds

    problem = ds.Problem(
        horizon=10_000,  # expected requests
        arms=["small", "medium", "large"],
        budget={"usd": 60, "seconds": 18_000},
        cost_max={"usd": 0.50, "seconds": 60},  # maximum cost of one request
    )
    learner = ds.Adaptive().start(problem, seed=0, safe=True)

    decision = learner.ask()  # decision.name is the model; decision.skipped if no model should be called
    learner.tell(decision, reward=1.0, costs={"usd": 0.004, "seconds": 1.9})
    print(learner)
    # and
    import numpy as np

    rng = np.random.default_rng(0)
    quality = {"small": 0.55, "medium": 0.74, "large": 0.88}
    usd = {"small": 0.0006, "medium": 0.004, "large": 0.02}
    seconds = {"small": 0.8, "medium": 1.6, "large": 4.5}
    good = 0
    while not learner.done:
        decision = learner.ask()
        if decision.skipped:  # send nothing, tell nothing
            continue
        answer = rng.random() < quality[decision.name]
        dollars = usd[decision.name] * rng.uniform(0.5, 1.5)
        took = seconds[decision.name] * rng.uniform(0.5, 1.5)
        learner.tell(decision, reward=float(answer), costs={"usd": dollars, "seconds": took})
        good += answer
    print(good, "good answers; no budget was exceeded:", bool((learner.remaining >= 0).all()))
    # fmt: on


def ask_a_service() -> None:
    # fmt: off
    # from docs/service.md
    from driftsack.client import Client

    with Client("http://localhost:8787", key=KEY, campaign="chat") as client:
        decision = client.ask(caps={"usd": "0.03"})
        if not decision.skipped:
            client.tell(decision, reward=1.0, costs={"usd": "0.002"})
    # fmt: on


def names_are_strings(learner: ds.Learner, client: Client, own: ds.Decision, remote: RemoteDecision) -> None:
    """The names of arms can be used as keys as soon as a skip has been dealt with."""
    assert_type(own.name, str)
    assert_type(remote.name, str)
    client.tell(remote.id, reward=1.0)
    assert_type(learner.budgets["usd"].left, float)


def choices_are_checked() -> None:
    """A misspelt choice is an error of the type checker; each ``ignore`` would be one if it were not needed."""
    ds.Adaptive(pacing="fixed")
    ds.Adaptive(pacing="fast")  # type: ignore[arg-type]
    ds.SlidingWindowUCB(windows=9, budget_rule="even")  # type: ignore[arg-type]
    ds.SlidingWindowUCB(windows=9, radius="small")  # type: ignore[arg-type]
    ds.ThompsonBwK(budget_rule="two-speed")
    ds.instances.example_2(noise="normal")  # type: ignore[arg-type]
    ds.Adaptive().start(ds.Problem(9, 2, 3.0), safe="very")  # type: ignore[arg-type]
    Client("http://localhost:8787", KEY, "chat").close(pending="drop")  # type: ignore[arg-type]
