"""Propensities of the decisions in a journal, over the draws of the campaign's policy.

A journal holds the probability that the chosen arm had in the mix of its draw. Here the journal is replayed, and the
learner is asked again before each decision (:mod:`driftsack.policies.learner.propensities`), which takes about as long
as so many decisions.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Final

from driftsack.core.decision import SKIP
from driftsack.core.errors import BudgetExhaustedError, HorizonReachedError
from driftsack.policies.learner.propensities import redraw
from driftsack.service.domain import journal
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.replay import apply_events
from driftsack.service.projections.export import find_row
from driftsack.service.runtime.recovery import from_beginning
from driftsack.service.store.interface import Store

DRAWS: Final = 100
"""Draws for each decision; a standard error of 0.05 at a probability of one half."""


def redrawn_propensities(store: Store, name: str, draws: int = DRAWS) -> dict[int, float]:
    """Return the propensity of the chosen arm by the number of the decision; skips are left out.

    Args:
        name: The campaign.
        draws: The number of draws for each decision, at least 2.
    """
    campaign, _ = from_beginning(store, find_row(store, name))
    found: dict[int, float] = {}

    def noted(events: Iterable[Any]) -> Iterator[Any]:
        """Estimate the propensity of each decision just before it is applied."""
        for event in events:
            if isinstance(event, journal.Asked) and event.arm is not None and event.arm != SKIP:
                found[event.number] = _propensity(campaign, event, event.arm, draws)
            yield event

    for segment in store.segments(name, after=campaign.book.seq):
        apply_events(campaign, noted(journal.decode(segment.body)), segment.deltas)
    return found


def _propensity(campaign: Campaign, event: journal.Asked, arm: int, draws: int) -> float:
    """The propensity of the recorded arm of a decision that the campaign is about to make again."""
    request = {"open": campaign.open_arms(event), **campaign.terms(event)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            chances = redraw(campaign.learner, draws, request).probability
        except (HorizonReachedError, BudgetExhaustedError):  # of a learner that diverges from the recorded one
            return event.probability
    chance = float(chances[arm])
    return chance if chance > 0.0 else event.probability
