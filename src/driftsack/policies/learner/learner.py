"""``Learner``: a policy started on a problem. Ask for a decision, act on it, and tell the outcome."""

from __future__ import annotations

import math
import os
import secrets
import warnings
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools
from driftsack.core.checks import Safe, flag, safety, whole
from driftsack.core.decision import SKIP, Decision, Decisions
from driftsack.core.encoder import Context
from driftsack.core.errors import FileFormatError, SettingError
from driftsack.core.file_format import atomic_write, check_target, read_bytes
from driftsack.core.locks import hold
from driftsack.core.names import Amounts, ArmAmounts
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, generator
from driftsack.game.desk import FORFEITED
from driftsack.game.units import checked_outcome
from driftsack.policies.learner import arguments, batches, out_of_range
from driftsack.policies.learner import file as learner_file
from driftsack.policies.learner.clock import Clock
from driftsack.policies.learner.core import LearnerCore, guarded
from driftsack.policies.learner.engine import LearnerEngine
from driftsack.policies.learner.missing import note_values
from driftsack.policies.learner.propensities import Propensities, redraw
from driftsack.policies.learner.teaching import PastOutcomes, past_rounds
from driftsack.policies.policy import Policy

Costs = npt.ArrayLike | Mapping[str, float]
ListedAmounts = npt.ArrayLike | Mapping[str, float | Sequence[float] | Mapping[str, float]]


class Learner(LearnerCore):
    """Ask and tell in the problem's units; safe to share between threads and to save in a signal handler.

    Each ``ask`` begins a round, whether or not the outcomes of earlier rounds have arrived: feedback may arrive late
    and out of order, and counts for the round it belongs to. A ``SKIP`` needs no ``tell``.

    A signal handler may save a learner at any time, even while the thread that it interrupts asks or tells. A child of
    ``fork`` has a copy of the learner, with a budget of its own. ``copy.deepcopy`` and ``pickle`` make such copies.

    Attributes:
        policy: The policy that was started.
        safe: Whether an arm may be chosen only if every budget covers its maximum cost and what is reserved for all
            pending decisions. With True, each of them reserves its maximum cost: if no cost exceeds what was reserved
            for it, no budget is ever overspent. With ``"statistical"``, all of them together reserve what they are
            expected to cost plus four standard deviations, so that many late outcomes do not block the budget, and
            budgets may be exceeded a little (see docs/late-outcomes.md for how often and by how much).

    >>> from driftsack.core import Problem
    >>> from driftsack.policies import NaiveUCB
    >>> learner = NaiveUCB().start(Problem(horizon=100, arms=3, budget=[20, 30]), seed=0)
    >>> decision = learner.ask()
    >>> learner.tell(decision, reward=0.7, costs=[0.5, 0.25])
    >>> learner.round, learner.remaining
    (1, array([19.5 , 29.75]))

    With names:

    >>> named = Problem(horizon=100, arms=["small", "large"], budget={"usd": 20, "seconds": 30})
    >>> learner = NaiveUCB().start(named, seed=0)
    >>> decision = learner.ask()
    >>> decision.arm, decision.name
    (0, 'small')
    >>> learner.tell(decision, reward=0.7, costs={"usd": 0.5, "seconds": 0.25})
    >>> learner
    Learner(NaiveUCB(...), round 1 of 100, remaining [usd 19.5, seconds 29.75])
    """

    def __init__(self, policy: Policy, problem: Problem, seed: Seed = 0, safe: Safe = False) -> None:
        """Start a policy; ``policy.start(problem)`` is the usual way.

        Args:
            policy: The policy.
            problem: The problem.
            seed: Seed of the learner's own randomness; None for fresh entropy, so that forked workers differ.
            safe: See the class.
        """
        engine = LearnerEngine(policy, problem, safety(safe), generator(seed))
        super().__init__(engine, Clock(problem), lineage=secrets.token_hex(8))

    @guarded
    def ask(
        self,
        open: Collection[str] | Collection[int] | Bools | None = None,  # noqa: A002
        caps: ArmAmounts | None = None,
        at: float | datetime | None = None,
        context: Context | None = None,
        must: bool = False,
        costs: ListedAmounts | None = None,
    ) -> Decision:
        """Begin the next round and choose an arm or to skip.

        Args:
            open: The arms that this request may use: their names or numbers, or a mask (m,). None for all.
            caps: The request's maximum cost, by resource, or by resource and arm. Resources that are left out keep
                their ``cost_max``.
            at: The time of the request, a ``datetime`` or in seconds; needed if the problem has a ``period``.
            context: (n,) the features of the request, if the problem has some: numbers in order, or by name; optional
                ones may be left out. A policy that does not use them ignores them.
            must: Whether the request must be served. An arm that every budget covers is preferred, but if there is none
                the request is served even if that overspends, and counted in :attr:`overruns`.
            costs: What the arms cost by the price list of this request: for some or all resources a number for all
                arms, or amounts by arm, of which some may be left out; or (d, m) numbers. The policy then learns costs
                relative to the list. Reservations are not affected: if the request cannot cost more than its list,
                pass the list as ``caps`` too.

        Returns:
            The decision. Pass it to ``tell`` or ``cancel`` later, unless it is to skip.

        Raises:
            HorizonReachedError: All rounds have begun.
            BudgetExhaustedError: A budget is exceeded, and the request need not be served.
            SettingError: The learner is safe, and the maximum cost of an arm is not known; or the policy needs a
                context and there is none; or no arm may serve a request that must be served; or the policy cannot use
                listed costs.
            NamesError: The context has other names than the features.
            ShapeError: The context is not one number for each feature.
        """
        engine, register = self._engine, self._register
        if register.process != os.getpid():  # a child of fork
            register.start_epoch()
        if engine.plain and not engine.altered and open is caps is at is context is costs is None and must is False:
            return register.made(engine.begin(math.nan, math.nan))
        seconds, rounds = arguments.open_request(engine, self._clock, open, caps, at, context, must, costs)
        decision = register.made(engine.begin(seconds, rounds))
        if context is not None:
            note_values(engine.usual, engine.problem.encoder, engine.terms.context)
        return decision

    @guarded
    def admissible(
        self,
        open: Sequence[str] | Sequence[int] | Bools | None = None,  # noqa: A002
        caps: ArmAmounts | None = None,
    ) -> Bools:
        """(m,) which arms :meth:`ask` could choose now; with ``safe``, those that every budget covers.

        Args:
            open: The arms that the request may use, as in :meth:`ask`.
            caps: The request's maximum cost, as in :meth:`ask`.
        """
        return arguments.admissible_arms(self._engine, open, caps)

    def propensities(self, draws: int = 200, **request: Any) -> Propensities:
        """Estimate the probabilities with which :meth:`ask` would choose each arm now; nothing is changed.

        ``decision.mix`` is the mix of one draw of the policy. A policy that draws means, such as ``Adaptive`` or
        ``LinearBwK``, would often choose other arms at other draws; this is the mean over draws. The first draw is that
        of the next ``ask`` with the same arguments, so its arm never has an estimate of 0, and weights 1/p need no
        correction. Write it to your log as the propensity of that decision.

        Args:
            draws: The number of draws, at least 2; each takes about as long as an ``ask``.
            **request: The arguments of :meth:`ask`, by name.

        Raises:
            DriftsackError: :meth:`ask` would raise it.

        >>> from driftsack.core import Problem
        >>> from driftsack.policies import UniformRandom
        >>> chances = UniformRandom().start(Problem(100, ["small", "large"], 50), seed=0).propensities()
        >>> chances.probability, chances.error
        (array([0.5, 0.5]), array([0., 0.]))
        """
        count = whole(draws, "draws", at_least=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the copy, which is discarded
            return redraw(type(self).from_bytes(self.to_bytes()), count, request)

    @guarded
    def ask_many(
        self,
        count: int,
        open: Sequence[str] | Sequence[int] | Bools | None = None,  # noqa: A002
        caps: ArmAmounts | None = None,
        at: float | datetime | None = None,
        contexts: npt.ArrayLike | Sequence[Mapping[str, Any]] | None = None,
        must: bool = False,
        costs: ListedAmounts | None = None,
    ) -> Decisions:
        """Begin several rounds at once; the decisions are those of as many calls of :meth:`ask`.

        If the problem has a ``period``, each round is an arrival of its own.

        Args:
            count: The number of rounds.
            open: The arms that each request may use, as in :meth:`ask`.
            caps: The maximum cost of each request, as in :meth:`ask`.
            at: The time of these requests, as in :meth:`ask`.
            contexts: The features of each request: (count, n) numbers, or one mapping for each.
            must: Whether each of them must be served, as in :meth:`ask`.
            costs: The listed costs of each of them, as in :meth:`ask`.

        Returns:
            The decisions; fewer if the horizon or a budget ends.

        Raises:
            HorizonReachedError: All rounds have begun.
            BudgetExhaustedError: A budget is exceeded.
        """
        number = whole(count, "count", at_least=1)
        features = arguments.contexts_of(self.policy, self.problem, number, contexts, self._engine.usual)
        if self._register.process != os.getpid():
            self._register.start_epoch()
        first = features[0] if self.problem.features else None
        opened = arguments.open_request(self._engine, self._clock, open, caps, at, first, must, costs)
        made = batches.ask_batch(self._engine, self._register, self._clock, features, at, opened)
        for context in features[: len(made)] if contexts is not None else ():
            note_values(self._engine.usual, self.problem.encoder, context)
        return made

    def tell(self, decision: Decision | str, reward: float | None = None, costs: Costs | None = None) -> None:
        """Report the outcome of a decision, in any order. The same call again changes nothing.

        Reward and costs may arrive apart: ``tell(decision, costs=...)`` charges the costs, which replace the
        reservation, and the decision stays pending until ``tell(decision, reward=...)``; or the reward comes first. The
        policy learns from the outcome when both parts are known; until then it takes told costs into account as
        spending. If the reward never arrives, :meth:`forfeit` and :meth:`cancel` charge nothing more.

        The latest 512 settled decisions are kept for this; an older one raises ``AlreadyToldError``. A cost above
        what was reserved is charged in full and counted in :attr:`overruns`. Rewards out of range are clipped when they
        are learnt, and so are costs above ``cost_max``, or above 1 if it was omitted, by policies that need costs in
        [0, 1]. The first of each kind gives an ``OverrunWarning``.

        Args:
            decision: The decision that ``ask`` returned, or its ``id``.
            reward: The reward in the problem's units; None if it is not known yet.
            costs: (d,) the amount of each resource that was used, 0 or more, in the order of the budget or by name; one
                number for a single resource. None if they are not known yet.

        Raises:
            AlreadyToldError: The decision was settled before, with another outcome, or a part of its outcome was told
                before, with another value.
            UnknownDecisionError: This learner did not make the decision.
            OutcomeError: A skipped round is given a reward or a cost; or neither reward nor costs are given.
            AbsurdCostError: A cost is above the problem's ``cost_limit``. Nothing was changed, and the decision may be
                told again.
            OutOfRangeError: A cost is negative.
            ShapeError: The costs are not one number per resource.
            NamesError: The costs have other names than the resources.
            NotFiniteError: The reward or a cost is NaN or infinite.

        >>> from driftsack.core import Problem
        >>> from driftsack.policies import NaiveUCB
        >>> learner = NaiveUCB().start(Problem(horizon=100, arms=3, budget=20, cost_max=1), seed=0, safe=True)
        >>> decision = learner.ask()
        >>> learner.tell(decision, costs=0.25)  # the bill
        >>> learner.remaining, learner.reserved, len(learner.pending)
        (array([19.75]), array([0.]), 1)
        >>> learner.tell(decision, reward=0.7)  # the reward, hours later
        >>> learner.remaining, learner.pending
        (array([19.75]), ())
        """
        if isinstance(decision, str):
            with self._lock:  # the slot of a decision is used again once it is settled
                decision = self._register.with_id(decision)
        if reward is None or costs is None:
            gain, uses = arguments.part_of(self._engine.problem, reward, costs)
            if self._tell_part(decision, gain, uses):
                shown = np.zeros(self.problem.resources) if uses is None else uses
                self._warnings.outcome(self._engine, f"round {decision.round}", gain or 0.0, shown, stacklevel=2)
            return
        gain, uses = arguments.outcome_of(self._engine.problem, reward, costs)
        if self._settle(decision, gain, uses, True):
            self._warnings.outcome(self._engine, f"round {decision.round}", gain, uses, stacklevel=2)

    def tell_many(
        self, decisions: Decisions, rewards: npt.ArrayLike | None = None, costs: batches.BatchCosts | None = None
    ) -> None:
        """Report the outcomes of several decisions. Equivalent to calling :meth:`tell` for each of them; atomic.

        The same call again changes nothing as long as all of its decisions are among the latest 512 that were settled.
        If a larger batch may have to be repeated, tell it in parts of up to 512.

        Args:
            decisions: The decisions that :meth:`ask_many` returned, or some of them (``decisions[mask]``); skips are
                ignored.
            rewards: (n,) the rewards; None if they are not known yet.
            costs: (n, d) the costs, or (n,) for a single resource; None if they are not known yet. By name, either (n,)
                costs of each resource or one mapping for each decision.

        Raises:
            UnknownDecisionError: This learner did not make a decision.
            AlreadyToldError: A decision was settled before, with another outcome or too long ago to compare.
            ShapeError: The arrays do not have one row for each decision.
            NamesError: The costs have other names than the resources.
            OutOfRangeError: A cost is negative.
            OutcomeError: Neither rewards nor costs are given.
            AbsurdCostError: A cost is above the problem's ``cost_limit``.
        """
        if rewards is None or costs is None:
            decisions, given, paid = batches.checked_parts(self.problem, decisions, rewards, costs)
            if self._tell_parts(decisions, given, paid):
                worst = np.zeros(self.problem.resources) if paid is None else paid.max(axis=0)
                gain = 0.0 if given is None else float(given.max())
                self._warnings.outcome(self._engine, "a round of the batch", gain, worst, stacklevel=2)
            return
        gains, uses = batches.checked_batch(self.problem, decisions, rewards, costs)
        decisions, gains, uses = batches.without_skips(decisions, gains, uses)
        if self._settle_batch(decisions, gains, uses):
            reward = float(gains.min() if gains.min() < 0.0 else gains.max())
            which = f"one of the rounds {decisions.rounds[0]} to {decisions.rounds[-1]}"
            self._warnings.outcome(self._engine, which, reward, uses.max(axis=0), stacklevel=2)

    def cancel(self, decision: Decision, costs: Costs | None = None) -> None:
        """Cancel a decision whose outcome will never arrive; the policy does not learn from it.

        Costs that were told before stay charged. In safe mode the budgets hold only if the costs are known: a request
        that was answered has probably been paid for. If that is not known, :meth:`forfeit` it instead.

        Args:
            decision: The decision that ``ask`` returned.
            costs: (d,) its costs, if they are known, which are charged, as in :meth:`tell`. Nothing is charged if they
                are omitted.

        Raises:
            AlreadyToldError: The decision was settled before, in another way.
            UnknownDecisionError: This learner did not make the decision.
            OutcomeError: A skipped round is given a cost.
            OutOfRangeError: A cost is negative.
            AbsurdCostError: A cost is above the problem's ``cost_limit``.
        """
        known = np.zeros(self.problem.resources) if costs is None else costs
        _, uses = checked_outcome(self.problem, 0.0, known)
        if self._settle(decision, 0.0, uses, False):
            self._warnings.outcome(self._engine, f"round {decision.round}", 0.0, uses, stacklevel=2)

    @guarded
    def forfeit(self, decision: Decision) -> None:
        """Charge a decision whose outcome may never arrive what was reserved for it; the policy does not learn from it.

        With ``safe="statistical"`` it is charged the mean cost of its arm so far, at most its reservation. The outcome
        may still be told, or the decision cancelled: then the difference is settled. If its costs were told, nothing
        more is charged. A learner remembers the latest 10,000 forfeited decisions.

        Args:
            decision: The decision that ``ask`` returned.

        Raises:
            AlreadyToldError: The decision was told or cancelled before.
            UnknownDecisionError: This learner did not make the decision.
            SettingError: Nothing was reserved, because the maximum cost of the arm is not known.
        """
        if getattr(decision, "arm", None) == SKIP and decision.round not in self._register.slots:
            return
        slot = self._register.slot_of(decision, math.nan, [], FORFEITED)
        if slot is not None and self._engine.forfeit(np.array([slot])):
            self._register.find_slots()

    @guarded
    def expire(self, older_than: int | timedelta, at: float | datetime | None = None) -> tuple[Decision, ...]:
        """Forfeit the pending decisions that have waited too long, and return them.

        Args:
            older_than: A number of rounds, or a ``timedelta`` if requests were asked with their time.
            at: The present time, with a ``timedelta``; None for the time of the latest request.

        Raises:
            SettingError: Nothing was reserved for one of them; then none is forfeited.
        """
        if isinstance(older_than, timedelta):
            slots = self._engine.overdue(None, self._clock.now(at) - older_than.total_seconds())
        else:
            slots = self._engine.overdue(whole(older_than, "older_than", at_least=0), math.nan)
        found = tuple(self._register.decision(slot) for slot in slots.tolist())
        if self._engine.forfeit(slots):
            self._register.find_slots()
        return found

    @guarded
    def add_arm(self, name: str, cost_max: Amounts | None = None) -> int:
        """Add an arm and return its number; what was learnt about the others is kept.

        Args:
            name: Its name.
            cost_max: Its maximum cost in each resource, in order or by name; None for the problem's.

        Raises:
            NamesError: There is an arm of this name.
            SettingError: The policy was started for smaller costs, or for a fixed set of arms.
        """
        problem = arguments.with_arm(self.problem, name, cost_max)
        with self._all_or_nothing() as engine:
            engine.add_arm(problem)
        return problem.arms - 1

    @guarded
    def retire_arm(self, arm: str | int) -> None:
        """Stop offering an arm; its decisions can still be told, and :meth:`reopen_arm` offers it again.

        Args:
            arm: Its name or number.

        Raises:
            SettingError: It is the only fallback that is left, which must stay open.
        """
        number, listed = arguments.arm_number(self.problem, arm), self.problem.fallbacks
        if number in listed and not any(self._engine.offered[other] for other in listed if other != number):
            raise SettingError(f"arm {arm!r} is the fallback, which answers every request; it cannot be retired.")
        self._engine.offer(number, offered=False)

    @guarded
    def reopen_arm(self, arm: str | int) -> None:
        """Offer an arm again that was retired.

        Args:
            arm: Its name or number.
        """
        self._engine.offer(arguments.arm_number(self.problem, arm), offered=True)

    @guarded
    def announce(self, arm: str | int, cost_factor: Amounts) -> None:
        """Announce that an arm's costs change now, so that the policy need not detect it.

        Args:
            arm: Its name or number.
            cost_factor: The factor by which its costs change, in order or by name; one number for all resources.

        Raises:
            SettingError: The policy cannot use an announcement.
            OutOfRangeError: A factor is not above 0.
        """
        number = arguments.arm_number(self.problem, arm)
        factors = arguments.factors_of(self.problem, cost_factor)
        with self._all_or_nothing() as engine:
            engine.announce(number, factors)

    def teach(self, log: PastOutcomes, half_life: float | None = None) -> int:
        """Learn from past outcomes as if the learner had made those pulls; no budget is charged.

        Arms and resources are matched by name. Importance-weighted policies use the propensities of the log.

        Args:
            log: A log, as ``ds.logs.read`` returns it, oldest round first.
            half_life: Rounds of the log after which the share of outcomes that are used halves; None uses all of them.

        Returns:
            The number of outcomes that were used.

        Raises:
            SettingError: The policy follows a forecast.
            NamesError: The log has other arms or resources.
        """
        rows = past_rounds(self.policy, self.problem, log, half_life)
        costs = rows.costs[rows.arms != SKIP]
        beyond = (costs > out_of_range.largest_learnt(self._engine)).any(axis=1)
        self._learn(rows, int(beyond.sum()))
        self._warnings.log(self._engine, costs, beyond, stacklevel=2)
        return len(rows.arms)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to one file; :meth:`load` continues from there, bit for bit.

        The file's permissions are kept and symbolic links are followed. The first file that a learner is saved to is
        held for writing, as by :meth:`load`.

        Args:
            path: The file to write. If writing fails, it keeps its previous content.

        Raises:
            FileFormatError: What would be written could not be loaded; nothing is written.
            FileInUseError: Another process holds the file for writing.
        """
        check_target(path)
        held = hold(path)
        with self._lock:
            data = self.to_bytes()
            learner_file.decode(data, "what would be written")  # a file that cannot be loaded is worse than none
            with atomic_write(Path(path)) as stream:
                stream.write(data)
            if self._file is None:
                self._file = held

    @classmethod
    def load(cls, path: str | os.PathLike[str], read_only: bool = False) -> Learner:
        """Read a file that :meth:`save` wrote, and continue bit for bit. The policy's class must have been imported.

        The file is held for writing as long as the learner exists: no other process can load it or save to it
        meanwhile, since each would spend the whole budget. A lock beside it, ``FILE.lock``, names the process.

        Args:
            path: The file.
            read_only: Whether to read the file without holding it, to inspect it while another process uses it.

        Raises:
            FileFormatError: The file is damaged, of another kind or of another version, or a directory.
            FileInUseError: Another process holds the file for writing.
        """
        held = None if flag(read_only, "read_only") else hold(path)
        learner = cls._restored(learner_file.decode(read_bytes(path, learner_file.KIND), str(path)))
        learner._file = held
        return learner

    @classmethod
    def from_bytes(cls, data: bytes) -> Learner:
        """Read what :meth:`to_bytes` returned, and continue bit for bit. The policy's class must have been imported.

        Args:
            data: The bytes.

        Raises:
            FileFormatError: The bytes are damaged, of another kind or of another version.
        """
        return cls._restored(learner_file.decode(data, "the data"))

    @classmethod
    def _restored(cls, snapshot: learner_file.Snapshot) -> Learner:
        """Return a learner from a snapshot that was checked."""
        learner = cls.__new__(cls)
        LearnerCore.__init__(learner, *snapshot)
        return learner

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle through the format of files, which is checked when it is read."""
        return _unpickled, (type(self), self.policy, self.to_bytes())


def _unpickled(cls: type[Learner], policy: Policy, data: bytes) -> Learner:
    """Restore a learner; ``policy`` is pickled too, so that the module that defines it is imported."""
    learner = cls.from_bytes(data)
    if learner.policy != policy:
        raise FileFormatError(f"the pickled learner must be of {policy}, got {learner.policy}.")
    return learner
