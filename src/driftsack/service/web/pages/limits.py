"""The limits of a campaign on its page: the labels that use most, exhausted ones, and thresholds that were crossed."""

from __future__ import annotations

from typing import Any, Final

from driftsack.game.amounts import whole_units
from driftsack.service.domain import journal
from driftsack.service.domain.amounts import text_of
from driftsack.service.projections.track import Track
from driftsack.service.web.pages.numbers import number, when

TOP: Final = 10  # labels in a table
SHOWN: Final = 10  # crossings
PERIODS: Final = {"day": "a day", "week": "a week", "month": "a month", None: "in all"}


def shown(track: Track) -> list[dict[str, Any]]:
    """Return a table for each resource of each limit."""
    limits = track.limits
    places = [(number, k) for number, rule in enumerate(limits.rules) for k in range(len(rule.resources))]
    return [_table(track, number, k) for number, k in places]


def _table(track: Track, place: int, k: int) -> dict[str, Any]:
    """Return the labels that use most of one resource of a limit."""
    rule, accounts = track.limits.rules[place], track.limits.accounts[place]
    j, amount, exponent = rule.resources[k], rule.amounts[k], track.exponents[rule.resources[k]]
    least = whole_units(float(track.config.problem().cost_max_by_arm[j].min()), exponent, up=True)
    usage = accounts.usage(track.at, k, TOP, amount - least)
    rows = []
    for label in usage.labels:
        row = accounts.find(label, track.at)
        spent, reserved = accounts.spent(row, k), accounts.reserved(row, k)
        rows.append(
            {
                "label": label,
                "spent": number(text_of(spent, exponent)),
                "reserved": number(text_of(reserved, exponent)),
                "left": number(text_of(amount - spent - reserved, exponent)),
                "spent_width": _width(spent, amount),
                "reserved_width": _width(reserved, amount),
                "is_exhausted": spent + reserved > amount - least,
            }
        )
    most = f"{number(text_of(amount, exponent))} {track.resources[j]} {PERIODS[rule.limit.every]}"
    counts = {"count": f"{usage.accounts:,}", "exhausted": f"{usage.exhausted:,}"}
    return {"title": f"{most} by {rule.limit.by}", "by": rule.limit.by, "rows": rows, **counts}


def _width(units: int, amount: int) -> float:
    """Return the width of a part of a bar in percent."""
    return round(min(max(100 * units / max(amount, 1), 0.0), 100.0), 2)


def crossings(track: Track) -> list[dict[str, Any]]:
    """Return the latest thresholds that were crossed, newest first."""
    return [_crossing(track, event) for event in list(track.crossings)[: -SHOWN - 1 : -1]]


def _crossing(track: Track, event: journal.Crossed) -> dict[str, Any]:
    exponent, resource = track.exponents[event.resource], track.resources[event.resource]
    whose = "the budget" if event.limit is None else f"{track.config.limits[event.limit].by} {event.label}"
    amounts = f"{number(text_of(event.spent, exponent))} of {number(text_of(event.amount, exponent))} {resource} spent"
    return {"when": when(event.at), "percent": event.percent, "whose": whose, "amounts": amounts}
