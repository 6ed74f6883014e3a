"""The routers of lab/rivals.py, set up for the simulated stream of requests."""

from __future__ import annotations

from routing_world import CHANGES, MODELS, REQUESTS, USD, Budgets

import driftsack as ds
from lab.rivals import DriftsackRouter, ParetoBandit

TOKENS = (500, 500)  # in and out of every request


def driftsack_router(policy: ds.Policy, seed: int, budgets: Budgets) -> DriftsackRouter:
    """A policy of driftsack, in real units and without any setting."""
    amounts = dict(zip(("usd", "seconds"), budgets.amounts().tolist(), strict=False))
    return DriftsackRouter(policy, ds.Problem(horizon=REQUESTS, arms=list(MODELS), budget=amounts), seed)


def pareto_router(seed: int, budgets: Budgets, alpha: float) -> ParetoBandit:
    """ParetoBandit with exploration ``alpha`` and without features; the price cut is announced to it at once."""
    before, after, _ = 1e6 * USD / sum(TOKENS)  # dollars per million tokens
    return ParetoBandit(
        MODELS,
        [(price, price) for price in before.tolist()],
        budgets.usd / REQUESTS,
        alpha,
        seed,
        price_changes={CHANGES[0]: (MODELS.index("large"), (after[2], after[2]))},
        tokens=TOKENS,
    )
