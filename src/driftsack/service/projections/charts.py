"""The charts of a campaign as columns of numbers."""

from __future__ import annotations

from typing import Any, Final

from driftsack.service.projections.plan import Planned, planned
from driftsack.service.projections.progress import Axis, axis_of, forecast, recent_shares, season_buckets
from driftsack.service.projections.track import Track

MOST_LINES: Final = 8  # arms with a line of their own


def figures(track: Track) -> dict[str, Any]:
    """Return the columns of all charts, by chart."""
    axis, plan = axis_of(track), planned(track)
    return {
        "seq": track.seq,
        "axis": {"time": axis.by_time, "start": axis.start, "now": axis.now, "end": axis.end},
        "budgets": [burn_down(track, axis, j) for j in range(len(track.resources))],
        "prices": {"x": plan.places, "lines": named(track.resources, plan.prices)},
        "shares": shares(track, axis),
        "regret": regret(plan),
    }


def named(names: list[str], columns: list[list[float]]) -> list[dict[str, Any]]:
    """Return lines with their names."""
    return [{"name": name, "y": column} for name, column in zip(names, columns, strict=True)]


def burn_down(track: Track, axis: Axis, resource: int) -> dict[str, Any]:
    """Return what is left of a budget: so far, at an even pace, and the forecast."""
    # The past of the season.
    unit = 10.0 ** -track.exponents[resource]
    buckets = season_buckets(track)
    places = [axis.of(bucket) for bucket in buckets]
    spent = [bucket.spent[resource] * unit for bucket in buckets]
    left = [bucket.granted[resource] * unit - used for bucket, used in zip(buckets, spent, strict=True)]
    # The forecast, on the same axis.
    ahead = forecast(places, spent, max(left[-1], 0.0), axis.end) if left else None
    x = [*places, *(ahead.at[1:] if ahead else [])]
    past = len(places) - 1

    def later(values: list[float]) -> list[float | None]:
        return [*([None] * past), *values]

    whole: list[float | None] = [*left, *([None] * (len(x) - len(left)))]
    granted = track.account.granted[resource] * unit
    return {
        "name": track.resources[resource],
        "x": x,
        "left": whole,
        "even": [even(axis, granted, place) for place in x],
        "middle": later(ahead.middle) if ahead else [None] * len(x),
        "low": later(ahead.low) if ahead else [None] * len(x),
        "high": later(ahead.high) if ahead else [None] * len(x),
    }


def even(axis: Axis, granted: float, place: float) -> float | None:
    """Return what would be left at an even pace; None if the end of the season is not known."""
    if axis.end is None or axis.end <= axis.start:
        return None
    return granted * max(1.0 - (place - axis.start) / (axis.end - axis.start), 0.0)


def shares(track: Track, axis: Axis) -> dict[str, Any]:
    """Return the share of requests that each arm received, over a few buckets; rare arms are added up."""
    # Rank the arms by how often they were chosen.
    buckets = track.buckets
    totals = dict.fromkeys(range(len(track.arms)), 0)
    for bucket in buckets:
        for arm, tally in bucket.tallies.items():
            totals[arm] += tally.chosen
    ranked = sorted(totals, key=lambda arm: (-totals[arm], arm))
    # Give the most frequent arms a line each.
    shown = ranked if len(ranked) <= MOST_LINES else ranked[: MOST_LINES - 1]
    lines = [{"name": track.arms[arm], "y": recent_shares(track, [arm])} for arm in sorted(shown)]
    if len(shown) < len(ranked):
        lines.append({"name": f"{len(ranked) - len(shown)} others", "y": recent_shares(track, ranked[len(shown) :])})
    return {"x": [axis.of(bucket) for bucket in buckets], "lines": lines}


def regret(plan: Planned) -> dict[str, Any]:
    """Return the regret against the best plan on estimated means, with its 95% interval."""
    pairs = list(zip(plan.regret, plan.error, strict=True))
    return {
        "x": plan.places,
        "y": plan.regret,
        "low": [value - wide for value, wide in pairs],
        "high": [value + wide for value, wide in pairs],
    }
