r"""The paper's experiments as data: settings, instances, policies, and the evidence computed from trials.

*Two settings.* The paper does not state the scale of its confidence radius, the noise of its outcomes or the value of
:math:`T_0` in LagrangeBwK. *Printed* uses the constants of the algorithm as printed: scale 1, Bernoulli.
*Calibrated* is the one choice of all three, for the whole paper, under which most claims hold on the seed
``SELECTION_SEED`` (:mod:`driftsack.paper.calibration`). Since it was selected, it is judged on another seed,
``HELD_OUT_SEED``, unless one is given.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from driftsack.benchmarks import lp_dynamic
from driftsack.benchmarks.lp_dynamic import plan_totals
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.instances import step_change
from driftsack.measures import variation
from driftsack.numerics.curves import curve_times
from driftsack.sweeps.spec import InstanceSpec, Spec, make_spec
from driftsack.sweeps.summary import error_of

SW: Final = "SW-UCB"
NAIVE: Final = "naive UCB"
LAGRANGE: Final = "LagrangeBwK"
EXAMPLE_1: Final = "Example 1"
EXAMPLE_2: Final = "Example 2"
BEST: Final = "best plan"
POLICIES: Final = (SW, NAIVE, LAGRANGE)
ALPHAS: Final = tuple(round(0.5 + 0.05 * k, 2) for k in range(11))  # values at which the printed OPT(T) is right
EARLY_ALPHAS: Final = (0.1, 0.2, 0.3, 0.4)  # values at which it is wrong
PERIODS: Final = (1, 2, 5, 10, 20, 50, 100, 200)
STEPS: Final = 40  # points of Figure 3
SLOPE_SHARE: Final = 0.1  # share of the horizon over which slopes are measured, on either side of T/2
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
    """A choice of the settings that the paper does not state, for all its experiments."""

    name: str  # ``"printed"`` or ``"calibrated"``, or a point of the grid
    scale: float  # the scale of the confidence radii
    noise: str  # the noise of the outcomes, such as ``"bernoulli"``
    divide: bool  # whether T0 is OPT_FD / (d + 1) instead of OPT_FD

    @property
    def start(self) -> str:
        """The formula of T0 in LagrangeBwK."""
        return "OPT_FD/(d+1)" if self.divide else "OPT_FD"

    def __str__(self) -> str:
        return f"radius scale {self.scale:g}, {self.noise} outcomes, T0 = {self.start}"


PRINTED: Final = Setting("printed", 1.0, "bernoulli", divide=True)
CALIBRATED: Final = Setting("calibrated", 0.2, "bernoulli", divide=True)
SETTINGS: Final = (PRINTED, CALIBRATED)
SELECTION_SEED: Final = 0  # seed on which the calibrated setting was selected
HELD_OUT_SEED: Final = 1  # seed on which it is judged


class PaperInstance(NamedTuple):
    """One instance of the paper's experiments."""

    name: str  # its name in tables
    example: int  # the number of the example
    parameter: float  # α of Example 3, the periods of Example 4, 0 for the others
    spec: dict[str, Any]  # the instance as an entry of a sweep

    def build(self) -> Instance:
        """Build the instance; its means do not depend on the noise."""
        return InstanceSpec.model_validate(self.spec).build()


def paper_instances(horizon: int) -> list[PaperInstance]:
    """Examples 1 and 2, Example 3 over α, and Example 4 over the periods that the horizon can resolve."""
    found = [PaperInstance(f"Example {k}", k, 0.0, {"instance": f"example_{k}"}) for k in (1, 2)]
    found += [
        PaperInstance(f"Example 3, α = {alpha:g}", 3, alpha, {"instance": "example_3", "alpha": alpha})
        for alpha in ALPHAS
    ]
    found += [
        PaperInstance(f"Example 4, {periods} periods", 4, float(periods), {"instance": "example_4", "periods": periods})
        for periods in PERIODS
        if 50 * periods <= horizon
    ]
    return [one._replace(spec={**one.spec, "horizon": horizon, "name": one.name}) for one in found]


def policies(scale: float, divide: bool) -> list[dict[str, Any]]:
    """SW-UCB with windows from the true (V1, V2), naive UCB, and LagrangeBwK with the exact OPT_FD."""
    return [
        {"policy": "SlidingWindowUCB", "variation": "measured:variation", "scale": scale, "name": SW},
        {"policy": "NaiveUCB", "scale": scale, "name": NAIVE},
        {"policy": "LagrangeBwK", "benchmark": "measured:opt_fd", "divide": divide, "name": LAGRANGE},
    ]


def sweep(setting: Setting, trials: int, horizon: int, seed: int) -> Spec:
    """The sweep of all policies on all instances."""
    worlds = [{**one.spec, "noise": setting.noise} for one in paper_instances(horizon)]
    chosen = policies(setting.scale, setting.divide)
    return make_spec({"instances": worlds, "policies": chosen, "trials": trials, "seeds": [seed]})


def exact_evidence(horizon: int) -> pl.DataFrame:
    """Compute the evidence that needs no trials: optima, also of Example 3 with an early change, V, W and plans."""
    # The measures and the described plan of every instance.
    rows: list[tuple[Any, ...]] = []
    early = [
        PaperInstance("", 3, alpha, {"instance": "example_3", "alpha": alpha, "horizon": horizon})
        for alpha in EARLY_ALPHAS
    ]
    for one in [*paper_instances(horizon), *early]:
        instance = one.build()
        drift, plan = variation(instance), described_plan(one.example, one.parameter, instance)
        reward, spent = plan_totals(instance, plan)
        quantities = {
            "optimum": lp_dynamic(instance).value,
            "V": drift.v1 + drift.v2,
            "W": drift.w1 + drift.w2,
            "described_reward": reward,
            "described_use": float((spent / instance.problem.unit_budget).max()),
        }
        x = {3: quantities["W"], 4: quantities["V"]}.get(one.example, 0.0)
        rows += [(one.example, one.parameter, x, BEST, name, value, 0.0) for name, value in quantities.items()]
    # W of a change of the means, by its time.
    for step in range(STEPS + 1):
        k = step * horizon // STEPS
        drift = variation(step_change(k, horizon))
        for name, value in (("W1", drift.w1), ("W1_min", drift.w1_min)):
            rows.append((0, float(k), float(k), BEST, name, value, 0.0))
    return pl.DataFrame(rows, schema=EVIDENCE, orient="row")


def described_plan(example: int, parameter: float, instance: Instance) -> Floats:
    """(K, m) the mix of each distinct row in the optimal policy described by the text; ``parameter`` is α."""
    plan = np.zeros(instance.rewards.shape)
    first = np.unique(instance.phase[: instance.horizon // 2])
    if example == 1:  # the first arm in the first half, then the second
        plan[:, 1] = 1.0
        plan[first] = [1.0, 0.0]
    elif example == 3:
        plan[0] = min(1.0, 0.5 / parameter) / 2
    else:  # both arms with equal chances in the first half, then the second arm, if it costs at most 0.5
        plan[:, 1] = instance.costs[:, 0, 1] <= 0.5
        plan[first] = 0.5
    return plan


def evidence(trials: pl.DataFrame, exact: pl.DataFrame) -> pl.DataFrame:
    """Collect mean and standard error of every quantity of the trials and of :func:`exact_evidence`, in long form."""
    horizon = int(trials["horizon"][0])
    names = {one.name: (one.example, one.parameter) for one in paper_instances(horizon)}
    where = {(row["example"], row["parameter"]): row["x"] for row in exact.iter_rows(named=True)}
    measured = trials.with_columns(*slopes(horizon))
    rows: list[tuple[Any, ...]] = []
    for quantity in ("reward", "regret", "slope_before", "slope_after", "slope_late"):
        rows += _means(measured, quantity, names, where)
    early = trials.filter(pl.col("instance").is_in([EXAMPLE_1, EXAMPLE_2]), pl.col("policy") == NAIVE)
    pulls = pl.col("pulls_first_half")
    early = early.with_columns(second_arm=pulls.list.get(1), fewer_pulls=pulls.list.min())
    rows += _means(early, "second_arm", names, where) + _means(early, "fewer_pulls", names, where)
    return pl.concat([pl.DataFrame(rows, schema=EVIDENCE, orient="row"), exact])


def slopes(horizon: int) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Reward per round just before T/2, just after it, and in the interval after that."""
    times = curve_times(horizon)
    ends = [(0.5 + k * SLOPE_SHARE) * horizon for k in (-1, 0, 1, 2)]
    early, middle, late, last = (int(np.argmin(np.abs(times - end))) for end in ends)

    def slope(begin: int, end: int) -> pl.Expr:
        rise = pl.col("curve").list.get(end) - pl.col("curve").list.get(begin)
        return rise / max(int(times[end] - times[begin]), 1)

    before, after = slope(early, middle).alias("slope_before"), slope(middle, late).alias("slope_after")
    return before, after, slope(late, last).alias("slope_late")


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


def lp_rounds(trials: pl.DataFrame) -> int:
    """Count the rounds in which a linear program was solved: those of the two UCBs up to their stopping times."""
    solved = trials.filter(pl.col("policy").is_in([SW, NAIVE]))
    return int(solved.select(pl.min_horizontal("stopping_time", "horizon").sum()).item() or 0)
