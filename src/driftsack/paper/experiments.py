r"""The paper's experiments as data: settings, worlds, policies; and pure steps from trials to what claims are about.

*Two settings.* The paper does not print the scale of its confidence radius, the noise of its outcomes or the value from
which LagrangeBwK takes :math:`T_0`. *Printed* takes the algorithm at its word: scale 1, Bernoulli. *Calibrated* is the
one choice of all three, for the whole paper, under which most claims hold (:mod:`driftsack.paper.calibration`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from driftsack.benchmarks import lp_dynamic
from driftsack.core.arrays import Floats, Ints
from driftsack.core.instance import Instance
from driftsack.instances import step_change
from driftsack.measures import variation
from driftsack.numerics.curves import curve_times
from driftsack.sweeps.spec import InstanceSpec, Spec, make_spec
from driftsack.sweeps.summary import error_of

SW: Final = "SW-UCB"
NAIVE: Final = "naive UCB"
LAGRANGE: Final = "LagrangeBwK"
BEST: Final = "best plan"
POLICIES: Final = (SW, NAIVE, LAGRANGE)
ALPHAS: Final = tuple(round(0.5 + 0.05 * k, 2) for k in range(11))  # where the printed OPT(T) holds
EARLY_ALPHAS: Final = (0.1, 0.2, 0.3, 0.4)  # where it does not
PERIODS: Final = (1, 2, 5, 10, 20, 50, 100, 200)
STEPS: Final = 40  # points of Figure 3
SLOPE_SHARE: Final = 0.1  # slopes are read over this share of the horizon on either side of T/2
EVIDENCE: Final = pl.Schema(
    {
        "example": pl.Int64(),  # 1 to 4; 0 is the step change of Figure 3
        "parameter": pl.Float64(),  # alpha, periods or k
        "x": pl.Float64(),  # W1 + W2, V1 + V2, or k
        "policy": pl.String(),
        "quantity": pl.String(),
        "mean": pl.Float64(),
        "se": pl.Float64(),
    }
)


class Setting(NamedTuple):
    """What the paper leaves open, chosen once for all its experiments."""

    name: str
    scale: float  # of the confidence radii
    noise: str
    divide: bool  # T0 = OPT_FD / (d + 1), or OPT_FD

    def __str__(self) -> str:
        start = "OPT_FD/(d+1)" if self.divide else "OPT_FD"
        return f"radius scale {self.scale:g}, {self.noise} outcomes, T0 = {start}"


PRINTED: Final = Setting("printed", 1.0, "bernoulli", divide=True)
CALIBRATED: Final = Setting("calibrated", 0.2, "bernoulli", divide=True)
SETTINGS: Final = (PRINTED, CALIBRATED)


class Place(NamedTuple):
    """One world of the paper, by its name in tables."""

    name: str
    example: int
    parameter: float
    spec: dict[str, Any]

    def build(self) -> Instance:
        """The instance, whatever its noise: means do not depend on it."""
        return InstanceSpec.model_validate(self.spec).build()


def places(horizon: int) -> list[Place]:
    """Examples 1 and 2; Example 3 over α; Example 4 over periods that the horizon can show."""
    found = [Place(f"Example {k}", k, 0.0, {"instance": f"example_{k}"}) for k in (1, 2)]
    found += [
        Place(f"Example 3, α = {alpha:g}", 3, alpha, {"instance": "example_3", "alpha": alpha}) for alpha in ALPHAS
    ]
    found += [
        Place(f"Example 4, {periods} periods", 4, float(periods), {"instance": "example_4", "periods": periods})
        for periods in PERIODS
        if 50 * periods <= horizon
    ]
    return [place._replace(spec={**place.spec, "horizon": horizon, "name": place.name}) for place in found]


def policies(scale: float, divide: bool) -> list[dict[str, Any]]:
    """SW-UCB with windows from the true (V1, V2), naive UCB, and LagrangeBwK with the exact OPT_FD."""
    return [
        {"policy": "SlidingWindowUCB", "variation": "measured:variation", "scale": scale, "name": SW},
        {"policy": "NaiveUCB", "scale": scale, "name": NAIVE},
        {"policy": "LagrangeBwK", "benchmark": "measured:opt_fd", "divide": divide, "name": LAGRANGE},
    ]


def sweeps(setting: Setting, trials: int, horizon: int, seed: int) -> tuple[Spec, Spec]:
    """All worlds with all policies; and what naive UCB plays in the first half of Example 1."""
    worlds = [{**place.spec, "noise": setting.noise} for place in places(horizon)]
    first_half = {
        "policy": "Until",
        "part": 0.5,
        "inner": {"policy": "NaiveUCB", "scale": setting.scale},
        "name": NAIVE,
    }
    same = {"trials": trials, "seeds": [seed]}
    return (
        make_spec({"instances": worlds, "policies": policies(setting.scale, setting.divide), **same}),
        make_spec({"instances": worlds[:1], "policies": [first_half], **same}),
    )


def exact(horizon: int) -> pl.DataFrame:
    """What needs no trials: the optimum of every world, also of Example 3 with an early change; W1 and W1_min."""
    rows: list[tuple[Any, ...]] = []
    early = [
        Place("", 3, alpha, {"instance": "example_3", "alpha": alpha, "horizon": horizon}) for alpha in EARLY_ALPHAS
    ]
    for place in [*places(horizon), *early]:
        instance = place.build()
        optimum = lp_dynamic(instance).value
        rows.append((place.example, place.parameter, axis(place.example, instance), BEST, "optimum", optimum, 0.0))
    for step in range(STEPS + 1):
        k = step * horizon // STEPS
        moves = variation(step_change(k, horizon))
        for name, value in (("W1", moves.w1), ("W1_min", moves.w1_min)):
            rows.append((0, float(k), float(k), BEST, name, value, 0.0))
    return pl.DataFrame(rows, schema=EVIDENCE, orient="row")


def axis(example: int, instance: Instance) -> float:
    """Where a world stands on its figure's axis: W1 + W2 for Example 3, V1 + V2 for Example 4."""
    moves = variation(instance)
    if example == 3:  # noqa: PLR2004
        return moves.w1 + moves.w2
    return moves.v1 + moves.v2 if example == 4 else 0.0  # noqa: PLR2004


def evidence(trials: pl.DataFrame, first_half: pl.DataFrame, still: pl.DataFrame) -> pl.DataFrame:
    """One row a world, policy and quantity: mean and standard error; ``still`` is what :func:`exact` gives."""
    horizon = int(trials["horizon"][0])
    names = {place.name: (place.example, place.parameter) for place in places(horizon)}
    where = {(row["example"], row["parameter"]): row["x"] for row in still.iter_rows(named=True)}
    measured = trials.with_columns(*slopes(horizon))
    rows: list[tuple[Any, ...]] = []
    for quantity in ("reward", "regret", "slope_before", "slope_after"):
        rows += _means(measured, quantity, names, where)
    rows += _means(first_half.with_columns(second_arm=pl.col("pulls").list.get(1)), "second_arm", names, where)
    return pl.concat([pl.DataFrame(rows, schema=EVIDENCE, orient="row"), still])


def slopes(horizon: int) -> tuple[pl.Expr, pl.Expr]:
    """Reward a round just before and just after T/2."""
    times = curve_times(horizon)
    ends = [(0.5 - SLOPE_SHARE) * horizon, 0.5 * horizon, (0.5 + SLOPE_SHARE) * horizon]
    early, middle, late = (int(np.argmin(np.abs(times - end))) for end in ends)

    def slope(begin: int, end: int) -> pl.Expr:
        rise = pl.col("curve").list.get(end) - pl.col("curve").list.get(begin)
        return rise / max(int(times[end] - times[begin]), 1)

    return slope(early, middle).alias("slope_before"), slope(middle, late).alias("slope_after")


def _means(
    frame: pl.DataFrame,
    quantity: str,
    names: dict[str, tuple[int, float]],
    where: dict[tuple[int, float], float],
) -> list[tuple[Any, ...]]:
    grouped = frame.group_by("instance", "policy", maintain_order=True)
    table = grouped.agg(mean=pl.col(quantity).mean(), se=error_of(quantity))
    return [
        (*names[world], where[names[world]], policy, quantity, mean, se)
        for world, policy, mean, se in table.iter_rows()
    ]


class Curves(NamedTuple):
    """Cumulative reward of some trials, as figures want it."""

    times: Ints  # (p,)
    curve: Floats  # (n, p)


def curves(trials: pl.DataFrame, example: int) -> dict[str, Curves]:
    """The curves of each policy on Example 1 or 2."""
    times = curve_times(int(trials["horizon"][0]))
    world = trials.filter(pl.col("instance") == f"Example {example}")
    return {
        name: Curves(times, np.array(world.filter(pl.col("policy") == name)["curve"].to_list())) for name in POLICIES
    }


class Points(NamedTuple):
    """A line of a figure: means with bands of two standard errors."""

    x: Floats
    mean: Floats
    band: Floats


def points(table: pl.DataFrame, example: int, quantities: dict[str, tuple[str, str]]) -> dict[str, Points]:
    """Lines by name; each is a policy and a quantity of an example, along x."""
    found = {}
    for name, (policy, quantity) in quantities.items():
        wanted = (pl.col("example") == example) & (pl.col("policy") == policy) & (pl.col("quantity") == quantity)
        rows = table.filter(wanted).sort("x")
        found[name] = Points(rows["x"].to_numpy(), rows["mean"].to_numpy(), 2 * rows["se"].to_numpy())
    return found


class Drawing(NamedTuple):
    """All that the figures show, by example and by the title of the panel."""

    note: str
    change: int
    curves: dict[int, dict[str, dict[str, Curves]]]
    optima: dict[int, dict[str, float]]
    regret: dict[int, dict[str, dict[str, Points]]]
    measures: dict[str, dict[str, Points]]


def drawing(trials: dict[str, pl.DataFrame], table: dict[str, pl.DataFrame], count: int) -> Drawing:
    """Lines for every figure, from the trials and the evidence of each setting."""
    titles = {setting.name: f"{setting.name}: scale {setting.scale:g}, {setting.noise}" for setting in SETTINGS}
    any_table = table[SETTINGS[0].name]
    best = {example: points(any_table, example, {BEST: (BEST, "optimum")})[BEST].mean[0] for example in (1, 2)}
    regrets = {name: (name, "regret") for name in POLICIES}
    steps = points(
        any_table, 0, {"W₁, about the mean": (BEST, "W1"), "W₁ min, about the best centre": (BEST, "W1_min")}
    )
    return Drawing(
        note=f"{count} trials, band: ± 2 standard errors",
        change=int(next(iter(trials.values()))["horizon"][0]) // 2,
        curves={k: {titles[name]: curves(frame, k) for name, frame in trials.items()} for k in (1, 2)},
        optima={k: {title: float(best[k]) for title in titles.values()} for k in (1, 2)},
        regret={k: {titles[name]: points(part, k, regrets) for name, part in table.items()} for k in (3, 4)},
        measures={"one arm that earns 1 up to round k, then 0": steps},
    )


def lp_rounds(trials: pl.DataFrame) -> int:
    """Rounds in which a linear program was solved: those of the two UCBs up to their stopping times."""
    solved = trials.filter(pl.col("policy").is_in([SW, NAIVE]))
    return int(solved.select(pl.min_horizontal("stopping_time", "horizon").sum()).item() or 0)
