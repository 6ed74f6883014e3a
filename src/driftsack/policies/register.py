"""``Register``: which decision is in which slot of the desk, and whether a decision was made by this learner.

A decision carries its *source*: the lineage of its learner, which copies share, and an epoch. A learner that is
started, loaded, copied or forked begins a new epoch, so that a decision of another learner, or of one before a restored
snapshot, is not taken for its own.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP, Decision, Decisions, read_only
from driftsack.core.errors import AlreadyToldError, OutcomeError, UnknownDecisionError
from driftsack.game.desk import FREE, MOST_EPOCHS, REMEMBERED, TOLD
from driftsack.game.ledger import amounts_of
from driftsack.policies.engine import Engine


class Register:
    """The decisions of a learner by the number of their round.

    Attributes:
        engine: The arrays of the learner, its desk among them.
        lineage: Which learner it is, shared with its copies.
        slots: The slot of each decision that waits for an outcome.
        issued: Those of this epoch that were returned one by one, as they were returned.
        source: What decisions carry that are made now.
        price_unit: (d,) what a normalised price of 1 is, in the problem's units.

    Args:
        engine: See the attributes.
        lineage: See the attributes.
    """

    def __init__(self, engine: Engine, lineage: str) -> None:
        self.engine, self.lineage = engine, lineage
        self.price_unit: Floats = engine.desk.scale[0] / engine.desk.cost_unit
        self.issued: dict[int, Decision] = {}
        self.begin_life()
        self.find_slots()

    def begin_life(self) -> None:
        """Give the decisions that are made from now on another source."""
        self.process = os.getpid()
        epoch = secrets.randbelow(MOST_EPOCHS)
        self.engine.desk.epoch[0] = epoch
        self.source = self._source_of(epoch)

    def _source_of(self, epoch: int) -> str:
        return f"{self.lineage}-{epoch:08x}"

    def find_slots(self) -> None:
        """Derive from the desk where each decision is kept; also after a call that was interrupted."""
        awaited = self.engine.desk.awaited
        used = np.flatnonzero(awaited.status != FREE)
        self.slots: dict[int, int] = dict(zip(awaited.number[used].tolist(), used.tolist(), strict=True))
        self.issued = {number: own for number, own in self.issued.items() if number in self.slots}

    def made(self, arm: int, reserved: Floats | None, context: Floats | None) -> Decision:
        """The decision that the engine just made.

        Args:
            arm: The arm or ``SKIP``.
            reserved: (d,) what was reserved for it; None to look it up.
            context: (n,) the features of the request, if it has any.

        Returns:
            The decision; the register remembers it unless it is to skip.
        """
        desk, problem = self.engine.desk, self.engine.problem
        number = desk.begun.item(0)
        mix, prices = desk.mix[: problem.arms].copy(), desk.prices * self.price_unit
        mix.setflags(write=False)
        prices.setflags(write=False)
        if arm == SKIP:
            return Decision(number, arm, mix, prices, None, self.source, self.engine.most[SKIP], context)
        slot = desk.slot.item(0)
        most = self._reserved(slot) if reserved is None else reserved
        decision = Decision(number, arm, mix, prices, problem.arm_names[arm], self.source, most, context)
        self.slots[number] = slot
        self.issued[number] = decision
        return decision

    def waiting(self, status: int) -> tuple[Decision, ...]:
        """The decisions of a status, oldest first."""
        awaited = self.engine.desk.awaited
        slots = np.flatnonzero(awaited.status == status)
        return tuple(self.decision(slot) for slot in slots[np.argsort(awaited.number[slots])].tolist())

    def decision(self, slot: int) -> Decision:
        """The decision in a slot."""
        awaited, problem = self.engine.desk.awaited, self.engine.problem
        number, arm = int(awaited.number[slot]), int(awaited.arm[slot])
        if number in self.issued:
            return self.issued[number]
        prices = read_only(awaited.prices[slot] * self.price_unit)
        mix = read_only(awaited.mixes[slot, : problem.arms].copy())
        source = self._source_of(int(awaited.epoch[slot]))
        context = read_only(awaited.contexts[slot].copy()) if problem.features else None
        return Decision(number, arm, mix, prices, problem.arm_names[arm], source, self._reserved(slot), context)

    def _reserved(self, slot: int) -> Floats:
        """(d,) what is reserved for the decision in a slot; NaN where that is not known."""
        units = self.engine.desk.awaited.reserved[slot]
        amounts = amounts_of(self.engine.ledger, np.maximum(units, 0))
        return read_only(np.where(units < 0, np.nan, amounts))  # type: ignore[no-any-return]

    def slot_of(self, decision: Any, reward: Any, costs: Any, kind: int) -> int | None:
        """Find a decision that may be another object than the one that was returned.

        Args:
            decision: What is told, cancelled or forfeited.
            reward: The outcome, to recognise a repetition.
            costs: (d,) see ``reward``.
            kind: What is to be done: ``TOLD``, ``CANCELLED`` or ``FORFEITED``.

        Returns:
            Its slot; None if there is nothing to do, since that was done before or the round was skipped.

        Raises:
            UnknownDecisionError: This learner did not make the decision.
            AlreadyToldError: It was settled before, with another outcome or too long ago to compare.
            OutcomeError: A skipped round is given a reward or a cost.
        """
        if not isinstance(decision, Decision):
            raise UnknownDecisionError(f"tell needs the Decision that ask returned, got {decision!r:.80}.")
        number, begun = decision.round, int(self.engine.desk.begun[0])
        if not 1 <= number <= begun:
            raise UnknownDecisionError(
                f"this learner has begun rounds 1 to {begun}, got a decision of round {number}; "
                "tell the learner that was asked."
            )
        slot = self.slots.get(number)
        if slot is None:
            self._check_settled(decision, float(reward), np.asarray(costs, dtype=np.float64), kind)
            return None
        own = self.decision(slot)
        earlier = own.mix[: decision.mix.size]  # arms may have been added since
        same = own.source == decision.source and np.array_equal(earlier, decision.mix)
        if own.arm != decision.arm or not same:
            raise UnknownDecisionError(
                f"round {number} was a decision for arm {own.arm} with id {own.id}, got one for arm {decision.arm} "
                f"with id {decision.id}, or with another mix; tell the learner that was asked."
            )
        return slot

    def _check_settled(self, decision: Decision, reward: float, costs: Floats, kind: int) -> None:
        """Raise unless a decision without a slot was settled with this content, or skipped and costs nothing."""
        settled = self.engine.desk.settled
        rows = np.flatnonzero(settled.number == decision.round)
        self._check_source(decision, int(settled.epoch[rows[0]]) if rows.size else None)
        if decision.arm == SKIP:
            if reward != 0.0 or costs.any():
                raise OutcomeError(
                    f"round {decision.round} was skipped: its reward and costs must be 0, got reward {reward} and "
                    f"costs {costs}; a SKIP needs no tell."
                )
            return
        same = rows.size and settled.kind[rows[0]] == kind
        if not (same and np.array_equal(settled.outcome[rows[0]], [reward, *costs])):
            raise AlreadyToldError(
                f"round {decision.round} has no pending outcome: it was reported with other content, cancelled, or is "
                f"not among the latest {REMEMBERED} that were settled, which are compared; tell each decision once."
            )

    def _check_source(self, decision: Decision, epoch: int | None) -> None:
        """Raise unless this learner made a decision, as far as is known; ``epoch`` is that of its round, if it is."""
        if decision.arm == SKIP and not decision.source:
            return  # a SKIP that was made by hand changes nothing
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
            decisions: The decisions.
            rewards: (n,) their rewards.
            costs: (n, d) their costs.
            slots: (n,) their slots, -1 where there is none.
        """
        awaited, known = self.engine.desk.awaited, slots >= 0
        for k in np.flatnonzero(~known).tolist():
            self.slot_of(decisions[k], rewards[k], costs[k], TOLD)
        pending = slots[known]
        epochs = awaited.epoch[pending]
        same = (awaited.arm[pending] == decisions.arms[known]).all() and (epochs == epochs[:1]).all()
        own = not pending.size or decisions.source == self._source_of(int(epochs[0]))
        if not (same and own and len(set(pending.tolist())) == pending.size):
            raise UnknownDecisionError(
                "each decision must have been made by this learner and occur only once, got others; nothing was told."
            )
