"""``advise``: from a log and a budget to what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.advice import words
from driftsack.advice.candidates import FAMILIES, PLANS, REMEMBERS, Standing, candidates, choice, trial
from driftsack.advice.drift import LEVEL, SHUFFLES, Drift, drift
from driftsack.advice.fit import Fit, cell_variance, doubt, fit, resampled, world
from driftsack.advice.windows import Order, joined, window_sums
from driftsack.advice.worth import Worth, kind_of_drift, worth
from driftsack.core.arrays import Floats
from driftsack.core.checks import flag, vector, whole
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator
from driftsack.logs import Log, Survey, survey
from driftsack.logs.layout import for_each
from driftsack.policies import Policy

SHIFT: Final = 0.1  # of the horizon: how much later or earlier the changes come in the worlds that test a plan's trust
MOST_ROUNDS: Final = 2 * 10**8  # of all worlds together: about 2 GB
Z: Final = 1.96  # standard errors of a 95% interval


class Windows(NamedTuple):
    """Means in equal windows of time with 95% intervals, in people's units; NaN where an arm was not seen."""

    starts: Floats  # (L,) first round of each window, from 0
    means: Floats  # (L, m, 1 + d)
    low: Floats
    high: Floats


class Range(NamedTuple):
    """95% intervals over the bootstrapped worlds, in people's units.

    An optimum over estimated means is too high, the more so the noisier they are. A bootstrapped world adds the same
    noise once more, so what it adds to the optimum is taken off it. Where means lie at the end of what can be, noise
    can only take: the interval of the optimum then reaches down to the bootstrapped optima, and never above the largest
    reward in every round.
    """

    expected: float  # the optimum less its bias
    best: tuple[float, float]  # about it
    prices: Floats  # (2, d)
    less: Floats  # (2, d)
    more: Floats  # (2, d)


@dataclass(frozen=True, eq=False)
class Advice:
    """What the log says, and what to do. ``print`` it, ``write`` it as one HTML page, or take ``to_dict``."""

    name: str
    survey: Survey
    drift: Drift
    fit: Fit
    world: Instance  # fitted to the log, with the budget and the horizon that were asked for
    windows: Windows
    kind: str  # still, harmless, which (V-type) or when (W-type)
    worth: Worth
    ranges: Range
    standings: tuple[Standing, ...]
    recommended: Standing
    steady: Standing  # the best that does not trust the log's timing to come again
    shifted: tuple[float, float]  # shares of the optimum of both where changes come earlier or later

    @property
    def policy(self) -> Policy:
        """The recommended policy, ready to ``start``."""
        return self.recommended.candidate.policy

    @property
    def summary(self) -> str:
        """One paragraph for the person who decides."""
        return words.summary(self)

    @property
    def caution(self) -> str:
        """What the recommendation takes for granted, and what to do if that is not so; empty if nothing."""
        return words.caution(self)

    def __str__(self) -> str:
        return "\n\n".join(text for text in (self.summary, self.caution) if text)

    def to_dict(self) -> dict[str, Any]:
        """All findings as plain data."""
        ranges = {name: np.asarray(part).tolist() for name, part in self.ranges._asdict().items()}
        return {
            "summary": self.summary,
            "caution": self.caution,
            "log": {
                "name": self.name,
                "rows": self.survey.rows,
                "skipped": self.survey.skipped,
                "arms": dict(zip(self.survey.arms, self.survey.pulls.tolist(), strict=True)),
                "resources": list(self.survey.resources),
                "table": self.survey.table,
            },
            "problem": self.world.problem.to_dict(),
            "drift": self.drift.to_dict(),
            "kind": self.kind,
            "changes": (self.fit.changes + 1).tolist(),
            "worth": {**self.worth.to_dict(), "intervals": ranges},
            "recommended": self.recommended.to_dict(),
            "without_plans": self.steady.to_dict(),
            "if_timing_is_off": dict(zip(("recommended", "without_plans"), self.shifted, strict=True)),
            "candidates": [standing.to_dict() for standing in self.standings],
            "windows": {name: _with_gaps(part) for name, part in self.windows._asdict().items()},
        }

    def html(self) -> str:
        """One self-contained page with figures."""
        from driftsack.advice.page import page  # noqa: PLC0415  (loads Matplotlib)

        return page(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page; a path that ends in .json gets the plain data."""
        target = Path(path)
        text = json.dumps(self.to_dict(), indent=2) if target.suffix == ".json" else self.html()
        target.write_text(text, encoding="utf-8")


def advise(
    source: Any,
    budget: Sequence[float] | Floats | float,
    horizon: int | None = None,
    resources: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    reward_max: float = 1.0,
    cost_max: Sequence[float] | float = 1.0,
    separator: str = ",",
    block: int = 1,
    windows: int | None = None,
    plans: bool = True,
    worlds: int = 20,
    trials: int = 4,
    level: float = LEVEL,
    shuffles: int = SHUFFLES,
    seed: int = 0,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None,
) -> Advice:
    """Advise on a log: a ``Log``, a .csv or .parquet file, or a Polars DataFrame (see ``ds.logs``).

    ``budget`` is for ``horizon`` rounds (default: as many as the log has); the log's course is stretched to them.
    ``block`` is how many rounds hang together without any drift, such as those of a day: they count as one outcome;
    ``windows`` how many windows of time drift is measured in.
    ``plans=False`` leaves out policies that trust the log's timing to come again. Candidates are played on ``worlds``
    bootstrapped from the log. ``progress`` is told what is being done, how much of it is done, and of how much.

    >>> import driftsack as ds
    >>> log = ds.gather(ds.instances.example_2(horizon=1_000))
    >>> found = advise(log, budget=500, plans=False, worlds=2, trials=1)
    >>> found.kind, found.fit.changes.size > 0, found.summary[:17]
    ('which', True, 'Your world moves,')
    """
    flag(plans, "plans")
    if isinstance(source, Log):
        _check_told_once(resources, arms, reward_max, cost_max)
    progress("reading the log", 0, 1)
    raw = survey(source, resources, arms, reward_max, cost_max, separator)
    brief = joined(raw, whole(block, "block", at_least=1))
    amounts = vector(for_each(budget, "budget", brief.resources), "budget", len(brief.resources)).tolist()
    rounds = brief.rows if horizon is None else whole(horizon, "horizon", at_least=2)
    if rounds * whole(worlds, "worlds", at_least=1) > MOST_ROUNDS:
        raise SettingError(
            f"horizon times worlds must be at most {MOST_ROUNDS:,}, for every round of every world is kept in memory, "
            f"got {rounds:,} times {worlds:,}; pass a shorter horizon with the budget for it, or fewer worlds."
        )
    if brief.rows < 2 or max(len(one.values) for one in brief.series) < 2:  # noqa: PLR2004
        raise SettingError(f"advice needs a log in which some arm was played at least twice, got {brief.rows} rounds.")
    progress("looking for drift", 0, 1)
    seen = drift(brief, windows, level, shuffles, seed)
    fitted = fit(brief, seen.found, raw)
    likely = world(fitted, brief, amounts, rounds)
    value, rng = worth(likely), generator(seed)
    again = [resampled(brief, fitted, rng) for _ in range(worlds)]
    others = [world(fitted, brief, amounts, rounds, means) for means in again]
    listed = candidates(likely, plans)
    standings = trial(listed, others, trials, seed, lambda name, done: progress(name, done, len(others)))
    able = FAMILIES if seen.found else (REMEMBERS,)  # nothing is to be forgotten that does not change
    best, steady = choice(standings, able), choice(standings, [family for family in able if family != PLANS])
    progress("the value of budget", 0, 1)
    advice = Advice(
        name=Path(source).name if isinstance(source, (str, os.PathLike)) else "the log",
        survey=brief,
        drift=seen,
        fit=fitted,
        world=likely,
        windows=in_windows(brief, seen.windows, fitted.largest),
        kind=kind_of_drift(seen.found, value),
        worth=value,
        ranges=_ranges(value, [worth(other) for other in others], rounds * brief.reward_max * float(fitted.largest[0])),
        standings=tuple(standings),
        recommended=best,
        steady=steady,
        shifted=_when_off(best, steady, others, trials, seed),
    )
    progress("the value of budget", 1, 1)
    return advice


def _check_told_once(resources: Any, arms: Any, reward_max: Any, cost_max: Any) -> None:
    """Raise if a ``Log``, which has all of these, comes with any of them."""
    given = [name for name, value in (("resources", resources), ("arms", arms)) if value is not None]
    given += [
        name for name, value in (("reward_max", reward_max), ("cost_max", cost_max)) if np.any(np.asarray(value) != 1.0)
    ]
    if given:
        names = " and ".join(given)
        raise SettingError(
            f"a Log has its resources, arms, reward_max and cost_max already, got {names} too; pass {names} to "
            "ds.logs.read, or pass the file itself."
        )


def in_windows(brief: Survey, count: int, largest: Floats) -> Windows:
    """Means of every arm in equal windows of time, with intervals; ``largest`` is what one pull can give."""
    unit = np.array([brief.reward_max, *brief.cost_max])
    means = np.full((count, len(brief.arms), unit.size), np.nan)
    error = means.copy()
    for i, one in enumerate(brief.series):
        prefix = np.concatenate([np.zeros((1, unit.size)), np.cumsum(one.values, axis=0)])
        sums, counts = window_sums(Order(prefix[None], one.rounds, brief.rows), count)
        seen = counts > 0
        means[seen, i] = sums[0, seen] / counts[seen, None]
        left = doubt(one, one.values.mean(axis=0), len(one.values) * one.size, largest) / one.size
        error[seen, i] = np.sqrt((cell_variance(one) + left) / counts[seen, None])
    low, high = np.clip(means - Z * error, 0.0, 1.0), np.clip(means + Z * error, 0.0, 1.0)
    starts = np.arange(count, dtype=np.float64) * (brief.rows / count)
    return Windows(starts, means * unit, low * unit, high * unit)


def _ranges(point: Worth, values: list[Worth], most: float) -> Range:
    def interval(name: str) -> Floats:
        """Percentiles, widened to hold the fitted world's own."""
        found: Floats = np.quantile([getattr(value, name) for value in values], [0.025, 0.975], axis=0)
        own = getattr(point, name)
        return np.stack([np.minimum(found[0], own), np.maximum(found[1], own)])

    optima = np.array([value.best for value in values])
    low, high = np.quantile(optima, [0.025, 0.975]).tolist()
    twice = 2 * point.best
    expected = float(np.clip(twice - optima.mean(), 0.0, most))
    best = max(min(twice - high, low), 0.0), min(twice - low, most)
    return Range(expected, best, interval("prices"), interval("less"), interval("more"))


def _when_off(best: Standing, steady: Standing, others: list[Instance], trials: int, seed: int) -> tuple[float, float]:
    """Shares of the optimum of both candidates where everything comes a tenth of the horizon earlier or later."""
    if len(others[0].rewards) == 1:
        return best.share, steady.share
    moved = [_moved(one, round((-1) ** k * SHIFT * one.horizon)) for k, one in enumerate(others)]
    found = trial([best.candidate, steady.candidate], moved, trials, seed)
    return found[0].share, found[1].share


def _moved(one: Instance, by: int) -> Instance:
    """The same course, ``by`` rounds later; what was first or last stays longer."""
    rounds = np.clip(np.arange(one.horizon) - by, 0, one.horizon - 1)
    return Instance(one.problem, one.rewards, one.costs, one.phase[rounds], one.noise)


def _with_gaps(part: Floats) -> Any:
    """Numbers as JSON has them: None where there is none."""
    plain = part.astype(object)
    plain[np.isnan(part)] = None
    return plain.tolist()
