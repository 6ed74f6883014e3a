"""``Register``: the decisions of a learner by round, and the check that a decision was made by this learner.

A decision carries its *source*: the lineage of its learner, which copies share, and an epoch. A learner that is
started, loaded, copied or forked starts a new epoch. Decisions of another learner, or of one that continued from an
earlier snapshot, are therefore recognised and refused.
"""

from __future__ import annotations

import os
import secrets
from collections import deque
from dataclasses import replace
from itertools import repeat
from typing import Any, Final, NoReturn

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP, Decision, Decisions, read_only
from driftsack.core.errors import AlreadyToldError, OutcomeError, UnknownDecisionError
from driftsack.game.desk import MOST_EPOCHS, SETTLED_KEPT, TOLD
from driftsack.policies.learner.engine import LearnerEngine
from driftsack.policies.learner.refusals import refuse_round


def refuse_other(number: int) -> NoReturn:
    """Raise: the outcome of a round differs from the part of it that was told before."""
    raise AlreadyToldError(
        f"a part of the outcome of round {number} was told before, with another value; tell each part once."
    )


def _agrees(outcome: Floats, reward: float | None, costs: Floats | None) -> bool:
    """Whether an outcome, reward first, has this reward and these costs; None is not compared."""
    return (reward is None or outcome[0] == reward) and (costs is None or np.array_equal(outcome[1:], costs))


MOST_DIGITS: Final = 18  # of the number of a round


class Register:
    """The decisions of a learner by the number of their round.

    Attributes:
        engine: The arrays of the learner.
        lineage: The identity of the learner, shared with its copies.
        slots: The slot of each decision that is not settled.
        issued: The objects that ``ask`` returned for such decisions in this epoch.
        source: The source of new decisions.
        process: The process of this epoch.
        price_unit: (d,) a normalised price of 1 in the problem's units.
    """

    def __init__(self, engine: LearnerEngine, lineage: str) -> None:
        self.engine, self.lineage = engine, lineage
        self.price_unit: Floats = engine.desk.scale[0] / engine.desk.cost_unit
        self.issued: dict[int, Decision] = {}
        self.start_epoch()
        self.find_slots()

    def start_epoch(self) -> None:
        """Start a new epoch."""
        self.process = os.getpid()
        epoch = secrets.randbelow(MOST_EPOCHS)
        self.engine.desk.epoch[0] = epoch
        self.source = self._source_of(epoch)

    def _source_of(self, epoch: int) -> str:
        return f"{self.lineage}-{epoch:08x}"

    def find_slots(self) -> None:
        """Rebuild the index of slots from the engine, for instance after an interrupted call."""
        self.slots: dict[int, int] = self.engine.slots_by_round()
        self.issued = {number: own for number, own in self.issued.items() if number in self.slots}

    def made(self, arm: int) -> Decision:
        """Return the decision that the engine just made, and keep it unless it is to skip; raise if it made none."""
        engine = self.engine
        if arm < SKIP:
            refuse_round(engine, arm)
        desk, problem = engine.desk, engine.problem
        context = read_only(engine.terms.context.copy()) if problem.features else None
        number = desk.begun.item(0)
        mix, prices = desk.mix[: problem.arms].copy(), desk.prices * self.price_unit
        mix.setflags(write=False)
        prices.setflags(write=False)
        if arm == SKIP:
            return Decision(number, arm, mix, prices, "", self.source, engine.most[SKIP], context)
        slot = desk.slot.item(0)
        most = engine.reserved_in(slot) if engine.altered else engine.most[arm]
        must = engine.altered and bool(engine.terms.must[0])
        decision = Decision(number, arm, mix, prices, problem.arm_names[arm], self.source, most, context, must)
        self.slots[number] = slot
        self.issued[number] = decision
        return decision

    def waiting(self, status: int) -> tuple[Decision, ...]:
        """Return the decisions with a status, oldest first."""
        return tuple(self.decision(slot) for slot in self.engine.slots_with(status).tolist())

    def decision(self, slot: int) -> Decision:
        """Return the decision in a slot."""
        number = self.engine.number_in(slot)
        if number in self.issued:
            return self.issued[number]
        kept, problem = self.engine.awaited_in(slot), self.engine.problem
        prices = read_only(kept.prices * self.price_unit)
        context = kept.context if problem.features else None
        name, source = problem.arm_names[kept.arm], self._source_of(kept.epoch)
        return Decision(number, kept.arm, kept.mix, prices, name, source, kept.reserved, context, kept.must)

    def with_id(self, text: str) -> Decision:
        """Return the decision with an id, without its mix if it was settled; raise if the text is no id."""
        source, _, number = text.rpartition("-")
        if not (source and number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS):
            raise UnknownDecisionError(f"tell needs a decision, or the id of one, got {text!r:.80}.")
        slot = self.slots.get(int(number))
        if slot is not None:
            own = self.decision(slot)
            return own if own.source == source else replace(own, source=source)  # which is refused by name
        return Decision(int(number), 0, read_only(np.zeros(0)), read_only(np.zeros(0)), source=source)

    def slot_of(self, decision: Any, reward: Any, costs: Any, kind: int) -> int | None:
        """Find the slot of a decision, which may be a copy of the object that ``ask`` returned.

        Args:
            reward: The reward, which is compared with that of an earlier call; None is not compared.
            costs: (d,) the costs, likewise.
            kind: ``TOLD``, ``CANCELLED`` or ``FORFEITED``.

        Returns:
            Its slot; None if there is nothing to do, because the same call was made before or the round was skipped.

        Raises:
            UnknownDecisionError: This learner did not make the decision.
            AlreadyToldError: It was settled before, with another outcome or too long ago to compare.
            OutcomeError: A skipped round is given a reward or a cost.
        """
        if not isinstance(decision, Decision):
            raise UnknownDecisionError(f"tell needs the Decision that ask returned, got {decision!r:.80}.")
        # The round must have begun; without a slot, the decision was settled or skipped.
        number, begun = decision.round, self.engine.begun
        if not 1 <= number <= begun:
            raise UnknownDecisionError(
                f"this learner has begun rounds 1 to {begun}, got a decision of round {number}; "
                "tell the learner that was asked."
            )
        slot = self.slots.get(number)
        if slot is None:
            gain = None if reward is None else float(reward)
            self._check_settled(decision, gain, None if costs is None else np.asarray(costs, dtype=np.float64), kind)
            return None
        # Otherwise it must be the decision of this learner in that round.
        own = self.decision(slot)
        earlier = own.mix[: decision.mix.size]  # arms may have been added since
        same = own.source == decision.source and np.array_equal(earlier, decision.mix)
        if own.arm != decision.arm or not same:
            raise UnknownDecisionError(
                f"round {number} was a decision for arm {own.arm} with id {own.id}, got one for arm {decision.arm} "
                f"with id {decision.id}, or with another mix; tell the learner that was asked."
            )
        return slot

    def _check_settled(self, decision: Decision, reward: float | None, costs: Floats | None, kind: int) -> None:
        """Raise unless a decision without a slot was settled with this outcome, or was skipped and has no costs."""
        settled = self.engine.settled(decision.round)
        self._check_source(decision, None if settled is None else settled.epoch)
        if decision.arm == SKIP:
            if reward or (costs is not None and costs.any()):
                raise OutcomeError(
                    f"round {decision.round} was skipped: its reward and costs must be 0, got reward {reward} and "
                    f"costs {costs}; a SKIP needs no tell."
                )
            return
        same = settled is not None and settled.kind == kind and _agrees(settled.outcome, reward, costs)
        if not same:
            raise AlreadyToldError(
                f"round {decision.round} has no pending outcome: it was reported with other content, cancelled, or is "
                f"not among the latest {SETTLED_KEPT} that were settled, which are compared; tell each decision once."
            )

    def _check_source(self, decision: Decision, epoch: int | None) -> None:
        """Raise if another learner made a decision; ``epoch`` is that of its round, if it is known."""
        if decision.arm == SKIP and not decision.source:
            return  # a SKIP that the caller constructed changes nothing
        if epoch is not None:
            own = decision.source == self._source_of(epoch) and decision.arm != SKIP
        else:
            own = decision.source.partition("-")[0] == self.lineage
        if not own:
            raise UnknownDecisionError(
                f"round {decision.round} was decided by another learner, or by another incarnation of this one, got a "
                f"decision with id {decision.id}; tell the learner that was asked."
            )

    def check_batch(self, decisions: Decisions, rewards: Floats, costs: Floats, slots: Ints) -> None:
        """Raise unless every decision of a batch is pending, or was told with the same content.

        Args:
            rewards: (n,) their rewards.
            costs: (n, d) their costs.
            slots: (n,) their slots, -1 where there is none.
        """
        known = slots >= 0
        for k in np.flatnonzero(~known).tolist():
            self.slot_of(decisions[k], rewards[k], costs[k], TOLD)
        pending = slots[known]
        self._check_parts(decisions.rounds[known], pending, rewards[known], costs[known])
        arms, epochs = self.engine.arms_and_epochs(pending)
        same = (arms == decisions.arms[known]).all() and (epochs == epochs[:1]).all()
        own = not pending.size or decisions.source == self._source_of(int(epochs[0]))
        if not (same and own and len(set(pending.tolist())) == pending.size):
            raise UnknownDecisionError(
                "each decision must have been made by this learner and occur only once, got others; nothing was told."
            )

    def _check_parts(self, rounds: Ints, slots: Ints, rewards: Floats, costs: Floats) -> None:
        """Raise if an outcome differs from the part of it that was told before."""
        gains, uses = self.engine.parts_of(slots)
        if np.isnan(gains).all() and np.isnan(uses[:, 0]).all():
            return
        other = ~np.isnan(gains) & (gains != rewards) | (~np.isnan(uses) & (uses != costs)).any(axis=1)
        if other.any():
            refuse_other(int(rounds[np.argmax(other)]))

    def forget(self, rounds: list[int]) -> None:
        """Forget decisions that were settled."""
        for by_round in (self.slots, self.issued):
            if by_round:
                deque(map(by_round.pop, rounds, repeat(None)), maxlen=0)
