"""The league: every policy on a suite of worlds, reward as a share of LP-Dynamic.

The table below gives policies the settings that they need or do better with; a policy that it does not name takes part
with its default settings. To enter one, add a line.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from driftsack.core.arrays import Floats
from driftsack.core.errors import DriftsackError
from driftsack.policies import Policy
from driftsack.policies.policy import recipes
from driftsack.sweeps.spec import Spec, make_spec
from driftsack.sweeps.summary import summary

WORLDS: Final[tuple[dict[str, Any], ...]] = (
    {"name": "Example 1", "instance": "example_1"},
    {"name": "Example 2", "instance": "example_2"},
    {"name": "Example 3, α = 1/2", "instance": "example_3", "alpha": 0.5},
    {"name": "Example 4, 10 periods", "instance": "example_4", "periods": 10},
    {"name": "stationary", "instance": "piecewise_random", "changes": 0},
    {"name": "piecewise, 4 changes", "instance": "piecewise_random", "changes": 4},
    {"name": "piecewise, 20 changes", "instance": "piecewise_random", "changes": 20},
    {"name": "sinusoidal", "instance": "sinusoidal"},
    {"name": "random walk", "instance": "random_walk"},
    {"name": "linear trend", "instance": "linear_trend"},
    {"name": "bursts", "instance": "bursts"},
    {"name": "trap, then better", "instance": "budget_trap", "better": True, "w1": 0.05, "w2": 0.05},
    {"name": "trap, then worse", "instance": "budget_trap", "better": False, "w1": 0.05, "w2": 0.05},
    {"name": "rewards switch", "instance": "reward_switching", "arms": 3},
    {"name": "costs switch", "instance": "cost_switching", "arms": 3},
    {"name": "adversarial, best last", "instance": "adversarial_order"},
    {"name": "adversarial, best first", "instance": "adversarial_order", "best_last": False},
)
PER_ROUND: Final = ("w1", "w2")  # settings that are given above as shares of the horizon
PACED_UCB: Final = {"policy": "NaiveUCB", "scale": 0.1, "budget_rule": "remaining"}
ENTRIES: Final[tuple[dict[str, Any], ...]] = (
    {"name": "SW-UCB", "policy": "SlidingWindowUCB", "variation": "measured:variation"},
    {
        "name": "SW-UCB, scale 0.1, remaining",
        "policy": "SlidingWindowUCB",
        "variation": "measured:variation",
        "scale": 0.1,
        "budget_rule": "remaining",
    },
    {"name": "naive UCB", "policy": "NaiveUCB"},
    {"name": "naive UCB, scale 0.1, remaining", **PACED_UCB},
    {"name": "LagrangeBwK, OPT_FD known", "policy": "LagrangeBwK", "benchmark": "measured:opt_fd"},
    {"name": "Thompson, remaining", "policy": "ThompsonBwK", "budget_rule": "remaining"},
    {"name": "Thompson, window 1,000, remaining", "policy": "ThompsonBwK", "windows": 1000, "budget_rule": "remaining"},
    {"name": "GLR restarts, remaining", "policy": "DetectAndRestart", "base": PACED_UCB},
    {"name": "CUSUM restarts, remaining", "policy": "DetectAndRestart", "base": PACED_UCB, "detector": "cusum"},
    {"name": "bandit over bandit, remaining", "policy": "BanditOverBandit", "budget_rule": "remaining"},
    {
        "name": "plan, told ten periods' means",
        "policy": "PlanWithForecast",
        "forecast": "measured:forecast",
        "trust": 0.9,
    },
    {
        "name": "naive UCB paced by that plan",
        "policy": "SpendingPlan",
        "base": {"policy": "NaiveUCB", "scale": 0.1},
        "curve": "measured:spending",
    },
)


def entries() -> list[dict[str, Any]]:
    """The table, and every other policy of the library that starts without being told anything."""
    named = {entry["policy"] for entry in ENTRIES}
    found = list(ENTRIES)
    for recipe in recipes():
        if recipe.__module__.startswith("driftsack.policies.") and recipe.__name__ not in named and by_default(recipe):
            named.add(recipe.__name__)
            found.append({"policy": recipe.__name__, "name": recipe.__name__})
    return found


def by_default(recipe: type[Policy]) -> bool:
    """Whether a policy can be made without settings."""
    try:
        recipe()
    except (TypeError, DriftsackError):  # abstract, or it needs to be told something: give it a line in ENTRIES
        return False
    return True


def league_spec(trials: int, horizon: int, seed: int) -> Spec:
    """Every entry in every world."""
    worlds = [
        {name: value * horizon if name in PER_ROUND else value for name, value in world.items()} for world in WORLDS
    ]
    worlds = [{**world, "horizon": horizon} for world in worlds]
    return make_spec({"instances": worlds, "policies": entries(), "trials": trials, "seeds": [seed]})


def standings(trials: pl.DataFrame, failed: list[dict[str, str]], spec: Spec) -> pl.DataFrame:
    """One row a policy and world, the best policy first: share of LP-Dynamic, or why there is none.

    ``mean_share`` is the mean of a policy's shares over the worlds in which it played; a mean over fewer worlds does
    not compare, so who refused more stands lower.
    """
    shares = {(row["instance"], row["policy"]): row for row in summary(trials).iter_rows(named=True)}
    reasons = {tuple(fault["cell"].split(", seed ")[0].split(" on ", 1)): fault["error"] for fault in failed}
    rows = []
    for policy in spec.policies:
        for world in spec.instances:
            row = shares.get((world.label, policy.label))
            rows.append(
                {
                    "policy": policy.label,
                    "world": world.label,
                    "optimum_share": None if row is None else row["optimum_share"],
                    "optimum_share_se": None if row is None else row["optimum_share_se"],
                    "reason": reasons.get((policy.label, world.label), "" if row else "not played"),
                }
            )
    table = pl.DataFrame(rows, schema_overrides={"optimum_share": pl.Float64, "optimum_share_se": pl.Float64})
    mean = pl.col("optimum_share").mean().over("policy").alias("mean_share")
    refusals = pl.col("optimum_share").is_null().sum().over("policy")
    order = [refusals, pl.col("optimum_share").mean().over("policy")]
    return table.sort(order, descending=[False, True], nulls_last=True, maintain_order=True).with_columns(mean)


def overview(table: pl.DataFrame) -> pl.DataFrame:
    """One row a policy, the best first: its mean share with standard error, its worst and best world, its refusals."""
    error = pl.col("optimum_share_se").pow(2).sum().sqrt() / pl.col("optimum_share").count()
    return table.group_by("policy", maintain_order=True).agg(
        mean_share=pl.col("optimum_share").mean(),
        mean_share_se=error,
        least_share=pl.col("optimum_share").min(),
        most_share=pl.col("optimum_share").max(),
        refused=pl.col("optimum_share").is_null().sum(),
    )


def as_grid(table: pl.DataFrame) -> tuple[Floats, list[str], list[str]]:
    """Shares (policies, worlds) with NaN where there is none; names of the rows and of the columns, a mean last."""
    policies, worlds = (table[name].unique(maintain_order=True).to_list() for name in ("policy", "world"))
    shares = table["optimum_share"].cast(pl.Float64).fill_null(np.nan).to_numpy().reshape(len(policies), len(worlds))
    known = [row[np.isfinite(row)] for row in shares]
    means = np.array([row.mean() if row.size else np.nan for row in known])
    return np.column_stack([shares, means]), policies, [*worlds, "mean"]
