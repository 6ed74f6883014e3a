"""The league: every policy on a suite of instances, its reward as a share of LP-Dynamic.

``WORLDS`` holds only instances on which learning pays: the best learner is well ahead of uniform random choice. (On
Example 3 with α ≥ 1/2 uniform choice is near the optimum, because its early end happens to be the best plan.) Judge a
policy that was developed on these worlds on held-out ones (:mod:`driftsack.sweeps.held_out`).

``ENTRIES`` lists policies with settings that they need or perform better with. A policy that is not listed takes part
with its default settings; to enter one with other settings, add a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import polars as pl

from driftsack.benchmarks import lp_dynamic, present
from driftsack.core.arrays import Floats
from driftsack.core.errors import DriftsackError
from driftsack.instances.families import FAMILIES
from driftsack.policies import Policy
from driftsack.policies.policy import recipes
from driftsack.sweeps.cells import FailedCell
from driftsack.sweeps.spec import InstanceSpec, Spec, make_spec
from driftsack.sweeps.summary import summary

FAMILY_SEED: Final = 6
"""The seed of 0 to 8 at which the least lead of a learner over uniform random choice is largest (T = 2,000)."""
WORLDS: Final[tuple[dict[str, Any], ...]] = (
    {"name": "Example 1", "instance": "example_1"},
    {"name": "Example 2", "instance": "example_2"},
    {"name": "Example 3, α = 1/10", "instance": "example_3", "alpha": 0.1},
    {"name": "Example 4, 10 periods", "instance": "example_4", "periods": 10},
    *({"name": family, "seed": FAMILY_SEED, **settings} for family, settings in FAMILIES.items()),
    {"name": "trap, then better", "instance": "budget_trap", "better": True, "w1": 0.05, "w2": 0.05},
    {"name": "adversarial, best last", "instance": "adversarial_order"},
)
HORIZON_SHARES: Final = ("w1", "w2")  # arguments that are given above as shares of the horizon
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

TUNED: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "SW-UCB, scale 0.05, remaining",
        "policy": "SlidingWindowUCB",
        "variation": "measured:variation",
        "scale": 0.05,
        "budget_rule": "remaining",
    },
    {"name": "window 1,000, scale 0.05", **PACED_UCB, "policy": "SlidingWindowUCB", "windows": 1000, "scale": 0.05},
    {"name": "naive UCB, scale 0.05", **PACED_UCB, "scale": 0.05},
    {"name": "discount 0.999, scale 0.05", **PACED_UCB, "policy": "DiscountedUCB", "discount": 0.999, "scale": 0.05},
    {"name": "Thompson, window 500", "policy": "ThompsonBwK", "windows": 500, "budget_rule": "remaining"},
    {"name": "GLR restarts, scale 0.05", "policy": "DetectAndRestart", "base": {**PACED_UCB, "scale": 0.05}},
    {"name": "GLR restarts, scale 0.02", "policy": "DetectAndRestart", "base": {**PACED_UCB, "scale": 0.02}},
    {
        "name": "CUSUM restarts, scale 0.05",
        "policy": "DetectAndRestart",
        "base": {**PACED_UCB, "scale": 0.05},
        "detector": "cusum",
    },
)
"""Further settings on held-out worlds, so that ``Adaptive`` is compared with tuned policies."""

TWELVE: Final = (
    "naive UCB, scale 0.1, remaining",
    "naive UCB, scale 0.05",
    "window 1,000, scale 0.05",
    "discount 0.999, scale 0.05",
    "Thompson, remaining",
    "Thompson, window 1,000, remaining",
    "Thompson, window 500",
    "GLR restarts, remaining",
    "GLR restarts, scale 0.05",
    "GLR restarts, scale 0.02",
    "CUSUM restarts, remaining",
    "CUSUM restarts, scale 0.05",
)
"""The settings among which the best of each world is picked in hindsight: paced, and told nothing of the world."""


def entries() -> list[dict[str, Any]]:
    """``ENTRIES``, and every other policy of the library that needs neither settings nor contexts."""
    entered = {entry["policy"] for entry in ENTRIES}
    result = list(ENTRIES)
    for policy in recipes():
        name = policy.__name__
        if policy.__module__.startswith("driftsack.policies.") and name not in entered and needs_no_settings(policy):
            entered.add(name)
            result.append({"policy": name, "name": name})
    return result


def needs_no_settings(policy: type[Policy]) -> bool:
    """Whether a policy can be made without settings, and decides without contexts, which the worlds do not have."""
    try:
        made = policy()
    except (TypeError, DriftsackError):  # abstract, or a setting has no default: give it a line in ENTRIES
        return False
    return not made.needs_context


def league_spec(trials: int, horizon: int, seed: int) -> Spec:
    """Make the spec of the league: every entry on every instance."""
    worlds = [
        {name: value * horizon if name in HORIZON_SHARES else value for name, value in world.items()}
        for world in WORLDS
    ]
    worlds = [{**world, "horizon": horizon} for world in worlds]
    return make_spec({"instances": worlds, "policies": entries(), "trials": trials, "seeds": [seed]})


def held_out_spec(
    worlds: Mapping[str, Sequence[InstanceSpec]], trials: int, seed: int, delay: int = 0, loose: float = 1.0
) -> Spec:
    """Make the spec of a held-out league: every entry on the worlds of all families, which have two resources or more.

    ``delay`` and ``loose`` are those of :class:`~driftsack.simulation.Feedback`.
    """
    instances = [world for some in worlds.values() for world in some]
    policies = [entry for entry in [*entries(), *TUNED] if entry["policy"] != "Exp3BwK"]  # it takes a single resource
    return make_spec(
        {
            "instances": instances,
            "policies": policies,
            "trials": trials,
            "seeds": [seed],
            "delay": delay,
            "loose": loose,
        }
    )


def standings(trials: pl.DataFrame, failed: Sequence[FailedCell], spec: Spec) -> pl.DataFrame:
    """Rank the policies of a league by their mean share of LP-Dynamic.

    The table has one row per policy and instance, the best policy first: its share of LP-Dynamic, or why there
    is none. ``mean_share`` is the mean of a policy's shares over the instances that it could be run on. Since means
    over different sets of instances do not compare, policies are first ordered by the number of their failures.
    """
    shares = {(row["instance"], row["policy"]): row for row in summary(trials).iter_rows(named=True)}
    reasons = {(failure.instance, failure.policy): failure.error for failure in failed}
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
                    "reason": reasons.get((world.label, policy.label), "" if row else "not played"),
                }
            )
    table = pl.DataFrame(rows, schema_overrides={"optimum_share": pl.Float64, "optimum_share_se": pl.Float64})
    mean = pl.col("optimum_share").mean().over("policy").alias("mean_share")
    refusals = pl.col("optimum_share").is_null().sum().over("policy")
    order = [refusals, pl.col("optimum_share").mean().over("policy")]
    return table.sort(order, descending=[False, True], nulls_last=True, maintain_order=True).with_columns(mean)


def present_shares(spec: Spec) -> pl.DataFrame:
    """Compute the reward of a policy that knows the present means but not the future, in each instance of a league.

    The table has one row per instance with the shares of LP-Dynamic at the ``even_pace`` and at ``two_speeds`` (see
    :func:`driftsack.benchmarks.present`).
    """
    rows = []
    for world in spec.instances:
        instance = world.build()
        best, known = lp_dynamic(instance).value, present(instance)
        even, two_speeds = (value / best if best > 0 else 1.0 for value in (known.even, known.two_speed))
        rows.append({"world": world.label, "even_pace": even, "two_speeds": two_speeds})
    return pl.DataFrame(rows)


def overview(table: pl.DataFrame, over_worlds: bool = False) -> pl.DataFrame:
    """Summarise the standings: one row per policy with its mean, least and largest share, and its failures.

    With ``over_worlds`` the worlds are a sample, and the standard error of the mean is over worlds; otherwise they are
    fixed and it is over trials.
    """
    share = pl.col("optimum_share")
    error = pl.col("optimum_share_se").pow(2).sum().sqrt() / share.count()
    if over_worlds:
        error = share.std() / share.count().sqrt()
    return table.group_by("policy", maintain_order=True).agg(
        mean_share=pl.col("optimum_share").mean(),
        mean_share_se=error,
        least_share=pl.col("optimum_share").min(),
        most_share=pl.col("optimum_share").max(),
        refused=pl.col("optimum_share").is_null().sum(),
    )


def as_grid(table: pl.DataFrame) -> tuple[Floats, list[str], list[str]]:
    """Arrange the standings as a grid for a heat map, with the names of its rows and columns.

    The grid (policies, instances + 1) has the means in the last column and NaN where there is no share.
    """
    policies, worlds = (table[name].unique(maintain_order=True).to_list() for name in ("policy", "world"))
    shares = table["optimum_share"].cast(pl.Float64).fill_null(np.nan).to_numpy().reshape(len(policies), len(worlds))
    known = [row[np.isfinite(row)] for row in shares]
    means = np.array([row.mean() if row.size else np.nan for row in known])
    return np.column_stack([shares, means]), policies, [*worlds, "mean"]
