"""What a campaign would have chosen and earned while it watched, as a message and in words."""

from __future__ import annotations

from typing import Any

from driftsack.service import messages as ms
from driftsack.service.dashboard.progress import WIDE
from driftsack.service.dashboard.track import Track
from driftsack.service.shadow import Mean


def apprentice(track: Track) -> ms.Apprentice:
    """Compare the user's own rule with the campaign."""
    shadow = track.shadow
    rows = zip(track.arms, shadow.own, shadow.would, strict=True)
    shares = [
        ms.ShareOf(arm, own / max(shadow.observations, 1), would / shadow.studied if shadow.studied else None)
        for arm, own, would in rows
    ]
    pairs = zip(("reward", *track.resources), shadow.compared(), strict=False)
    compared = [ms.Compared(name, *(interval(mean) for mean in comparison)) for name, comparison in pairs]  # type: ignore[arg-type]
    return ms.Apprentice(
        state=track.state,  # type: ignore[arg-type]
        observations=shadow.observations,
        counted=shadow.counted,
        effective=shadow.effective,
        shares=shares,
        compared=compared,
        refusal=shadow.refusal,
    )


def interval(mean: Mean | None) -> ms.Interval | None:
    """A mean with its 95% interval."""
    if mean is None:
        return None
    return ms.Interval(mean.value, mean.value - WIDE * mean.error, mean.value + WIDE * mean.error)


def verdict(found: ms.Apprentice) -> str:
    """What the comparison of rewards says, in a sentence."""
    gain = found.compared[0].gain if found.compared else None
    if gain is None:
        return found.refusal or ""
    if gain.low > 0:
        return "It would have earned more than your rule."
    if gain.high < 0:
        return "It would have earned less than your rule."
    return "Whether it would have earned more or less than your rule cannot be told yet."


def shown(track: Track, text: Any) -> dict[str, Any] | None:
    """What the page of a campaign shows; None if it never watched.

    Args:
        track: The campaign.
        text: Writes a mean and its error for people.

    Returns:
        Texts and shares.
    """
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
            (row.quantity, *(text(each) for each in (row.own, row.would, row.gain))) for row in found.compared
        ],
    }
