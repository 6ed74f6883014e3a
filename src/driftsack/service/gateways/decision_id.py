"""``DecisionId``: the id of a decision outside the service, with which its reward can be told hours later."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

FORM: Final = re.compile(r"([A-Za-z0-9._:@-]+)/([1-9][0-9]{0,14})/([A-Za-z0-9]+)")


class DecisionId(NamedTuple):
    """The id of a decision.

    Attributes:
        campaign: The campaign.
        number: The number of the decision.
        token: The secret that settles it.

    >>> str(DecisionId("chat", 12, "f0e1")), DecisionId.read("chat/12/f0e1"), DecisionId.read("chat/12")
    ('chat/12/f0e1', DecisionId(campaign='chat', number=12, token='f0e1'), None)
    """

    campaign: str
    number: int
    token: str

    def __str__(self) -> str:
        return f"{self.campaign}/{self.number}/{self.token}"

    @classmethod
    def read(cls, given: object) -> DecisionId | None:
        """Return the id in a string; None if it is something else."""
        parts = FORM.fullmatch(given) if isinstance(given, str) else None
        return None if parts is None else cls(parts[1], int(parts[2]), parts[3])
