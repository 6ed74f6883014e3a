"""The operations of the soak, and the weights with which they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from lab.soak import copies, outcomes, requests, upkeep
from lab.soak.player import Player

MOST_HELD: Final = 40  # requests that wait for an outcome

OPERATIONS: Final[dict[str, Callable[[Player], None]]] = {
    "ask": requests.ask,
    "ask_many": requests.ask_many,
    "tell": outcomes.tell,
    "tell_many": outcomes.tell_many,
    "cancel": outcomes.cancel,
    "forfeit": outcomes.forfeit,
    "expire": outcomes.expire,
    "repeat": outcomes.repeat,
    "misuse": copies.misuse,
    "tell_skip": copies.tell_skip,
    "add_arm": upkeep.add_arm,
    "retire_arm": upkeep.retire_arm,
    "reopen_arm": upkeep.reopen_arm,
    "grant": upkeep.grant,
    "renew": upkeep.renew,
    "revise": upkeep.revise,
    "restore": copies.restore,
    "fork": copies.fork,
}
WEIGHTS: Final = {
    "ask": 16.0,
    "ask_many": 24.0,
    "tell": 12.0,
    "tell_many": 24.0,
    "cancel": 2.0,
    "forfeit": 2.0,
    "expire": 0.7,
    "repeat": 2.0,
    "misuse": 1.5,
    "tell_skip": 0.5,
    "add_arm": 0.4,
    "retire_arm": 0.5,
    "reopen_arm": 1.0,
    "grant": 2.0,
    "renew": 1.2,
    "revise": 0.8,
    "restore": 0.6,
    "fork": 0.15,
}
NEEDS_DECISIONS: Final = ("tell", "tell_many", "cancel", "forfeit", "expire")
NEW_DECISIONS: Final = ("ask", "ask_many")


def _choices(left_out: tuple[str, ...] = ()) -> tuple[list[str], Floats]:
    """The names of operations and their probabilities."""
    names = [name for name in OPERATIONS if name not in left_out]
    weights = np.array([WEIGHTS[name] for name in names])
    return names, weights / weights.sum()


BUSY, IDLE, FULL = _choices(), _choices(NEEDS_DECISIONS), _choices(NEW_DECISIONS)


def step(player: Player) -> None:
    """Do one random operation and compare the learner with the model."""
    names, weights = BUSY if player.model.held else IDLE
    if len(player.model.held) > MOST_HELD:
        names, weights = FULL
    OPERATIONS[names[int(player.rng.choice(len(names), p=weights))]](player)
    player.model.check(player.learner)
