"""Measure every router on the same streams of requests and print the tables of docs/comparison.md.

It needs the other libraries, which are not dependencies of this project. In a separate environment, run
``pip install . river mabwiser vowpalwabbit paretobandit``, then ``python docs/comparison/measure.py [STREAMS]``.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from routing_world import MODELS, Budgets, instance, optimum, play
from setups import driftsack_router, pareto_router

import driftsack as ds
from lab.rivals import Always, MabWiser, Prices, River, Router, VowpalWabbit

Maker = Callable[[int], Router]
Library = type[River] | type[MabWiser] | type[VowpalWabbit]  # one that knows no budgets
SETTINGS = {"dollars": Budgets(), "dollars and seconds": Budgets(seconds=18_000.0)}
USD_PRICES = (0.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0)
SECOND_PRICES = (0.0, 0.02, 0.05, 0.1)
EXPLORATION = (0.01, 0.1, 0.3, 1.0)  # of ParetoBandit; the first is its default
CHOSEN_ON = range(1_000, 1_003)  # streams on which the best settings are chosen; others judge them


def mean_share(make: Maker, budgets: Budgets) -> float:
    """The mean share of the best plan on the streams on which settings are chosen."""
    return float(np.mean([play(make(seed), seed, budgets).good[-1] for seed in CHOSEN_ON])) / optimum(budgets)


def best_prices(make: Library, budgets: Budgets) -> Prices:
    """The prices with which a library without budgets earns most: they are searched with knowledge of the world."""
    seconds = SECOND_PRICES if budgets.seconds is not None else (0.0,)
    grid = itertools.product(USD_PRICES, seconds)
    return max(grid, key=lambda prices: mean_share(partial(make, len(MODELS), prices=prices), budgets))


def routers(budgets: Budgets) -> dict[str, Maker]:
    """Every router by its name in the table."""
    pareto = partial(pareto_router, budgets=budgets)
    alpha = max(EXPLORATION, key=lambda alpha: mean_share(partial(pareto, alpha=alpha), budgets))
    found: dict[str, Maker] = {
        "driftsack, `Adaptive()`": partial(driftsack_router, ds.Adaptive(), budgets=budgets),
        "hand-written ε-greedy with pacing": partial(driftsack_router, ds.policies.EpsilonGreedy(), budgets=budgets),
        "ParetoBandit, cold start": partial(pareto, alpha=EXPLORATION[0]),
        f"ParetoBandit, best exploration ({alpha:g})": partial(pareto, alpha=alpha),
    }
    libraries: dict[str, Library] = {"river": River, "MABWiser": MabWiser, "Vowpal Wabbit": VowpalWabbit}
    for name, make in libraries.items():
        prices = best_prices(make, budgets)
        label = " and ".join(f"{price:g}" for price in prices[: len(budgets.amounts())])
        found[f"{name}, quality only"] = partial(make, len(MODELS), prices=(0.0, 0.0))
        found[f"{name}, best fixed prices ({label})"] = partial(make, len(MODELS), prices=prices)
    return found | {f"always {name}": lambda _, arm=arm: Always(arm) for arm, name in enumerate(MODELS)}


def main(streams: int) -> None:
    """Print a table for each kind of budgets."""
    logging.disable(logging.WARNING)
    for title, budgets in SETTINGS.items():
        best = optimum(budgets)
        print(f"\nBudget: {title}; the best plan expects {best:,.0f} good answers\n")
        print("| router | share of the best plan | requests before a budget is exhausted |\n| --- | --- | --- |")
        known = ds.benchmarks.present(instance(budgets))
        for pace, good in {"even pace": known.even, "two speeds": known.two_speed}.items():
            print(f"| *present means known, {pace}* | {good / best:.3f} | |")
        for name, make in routers(budgets).items():
            played = [play(make(seed), seed, budgets) for seed in range(streams)]
            earned = np.array([stream.good[-1] for stream in played]) / best
            reached = np.mean([len(stream.good) for stream in played])
            error = earned.std(ddof=1) / streams**0.5
            print(f"| {name} | {earned.mean():.3f} ± {error:.3f} | {reached:,.0f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
