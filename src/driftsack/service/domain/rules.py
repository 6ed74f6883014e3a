"""Changes of state that follow from an event by rule: a pause after an overrun, and the end of draining.

Since format 1 of the journal such a change is an event of its own, written in the batch of the event that caused it.
So these rules are applied once, when the cause happens, and a later release may change them. A journal of format 0 does
not have these events: its readers apply the rules again, which therefore must stay as they are for such journals.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from driftsack.service.domain.config import Config

OVERRUN: Final = "overrun"
DRAINED: Final = "drained"


class RuledChange(NamedTuple):
    """A change of state by rule.

    Attributes:
        state: The new state.
        reason: The rule: ``"overrun"`` or ``"drained"``.
    """

    state: str
    reason: str


def change_after(config: Config, state: str, overran: bool, pending: int) -> RuledChange | None:
    """Return the change of state that follows from an event.

    Args:
        config: The settings of the campaign.
        state: The state after the event.
        overran: Whether the event charged a decision with more than was reserved for it.
        pending: The number of pending decisions after the event.

    Returns:
        The change; None if no rule applies.
    """
    if overran and config.pause_on_overrun and state == "active":
        return RuledChange("paused", OVERRUN)
    if state == "draining" and pending == 0:
        return RuledChange("closed", DRAINED)
    return None
