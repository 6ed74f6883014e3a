"""Held-out worlds: fresh environments of every family, on which policies are judged after they were developed.

A policy that is developed on some worlds is fitted to them. Draw a development set with one seed and a test set with
another, use the test set rarely, and report how often. Standard errors are over worlds, since the trials of one world
say nothing about the next one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.random import SeedSequence

from driftsack.benchmarks import single_step
from driftsack.core.checks import whole
from driftsack.core.instance import Instance
from driftsack.core.statistics import standard_error
from driftsack.instances.families import FAMILIES
from driftsack.policies import from_spec
from driftsack.policies.oracles import Oracle
from driftsack.sweeps.measured import STAND_INS
from driftsack.sweeps.spec import InstanceSpec, PolicySpec

POORER: Final = (
    0.9  # a world gets poorer if a round of its second half has less than this share of the value of one before
)
FORETOLD: Final = ("forecast", "spending")  # quantities that no learner could know beforehand


class Conditions(NamedTuple):
    """The conditions under which policies are compared on held-out worlds.

    Attributes:
        delay: The number of rounds by which policies are told of their outcomes late.
        arms: The number of arms of every world; if None, that of its family.
        resources: The number of resources of every world; if None, that of its family.
        loose: Factor by which the maxima that policies are told exceed the true ones. The outcomes stay the same.

    >>> print(Conditions(delay=200, loose=10.0))
    outcomes 200 rounds late, maxima 10 times too large
    >>> Conditions(arms=20, resources=5).suffix
    '_arms_20_resources_5'
    """

    delay: int = 0
    arms: int | None = None
    resources: int | None = None
    loose: float = 1.0

    @property
    def changed(self) -> dict[str, float]:
        """The conditions that are not the usual ones, by name."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}

    @property
    def suffix(self) -> str:
        """The end of the names of files; empty under the usual conditions."""
        return "".join(f"_{name}_{value:g}" for name, value in self.changed.items())

    def __str__(self) -> str:
        words = {
            "delay": "outcomes {:g} rounds late",
            "arms": "{:g} arms" if self.arms != 1 else "{:g} arm",
            "resources": "{:g} resources" if self.resources != 1 else "{:g} resource",
            "loose": "maxima {:g} times too large",
        }
        return ", ".join(words[name].format(value) for name, value in self.changed.items())


class HeldOut(NamedTuple):
    """Which held-out worlds are drawn.

    Attributes:
        seed: The seed of the worlds.
        per_family: The number of worlds of each family.
        horizon: Rounds of a trial.
        conditions: Late outcomes, other sizes or loose maxima.
    """

    seed: int
    per_family: int = 4
    horizon: int = 10_000
    conditions: Conditions = Conditions()


def held_out_worlds(
    seed: int, per_family: int = 4, horizon: int = 10_000, arms: int | None = None, resources: int | None = None
) -> dict[str, list[InstanceSpec]]:
    """Draw fresh worlds of every family.

    The worlds of different families and numbers come from independent streams, and world k of a family does not depend
    on ``per_family`` or on the other families.

    Args:
        seed: The seed; another one gives other worlds.
        per_family: The number of worlds of each family.
        horizon: The number of rounds of each world.
        arms: The number of arms of each world; if None, that of its family.
        resources: The number of resources of each world; if None, that of its family.

    Returns:
        The worlds by family. Each has a ``label`` such as ``"bursts 2"``, and ``build()`` makes the instance.

    >>> worlds = held_out_worlds(seed=1, per_family=2, horizon=1_000)
    >>> len(worlds), worlds["bursts"][1].label, worlds["many arms"][0].build().arms
    (15, 'bursts 2', 20)
    """
    whole(seed, "seed", 0)
    whole(horizon, "horizon", 1)
    numbers = range(1, whole(per_family, "per_family", 1) + 1)
    given = {"arms": arms, "resources": resources}
    sizes = {name: whole(size, name, 1) for name, size in given.items() if size is not None}
    return {
        family: [
            InstanceSpec.model_validate(
                {"name": f"{family} {k}", "seed": _world_seed(seed, family, k), "horizon": horizon, **settings, **sizes}
            )
            for k in numbers
        ]
        for family, settings in FAMILIES.items()
    }


def _world_seed(seed: int, family: str, number: int) -> int:
    """A seed of its own for each world; families are told apart by their names, so adding one changes no other."""
    state = SeedSequence([seed, *family.encode(), number]).generate_state(2)
    return int(state[0]) << 32 | int(state[1])


def family_shares(table: pl.DataFrame, worlds: Mapping[str, Sequence[InstanceSpec]]) -> pl.DataFrame:
    """Average the standings of :func:`driftsack.sweeps.league.standings` over the worlds of each family.

    The table has one row per policy and family, the best policy first: the mean share of LP-Dynamic, its standard error
    over worlds (null for a single world), and the number of worlds that the policy could be run on.
    """
    families = {world.label: family for family, some in worlds.items() for world in some}
    share = pl.col("optimum_share")
    return (
        table.with_columns(family=pl.col("world").replace_strict(families))
        .group_by("policy", "family", maintain_order=True)
        .agg(mean_share=share.mean(), mean_share_se=share.std() / share.count().sqrt(), worlds=share.count())
    )


def needs_nothing(policy: PolicySpec) -> bool:
    """Whether a policy is started without any quantity of the world, as it would be in practice."""
    return not policy.measures and not isinstance(from_spec(policy.resolve({})), Oracle)


def family_leaders(shares: pl.DataFrame, policies: Sequence[PolicySpec], baseline: str) -> list[dict[str, Any]]:
    """The two best policies of each family among those that need nothing, and a baseline.

    The table has one row per family of :func:`family_shares`: ``family``, and ``policy``, ``share`` and ``share_se`` of
    the ``first`` and ``second``, and ``share`` and ``share_se`` of the ``baseline``, as in ``first_policy``.
    """
    allowed = [policy.label for policy in policies if needs_nothing(policy)]
    rows = []
    for family in shares["family"].unique(maintain_order=True):
        ranked = shares.filter((pl.col("family") == family) & pl.col("policy").is_in(allowed)).sort(
            "mean_share", descending=True, nulls_last=True
        )
        row: dict[str, Any] = {"family": family}
        chosen = [*ranked.head(2).to_dicts(), *ranked.filter(pl.col("policy") == baseline).to_dicts()]
        for place, entry in zip(("first", "second", "baseline"), chosen, strict=True):
            row |= {
                f"{place}_policy": entry["policy"],
                f"{place}_share": entry["mean_share"],
                f"{place}_share_se": entry["mean_share_se"],
            }
        rows.append(row)
    return rows


def is_rival(policy: PolicySpec) -> bool:
    """Whether a policy is a fair rival: no oracle, and not told the means or the spending of rounds to come."""
    stand_ins = {**STAND_INS, **dict.fromkeys(FORETOLD)}
    return policy.resolve(STAND_INS) == policy.resolve(stand_ins) and not isinstance(
        from_spec(policy.resolve(STAND_INS)), Oracle
    )


def leads(table: pl.DataFrame, champion: str, rivals: Sequence[str]) -> pl.DataFrame:
    """Compare one policy with others, world by world, in the table of :func:`driftsack.sweeps.league.standings`.

    The table has one row per rival, the strongest first: the mean ``lead`` of the champion in shares of LP-Dynamic, its
    standard error over worlds, and the share of the worlds in which the champion is ``ahead``.
    """
    shares = table.pivot("policy", index="world", values="optimum_share")
    mine = shares[champion]
    rows = []
    for rival in rivals:
        lead = (mine - shares[rival]).drop_nulls()
        error = standard_error(lead.to_numpy()) if len(lead) > 1 else None
        rows.append({"policy": rival, "lead": lead.mean(), "lead_se": error, "ahead": (lead > 0).mean()})
    return pl.DataFrame(rows).sort("lead", nulls_last=True)


def second_half(instance: Instance) -> float:
    """Compute the value of a round of the second half relative to one of the first, by their step LPs at the rate b.

    The ratio is infinite if the first half is worth nothing.

    >>> import driftsack as ds
    >>> second_half(ds.Instance.piecewise([[0.8], [0.4]], costs=[[[0.5]], [[0.5]]], lengths=[50, 50], budget=50))
    0.5
    """
    values = np.asarray(single_step(instance).values)
    early, late = (float(values[part].sum()) for part in np.split(instance.phase, [instance.horizon // 2]))
    return late / early if early > 0.0 else math.inf


def against_best(table: pl.DataFrame, champion: str, settings: Sequence[str]) -> pl.DataFrame:
    """Compare one policy in each world with the best of some settings, picked in hindsight.

    The table has one row per world of the standings: ``world``, the ``best`` of the settings, and the ``difference`` of
    the champion from it, relative to it.
    """
    shares = table.pivot("policy", index="world", values="optimum_share")
    rivals = shares.select(settings)
    most = rivals.max_horizontal()
    best = [settings[k] for k in np.argmax(rivals.fill_null(-1.0).to_numpy(), axis=1)]
    return shares.select("world", difference=pl.col(champion) / most - 1.0).insert_column(1, pl.Series("best", best))


def summarise(differences: pl.DataFrame) -> dict[str, float]:
    """Summarise rows of :func:`against_best`.

    The result has the number of ``worlds``, the ``mean`` difference, and the shares of the worlds in which the champion
    is at most 1% and at most 5% below the best setting.
    """
    relative = differences["difference"]
    within = {f"within_{percent}": float((relative >= -percent / 100).mean()) for percent in (1, 5)}  # type: ignore[arg-type]
    return {"worlds": len(relative), "mean": float(relative.mean()), **within}  # type: ignore[arg-type]
