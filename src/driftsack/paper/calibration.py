"""Which one scale, noise and T0 make most of the paper's claims hold, all at once; a grid, counted.

Ties go to the choice nearest to the printed one: random outcomes before fixed ones, then the larger scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import polars as pl

from driftsack.paper.claims import FAILS, HOLDS, PLAYED_CLAIMS, UNDECIDED, Table
from driftsack.paper.experiments import LAGRANGE, NAIVE, SW, Setting, evidence, exact, sweeps
from driftsack.sweeps.spec import Spec, make_spec

SCALES: Final = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
NOISES: Final = ("bernoulli", "deterministic")
DIVIDES: Final = (True, False)


def settings() -> Iterator[Setting]:
    """Every point of the grid."""
    for noise, scale, divide in product(NOISES, SCALES, DIVIDES):
        yield Setting(f"{noise}, {scale:g}, {divide}", scale, noise, divide)


def grid_sweeps(noise: str, trials: int, horizon: int, seed: int) -> tuple[Spec, Spec]:
    """All policies of the grid on all worlds: no policy is played twice for two points of the grid."""
    main: list[dict[str, Any]] = []
    half: list[dict[str, Any]] = []
    for setting in settings():
        if setting.noise != noise:
            continue
        whole, first = sweeps(setting, trials, horizon, seed)
        main += [{**part.model_dump(exclude_none=True), "name": own(part.label, setting)} for part in whole.policies]
        half += [{**part.model_dump(exclude_none=True), "name": own(part.label, setting)} for part in first.policies]
    worlds = [part.model_dump(exclude_none=True) for part in whole.instances]
    same = {"trials": trials, "seeds": [seed]}
    return (
        make_spec({"instances": worlds, "policies": _once(main), **same}),
        make_spec({"instances": worlds[:1], "policies": _once(half), **same}),
    )


def own(policy: str, setting: Setting) -> str:
    """A policy's name with the part of the setting that it depends on."""
    return f"{policy}, divide {setting.divide}" if policy == LAGRANGE else f"{policy}, scale {setting.scale:g}"


def _once(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({part["name"]: part for part in parts}.values())


def count_claims(trials: dict[str, pl.DataFrame], halves: dict[str, pl.DataFrame], horizon: int) -> pl.DataFrame:
    """One row a point of the grid, the best first: how many claims hold, fail and stay open; which do not hold."""
    still = exact(horizon)
    rows = []
    for setting in settings():
        table = Table(evidence(chosen(trials[setting.noise], setting), chosen(halves[setting.noise], setting), still))
        verdicts = [claim(table) for claim in PLAYED_CLAIMS]
        counts = {word: sum(one.verdict == word for one in verdicts) for word in (HOLDS, FAILS, UNDECIDED)}
        missed = ", ".join(one.name for one in verdicts if one.verdict != HOLDS)
        start = "OPT_FD/(d+1)" if setting.divide else "OPT_FD"
        rows.append({"noise": setting.noise, "scale": setting.scale, "T0": start, **counts, "not held": missed})
    order = pl.col("noise") == NOISES[0]
    return pl.DataFrame(rows).sort(HOLDS, order, "scale", descending=True, maintain_order=True)


def chosen(frame: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """The trials of one point of the grid, under the paper's names."""
    names = {own(policy, setting): policy for policy in (SW, NAIVE, LAGRANGE)}
    return frame.filter(pl.col("policy").is_in(list(names))).with_columns(pl.col("policy").replace(names))
