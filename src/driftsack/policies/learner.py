"""``Learner``: a policy started on a problem. Ask for a decision, act on it, and tell the outcome."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.checks import flag
from driftsack.core.decision import SKIP, Decision
from driftsack.core.errors import (
    AlreadyToldError,
    BudgetExhaustedError,
    FileFormatError,
    HorizonReachedError,
    OutcomeError,
    OutOfRangeError,
    ReentrantCallError,
    UnknownDecisionError,
)
from driftsack.core.file_format import atomic_write, check_target, read_bytes
from driftsack.core.locks import HeldFile, has_taken, hold, thread_lock
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, generator
from driftsack.game.admission import admit
from driftsack.game.ledger import amounts_of, is_broken, open_ledger, release, reserve
from driftsack.game.protocol import STUCK, callable_kernel
from driftsack.game.records import new_outcome, new_terms, open_round
from driftsack.game.settle import settle_kernel, settle_unlearnt
from driftsack.game.state_tree import solve_stuck
from driftsack.game.units import normalised_outcome, prices_in_units, units_of
from driftsack.numerics.compiled import source
from driftsack.policies import learner_file
from driftsack.policies.learner_file import Snapshot
from driftsack.policies.policy import Policy

_open_round, _new_outcome = source(open_round), source(new_outcome)  # in Python


class Learner:
    """Ask and tell in the problem's units; safe to share between threads and to save in a signal handler.

    Each ``ask`` begins a round, whether or not the outcomes of earlier rounds have arrived: feedback may arrive late
    and out of order, and counts for the round it belongs to. A ``SKIP`` needs no ``tell``.

    A signal handler may save a learner at any time, also while the thread that it interrupts asks or tells. A child of
    ``fork`` has a copy of the learner, with a budget of its own. ``copy.deepcopy`` and ``pickle`` make such copies.

    Attributes:
        policy: The policy that was started.
        problem: The problem that it was started on.
        safe: Whether a round is skipped unless every budget covers the highest cost of that round and of all pending
            decisions. Then no budget is ever overspent: instead of exceeding a budget, the learner skips until the
            horizon.

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

    def __init__(self, policy: Policy, problem: Problem, seed: Seed = 0, safe: bool = False) -> None:
        """Start a policy; ``policy.start(problem)`` is the usual way.

        Args:
            policy: The policy.
            problem: The problem.
            seed: Seed of the learner's own randomness.
            safe: See the class.
        """
        self.policy = policy
        self.problem = problem
        self.safe = flag(safe, "safe")
        self._lock = thread_lock()  # kernels release the GIL, and two threads must not use one state at once
        self._busy = False  # whether the thread that has the lock is changing the learner
        self._file: HeldFile | None = None  # the lock of the file that the learner was loaded from or first saved to
        self._rng = generator(seed)
        self._state = policy.new_state(problem)
        self._choose, self._settle = callable_kernel(self._state, "choose"), settle_kernel(self._state)
        self._settled = np.full(1, -1, dtype=np.int64)  # the latest round that was settled, from 0
        self._ledger, self._terms, self._units = open_ledger(problem), new_terms(problem), units_of(problem)
        self._names = (*problem.arm_names, None)  # the last is that of SKIP
        self._round = 0
        self._fallbacks = 0
        self._pending: dict[int, Decision] = {}  # decisions whose outcome has not arrived, by round

    @property
    def round(self) -> int:
        """The number of rounds that have begun: 0 before the first ``ask``, T after the last."""
        return self._round

    @property
    def remaining(self) -> Floats:
        """(d,) the remaining budget of each resource; negative if it was exceeded."""
        return amounts_of(self._ledger, self._ledger.granted - self._ledger.charged)

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions whose outcome has not arrived, oldest first; a loaded learner has them too."""
        decisions = list(self._pending.values())  # atomic, so other threads may ask and tell meanwhile
        return tuple(sorted(decisions, key=lambda decision: decision.round))

    @property
    def done(self) -> bool:
        """Whether ``ask`` would raise: the horizon is reached or a budget is exceeded."""
        return self._round >= self.problem.horizon or is_broken(self._ledger)

    def __repr__(self) -> str:
        problem = self.problem
        names = [f"{name} " if problem.named_resources else "" for name in problem.resource_names]
        left = ", ".join(f"{name}{amount:g}" for name, amount in zip(names, self.remaining, strict=True))
        pending = f", {len(self._pending)} pending" if self._pending else ""
        return f"Learner({self.policy}, round {self._round} of {problem.horizon}, remaining [{left}]{pending})"

    @property
    def state(self) -> Any:
        """The state of the policy, for inspection; do not modify it, because kernels use it."""
        return self._state

    @property
    def fallbacks(self) -> int:
        """The number of step LPs solved by HiGHS because the built-in simplex could not certify its solution."""
        return self._fallbacks

    def ask(self) -> Decision:
        """Begin the next round and choose an arm or to skip.

        Returns:
            The decision. Pass it to ``tell`` or ``cancel`` later, unless it is to skip.

        Raises:
            HorizonReachedError: All rounds have begun.
            BudgetExhaustedError: A budget is exceeded.
        """
        nested = has_taken(self._lock)
        with self._lock:
            self._refuse(nested, "ask")
            try:
                self._busy = True
                return self._ask()
            except BaseException:
                self._count_reservations()
                raise
            finally:
                self._busy = False

    def _refuse(self, nested: bool, method: str) -> None:
        """Raise if a signal handler calls a method that would change what the interrupted call is changing."""
        if nested and self._busy:
            raise ReentrantCallError(
                f"{method} was called by a signal handler that interrupted a call of this learner; a handler may "
                "save the learner, or set a flag after which the interrupted code continues."
            )

    def _count_reservations(self) -> None:
        """Set the reservations to those of the pending decisions, after a call that was interrupted."""
        self._ledger.reserved[:] = 0
        for decision in self._pending.values():
            reserve(self._ledger, self._terms.worst, decision.arm)

    def _finish_interrupted(self) -> None:
        """Complete a call that was interrupted after its round had been settled."""
        self._round = self._begun()
        own = self._pending.get(int(self._settled[0]) + 1)
        if own is not None:
            self._close(own)

    def _begun(self) -> int:
        """The rounds that have begun, with one whose skip was settled before the call was interrupted."""
        return self._round + bool(self._settled[0] == self._round)

    def _ask(self) -> Decision:
        self._finish_interrupted()
        problem = self.problem
        if self._round >= problem.horizon:
            raise HorizonReachedError(
                f"the problem has {problem.horizon} rounds and all have begun; start a new learner for a new problem."
            )
        if is_broken(self._ledger):
            raise BudgetExhaustedError(
                f"a budget is exceeded (remaining: {self.remaining}), so round {self._round + 1} cannot begin; "
                "stop here, or start with safe=True so that no budget is exceeded."
            )
        mix, unit_prices = np.zeros(problem.arms), np.zeros(problem.resources)
        admit(self._ledger, self._terms, self._round, self.safe)
        arm = self._chosen(mix, unit_prices)
        if arm == SKIP:
            no_costs = np.zeros(problem.resources)
            skipped = _new_outcome(self._terms, self._round, SKIP, float(1.0 - mix.sum()), 0.0, no_costs)
            self._settle(self._state, self._ledger, skipped, no_costs, self._settled)
        self._round += 1
        decision = Decision(self._round, arm, mix, prices_in_units(self._units, unit_prices), self._names[arm])
        if arm != SKIP:
            reserve(self._ledger, self._terms.worst, arm)
            self._pending[self._round] = decision
        return decision

    def _chosen(self, mix: Floats, prices: Floats) -> int:
        """The arm that the policy chooses; HiGHS solves its LP if necessary."""
        round = _open_round(self._round, self._ledger, self._terms)
        arm: int = self._choose(self._state, round, self._rng, mix, prices)
        if arm == STUCK:
            self._fallbacks += solve_stuck(self._state)
            warnings.warn(f"the step LP of round {self._round + 1} was solved by HiGHS.", RuntimeWarning, stacklevel=4)
            arm = self._choose(self._state, round, self._rng, mix, prices)
        if not SKIP <= arm < self.problem.arms:
            raise OutOfRangeError(
                f"choose of {self.policy} must return an arm in [0, {self.problem.arms - 1}] or SKIP (-1), and STUCK "
                f"(-2) at most once; in round {self._round + 1} it returned {arm}."
            )
        return arm

    def tell(self, decision: Decision, reward: float, costs: npt.ArrayLike | Mapping[str, float]) -> None:
        """Report the outcome of a decision; once for each decision, in any order.

        Args:
            decision: What ``ask`` returned.
            reward: The reward in the problem's units, between 0 and ``reward_max``.
            costs: (d,) what was used of each resource, between 0 and ``cost_max``, in the order of the budget or by
                name; one number for a single resource.

        Raises:
            AlreadyToldError: The outcome of the decision was reported before.
            UnknownDecisionError: This learner did not make the decision.
            OutcomeError: A skipped round is given a reward or a cost.
            OutOfRangeError: The reward or a cost is negative or above its maximum.
            ShapeError: The costs are not one number per resource.
            NamesError: The costs have other names than the resources.
            NotFiniteError: The reward or a cost is NaN or infinite.
        """
        gain, uses = normalised_outcome(self.problem, self._units, reward, costs)
        nested = has_taken(self._lock)
        with self._lock:
            self._refuse(nested, "tell")
            own = self._own(decision)
            if own is None:
                if gain != 0.0 or uses.any():
                    raise OutcomeError(
                        f"round {decision.round} was skipped: its reward and costs must be 0, "
                        f"got reward {reward} and costs {uses}; a SKIP needs no tell."
                    )
                return
            probability = float(own.mix[own.arm])
            outcome = _new_outcome(self._terms, own.round - 1, own.arm, probability, gain, uses)
            self._settle_once(own, self._settle, (self._state, self._ledger, outcome, uses, self._settled))

    def cancel(self, decision: Decision, costs: npt.ArrayLike | Mapping[str, float] | None = None) -> None:
        """Cancel a decision whose outcome will never arrive; the policy does not learn from it.

        Args:
            decision: What ``ask`` returned.
            costs: (d,) its costs, if they are known, which are charged, as in :meth:`tell`. Nothing is charged if they
                are omitted.

        Raises:
            AlreadyToldError: The outcome of the decision was reported before.
            UnknownDecisionError: This learner did not make the decision.
            OutcomeError: A skipped round is given a cost.
            OutOfRangeError: A cost is negative or above ``cost_max``.
        """
        known = np.zeros(self.problem.resources) if costs is None else costs
        _, uses = normalised_outcome(self.problem, self._units, 0.0, known)
        nested = has_taken(self._lock)
        with self._lock:
            self._refuse(nested, "cancel")
            own = self._own(decision)
            if own is not None:
                self._settle_once(own, settle_unlearnt, (self._ledger, own.round - 1, uses, self._settled))
            elif uses.any():
                raise OutcomeError(
                    f"round {decision.round} was skipped: its costs are 0, got {uses * self._units.costs}."
                )

    def _settle_once(self, own: Decision, kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Settle a pending decision, unless a call that was interrupted has done so, and forget it."""
        try:
            self._busy = True
            if self._settled[0] != own.round - 1:
                self._finish_interrupted()
                kernel(*arguments)
            self._close(own)
        except BaseException:
            self._count_reservations()
            raise
        finally:
            self._busy = False

    def _close(self, own: Decision) -> None:
        """Forget a pending decision that was settled, and release its reservation."""
        del self._pending[own.round]
        release(self._ledger, self._terms.worst, own.arm)

    def _own(self, decision: Decision) -> Decision | None:
        """This learner's pending decision, or None for a SKIP; raise an error if there is neither."""
        if not isinstance(decision, Decision):
            raise UnknownDecisionError(f"tell needs the Decision that ask returned, got {decision!r:.80}.")
        if not 1 <= decision.round <= self._round:
            raise UnknownDecisionError(
                f"this learner has begun rounds 1 to {self._round}, got a decision of round {decision.round}; "
                "tell the learner that was asked."
            )
        own = self._pending.get(decision.round)
        if own is None:
            if decision.arm == SKIP:
                return None
            raise AlreadyToldError(
                f"round {decision.round} has no pending outcome: it was reported, or skipped; tell each decision once."
            )
        if own is not decision and (own.arm != decision.arm or not np.array_equal(own.mix, decision.mix)):
            raise UnknownDecisionError(
                f"round {decision.round} was a decision for arm {own.arm} with mix {own.mix}, "
                f"got one for arm {decision.arm} with mix {decision.mix}; tell the learner that was asked."
            )
        return own

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to one file; :meth:`load` continues from there, bit for bit.

        The file's permissions are kept and symbolic links are followed. The first file that a learner is saved to is
        held for writing, as by :meth:`load`.

        Args:
            path: The file to write. If writing fails, it keeps its previous content.

        Raises:
            FileInUseError: Another process holds the file for writing.
        """
        check_target(path)
        held = hold(path)
        with self._lock:
            data = self.to_bytes()
            with atomic_write(Path(path)) as stream:
                stream.write(data)
            if self._file is None:
                self._file = held

    def to_bytes(self) -> bytes:
        """Return what :meth:`save` writes; :meth:`from_bytes` reads it.

        Returns:
            The learner as bytes.
        """
        with self._lock:
            return learner_file.encode(self._snapshot())

    def state_hash(self) -> str:
        """Return a digest of everything that the learner consists of.

        Learners with equal digests decide the same from now on, if they are told the same.

        Returns:
            The digest, 64 hexadecimal digits.
        """
        with self._lock:
            return learner_file.state_hash(self._snapshot())

    def _snapshot(self) -> Snapshot:
        """What the learner consists of; a call that a signal interrupted counts once its round is settled."""
        settled = int(self._settled[0]) + 1
        pending = tuple(decision for decision in self.pending if decision.round != settled)
        rng: dict[str, Any] = dict(self._rng.bit_generator.state)
        return Snapshot(
            self.policy,
            self.problem,
            self.safe,
            self._begun(),
            self._fallbacks,
            rng,
            pending,
            self._state,
            self._ledger,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], read_only: bool = False) -> Learner:
        """Read a file that :meth:`save` wrote. The policy's class must have been imported.

        The file is held for writing as long as the learner exists: no other process can load it or save to it
        meanwhile, since each would spend the whole budget. A lock beside it, ``FILE.lock``, names the process.

        Args:
            path: The file.
            read_only: Whether to read the file without holding it, to inspect it while another process uses it.

        Returns:
            A learner that continues where the saved one stopped, bit for bit.

        Raises:
            FileFormatError: The file is damaged, of another kind or of another version.
            FileInUseError: Another process holds the file for writing.
        """
        held = None if flag(read_only, "read_only") else hold(path)
        learner = cls._restored(learner_file.decode(read_bytes(path, learner_file.KIND), str(path)))
        learner._file = held
        return learner

    @classmethod
    def from_bytes(cls, data: bytes) -> Learner:
        """Read what :meth:`to_bytes` returned. The policy's class must have been imported.

        Args:
            data: The bytes.

        Returns:
            A learner that continues where the other one was, bit for bit.

        Raises:
            FileFormatError: The bytes are damaged, of another kind or of another version.
        """
        return cls._restored(learner_file.decode(data, "the data"))

    @classmethod
    def _restored(cls, snapshot: Snapshot) -> Learner:
        """A learner from a snapshot that was checked."""
        learner = cls(snapshot.policy, snapshot.problem, safe=snapshot.safe)
        learner._round, learner._fallbacks = snapshot.round, snapshot.fallbacks
        learner._pending = {decision.round: decision for decision in snapshot.pending}
        learner._rng.bit_generator.state = snapshot.rng
        learner._state, learner._ledger = snapshot.state, snapshot.ledger
        learner._count_reservations()
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
