"""The comparison with the user's own rule, formatted for the page of a campaign."""

from __future__ import annotations

from typing import Any

from driftsack.service.domain import messages as ms
from driftsack.service.projections.apprentice_report import apprentice
from driftsack.service.projections.track import Track
from driftsack.service.web.pages.numbers import span


def verdict(found: ms.Apprentice) -> str:
    """Return the result of the comparison of rewards as a sentence."""
    gain = found.compared[0].gain if found.compared else None
    if gain is None:
        return found.refusal or ""
    if gain.low > 0:
        return "It would have earned more than your rule."
    if gain.high < 0:
        return "It would have earned less than your rule."
    return "Whether it would have earned more or less than your rule cannot be told yet."


def shown(track: Track) -> dict[str, Any] | None:
    """Return the comparison for the template; None if the campaign never watched."""
    if not track.config.watch:
        return None
    found = apprentice(track)
    return {
        "watching": track.state == "watching",
        "observations": f"{found.observations:,}",
        "counted": f"{found.counted:,}",
        "effective": f"{found.effective:,.0f}",
        "verdict": verdict(found),
        "shares": [
            (row.arm, f"{row.own:.0%}", "" if row.would is None else f"{row.would:.0%}") for row in found.shares
        ],
        "compared": [
            (row.quantity, *(span(each) for each in (row.own, row.would, row.gain))) for row in found.compared
        ],
    }
