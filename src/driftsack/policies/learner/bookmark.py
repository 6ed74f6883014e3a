"""``Bookmark``: a state of a learner to return to; copying its arrays in place is cheaper than copying the learner."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from driftsack.core.errors import SettingError
from driftsack.game.state_tree import arrays

if TYPE_CHECKING:
    from driftsack.policies.learner.learner import Learner


class Bookmark:
    """The present state of a learner; calls of ``ask`` and ``tell`` after it can be undone.

    The learner must not be shared meanwhile: no other thread may use it, and no signal handler may save it.

    >>> from driftsack.core import Problem
    >>> from driftsack.policies import NaiveUCB
    >>> learner = NaiveUCB().start(Problem(horizon=100, arms=3, budget=20), seed=0)
    >>> before = Bookmark(learner)
    >>> learner.tell(learner.ask(), reward=1.0, costs=[0.5])
    >>> before.go_back()
    >>> learner
    Learner(NaiveUCB(...), round 0 of 100, remaining [20])
    """

    def __init__(self, learner: Learner) -> None:
        learner._engine.make_room()  # the next decision does not need a larger table
        self._learner, self._parts = learner, _parts(learner)
        self._clock = copy.deepcopy(learner._clock) if learner.problem.period is not None else None
        self._kept = [(array, array.copy()) for array in arrays(self._parts).values()]
        self._drawn, self._lp_rescues = learner._engine.rng.bit_generator.state, learner.lp_rescues

    def go_back(self, redraw: bool = False) -> None:
        """Undo everything since the bookmark was made. Decisions that were made since cannot be told.

        Args:
            redraw: Whether to keep the present state of the random generator, so that the next decision is drawn again.

        Raises:
            SettingError: The learner has other arrays now: an arm was added, a season began or was settled, or many
                decisions wait.
        """
        now = _parts(self._learner)
        if len(now) != len(self._parts) or any(one is not other for one, other in zip(now, self._parts, strict=True)):
            raise SettingError(
                "a learner can go back only if no arm was added, no season began or was settled, and few decisions "
                "wait since; copy it with copy.deepcopy instead."
            )
        for array, content in self._kept:
            array[...] = content
        engine = self._learner._engine
        engine.lp_rescues = self._lp_rescues
        if not redraw:
            engine.rng.bit_generator.state = self._drawn
        if self._clock is not None:
            self._learner._clock = copy.deepcopy(self._clock)
        engine.restore_terms()
        self._learner._register.start_epoch()
        self._learner._register.find_slots()


def _parts(learner: Learner) -> tuple[object, ...]:
    """The arrays that ``ask`` and ``tell`` change."""
    engine = learner._engine
    past = (season.ledger for _, season in sorted(engine.past.items()))
    return engine.state, engine.ledger, engine.terms, engine.desk, engine.offered, engine.worst, engine.usual, *past
