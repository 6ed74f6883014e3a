"""The comparison of the user's own rule with a campaign that watches it."""

from __future__ import annotations

from driftsack.service.domain import messages as ms
from driftsack.service.projections.progress import WIDE
from driftsack.service.projections.shadow import Mean
from driftsack.service.projections.track import Track


def apprentice(track: Track) -> ms.Apprentice:
    """Compare the user's own rule with what the campaign would have chosen and earned."""
    shadow = track.shadow
    # The shares of the arms under both.
    rows = zip(track.arms, shadow.own, shadow.would, strict=True)
    shares = [
        ms.ShareOf(arm, own / max(shadow.observations, 1), would / shadow.studied if shadow.studied else None)
        for arm, own, would in rows
    ]
    # Reward and costs under both.
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
    """Return a mean with its 95% interval."""
    if mean is None:
        return None
    return ms.Interval(mean.value, mean.value - WIDE * mean.error, mean.value + WIDE * mean.error)
