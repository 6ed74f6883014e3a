"""The requests of a campaign by segment, what their features earned, and how the requests changed, for display."""

from __future__ import annotations

from typing import Any, Final

from driftsack.service.projections.context_worth import Worth
from driftsack.service.projections.progress import WIDE
from driftsack.service.projections.segments import ContextTrack, FeatureSegments, SegmentTally
from driftsack.service.projections.track import Track
from driftsack.service.web.pages.numbers import interval, number, when

MOST_ROWS: Final = 12  # segments of a feature; the rarest ones are left out


def shown(track: Track) -> dict[str, Any] | None:
    """Return the values of the section about requests; None for a campaign without features."""
    contexts = track.contexts
    if contexts is None:
        return None
    return {
        "worth": worth_text(contexts.worth_so_far(), [feature.name for feature in contexts.features]),
        "features": [feature_rows(each, len(track.arms)) for each in contexts.features if each.labels],
        "changes": changes(contexts),
        "waiting": [each.name for each in contexts.features if not each.labels],
    }


def worth_text(worth: Worth | None, names: list[str]) -> str:
    """Say what the features earned.

    >>> worth_text(Worth(312.0, 40.8, 9000), ["kind"])
    'Knowing kind earned 312 ± 80 more than the best mix of arms that does not (9,000 requests, same spending).'
    >>> worth_text(Worth(-3.0, 40.8, 9000), ["kind"])
    'Knowing kind earned -3 ± 80 more than the best mix of arms that does not (9,000 requests, same spending).'
    """
    what = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "the requests"
    if worth is None:
        return f"What knowing {what} earns is not known yet: every arm needs more outcomes."
    gain = f"{number(worth.gain)} ± {number(WIDE * worth.error, 2)}"
    return (
        f"Knowing {what} earned {gain} more than the best mix of arms that does not ({worth.requests:,} requests, same "
        "spending)."
    )


def feature_rows(feature: FeatureSegments, arms: int) -> dict[str, Any]:
    """Return the table of a feature, most frequent segments first."""
    total = max(sum(tally.requests for tally in feature.tallies), 1)
    rows = [
        {"label": label, **segment_row(tally, total, arms)}
        for label, tally in zip(feature.labels, feature.tallies, strict=True)
        if tally.requests
    ]
    rows.sort(key=lambda row: -row["requests"])
    return {"name": feature.name, "rows": rows[:MOST_ROWS], "more": max(len(rows) - MOST_ROWS, 0)}


def segment_row(tally: SegmentTally, total: int, arms: int) -> dict[str, Any]:
    """Return one row: share of the requests, shares of the arms, and mean reward and costs."""
    told = max(tally.told, 1)
    return {
        "requests": tally.requests,
        "share": f"{tally.requests / total:.0%}",
        "chosen": [f"{tally.chosen[arm] / tally.requests:.0%}" for arm in range(arms)],
        "reward": number(tally.reward / told) if tally.told else "–",
        "costs": [number(cost / told) if tally.told else "–" for cost in tally.costs],
    }


def changes(contexts: ContextTrack) -> list[dict[str, Any]]:
    """Return the latest changes of the requests, newest first."""
    return [
        {
            "when": when(each.at),
            "title": f"{each.what} {'is more frequent' if '=' in each.what else 'went up'}"
            if each.after.mean > each.before.mean
            else f"{each.what} {'is less frequent' if '=' in each.what else 'went down'}",
            "before": interval(each.before),
            "before_count": each.before.size,
            "after": interval(each.after),
            "after_count": each.after.size,
        }
        for each in reversed(contexts.changes)
    ]
