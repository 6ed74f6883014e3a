"""Search a grid for the scale, noise and T0 under which most claims of the whole paper hold.

Ties go to the choice nearest to the printed one: random outcomes before deterministic ones, then the larger scale. The
point is *selected* by these counts, so they are biased in its favour; ``reproduce`` judges it on another seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

import polars as pl

from driftsack.paper.claims import PLAYED_CLAIMS
from driftsack.paper.experiments import LAGRANGE, NAIVE, SELECTION_SEED, SW, Setting, evidence, exact_evidence, sweep
from driftsack.paper.judging import Evidence, Verdict
from driftsack.paper.reproduction import run_completely
from driftsack.plot.style import make_directory
from driftsack.sweeps.spec import PolicySpec, Spec, make_spec
from driftsack.sweeps.store import load

SCALES: Final = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
NOISES: Final = ("bernoulli", "deterministic")
DIVIDES: Final = (True, False)
COUNTED: Final = (Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED)


def calibrate(
    out: str | os.PathLike[str] = "out",
    trials: int = 100,
    horizon: int = 10_000,
    seed: int = SELECTION_SEED,
    progress: Callable[[str, int, int], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> pl.DataFrame:
    """Count the claims that hold at every point of the grid of settings, and write ``calibration.csv``.

    Trials are kept in ``store`` inside the directory, so that a repeated call plays only the missing ones.

    Args:
        out: The directory to write to.
        trials: The number of trials of each policy on each instance.
        horizon: The number of rounds of a trial; budgets grow with it.
        seed: The seed; the same seed gives the same bits.
        progress: Called with the name of the current step, the amount done and the total.
        notify: Called with a message for each corrupted file that was set aside.

    Returns:
        One row per point of the grid, the best first: noise, scale, T0, the numbers of claims that hold, fail and are
        undecided, and the names of those that do not hold.

    Raises:
        SettingError: If a setting is wrong or ``out`` cannot be written to.
        DriftsackError: If a cell fails.
    """
    directory = make_directory(out)
    trials_of: dict[str, pl.DataFrame] = {}
    for noise in NOISES:
        store, spec = directory / "store" / f"grid-{noise}", grid_sweep(noise, trials, horizon, seed)
        run_completely(spec, store, f"grid, {noise}", progress or (lambda *_: None), notify)
        trials_of[noise] = load(store)
    table = count_claims(trials_of, horizon)
    table.write_csv(directory / "calibration.csv")
    return table


def grid_settings() -> Iterator[Setting]:
    """Every point of the grid."""
    for noise, scale, divide in product(NOISES, SCALES, DIVIDES):
        yield Setting(f"{noise}, {scale:g}, {divide}", scale, noise, divide)


def grid_sweep(noise: str, trials: int, horizon: int, seed: int) -> Spec:
    """The sweep of all points of the grid with one noise; points with the same policies share their trials."""
    policies: dict[str, dict[str, Any]] = {}
    for setting in grid_settings():
        if setting.noise == noise:
            spec = sweep(setting, trials, horizon, seed)
            policies |= _renamed(spec.policies, setting)
    worlds = [part.model_dump(exclude_none=True) for part in spec.instances]
    return make_spec({"instances": worlds, "policies": list(policies.values()), "trials": trials, "seeds": [seed]})


def _renamed(policies: list[PolicySpec], setting: Setting) -> dict[str, dict[str, Any]]:
    """The policies of a setting by their names on the grid."""
    names = {part.label: name_on_grid(part.label, setting) for part in policies}
    return {names[part.label]: {**part.model_dump(exclude_none=True), "name": names[part.label]} for part in policies}


def name_on_grid(policy: str, setting: Setting) -> str:
    """A policy's name with the part of the setting that it depends on."""
    return f"{policy}, divide {setting.divide}" if policy == LAGRANGE else f"{policy}, scale {setting.scale:g}"


def count_claims(trials: dict[str, pl.DataFrame], horizon: int) -> pl.DataFrame:
    """Count the claims at each point of the grid, from the trials by noise; the best point comes first."""
    exact = exact_evidence(horizon)
    rows = []
    for setting in grid_settings():
        table = Evidence(evidence(trials_of_setting(trials[setting.noise], setting), exact))
        judged = [claim(table) for claim in PLAYED_CLAIMS]
        counts = {verdict.value: sum(claim.verdict is verdict for claim in judged) for verdict in COUNTED}
        missed = ", ".join(claim.name for claim in judged if claim.verdict is not Verdict.HOLDS)
        rows.append({"noise": setting.noise, "scale": setting.scale, "T0": setting.start, **counts, "not held": missed})
    random_first = pl.col("noise") == NOISES[0]
    return pl.DataFrame(rows).sort(Verdict.HOLDS.value, random_first, "scale", descending=True, maintain_order=True)


def trials_of_setting(frame: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """The trials of one point of the grid, under the paper's names of the policies."""
    names = {name_on_grid(policy, setting): policy for policy in (SW, NAIVE, LAGRANGE)}
    return frame.filter(pl.col("policy").is_in(list(names))).with_columns(pl.col("policy").replace(names))
