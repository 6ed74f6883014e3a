"""``Learner``: a policy started on a problem. Ask for a decision, act on it, and tell the outcome."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core import file_format
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
    UnknownDecisionError,
)
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, generator
from driftsack.game.ledger import admits, charge, is_broken, open_ledger, release, reported_spending, reserve
from driftsack.game.protocol import STUCK, callable_kernel
from driftsack.game.records import new_outcome, new_terms, open_round
from driftsack.game.state_tree import arrays, solve_stuck
from driftsack.game.units import normalised_outcome, prices_in_units, units_of
from driftsack.numerics.compiled import source
from driftsack.policies.pending import PendingArrays
from driftsack.policies.policy import Policy, from_spec

_LAYOUT = 3  # of the file
_open_round, _new_outcome = source(open_round), source(new_outcome)  # in Python


class Learner:
    """Ask and tell in the problem's units; safe to share between threads.

    Each ``ask`` begins a round, whether or not the outcomes of earlier rounds have arrived: feedback may arrive late
    and out of order, and counts for the round it belongs to. A ``SKIP`` needs no ``tell``.

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
        self._lock = threading.Lock()  # kernels release the GIL, and two threads must not use one state at once
        self._rng = generator(seed)
        self._state = policy.new_state(problem)
        self._choose, self._learn = callable_kernel(self._state, "choose"), callable_kernel(self._state, "learn")
        self._ledger, self._terms, self._units = open_ledger(problem.unit_budget), new_terms(problem), units_of(problem)
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
        left: Floats = self._ledger.budget - reported_spending(self._ledger)
        left *= self._units.costs
        return left

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
        with self._lock:
            return self._ask()

    def _ask(self) -> Decision:
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
        arm = self._chosen(mix, unit_prices)
        if self.safe and not admits(self._ledger):
            arm = SKIP
            mix[:] = 0.0
        if arm == SKIP:
            no_costs = np.zeros(problem.resources)
            skipped = _new_outcome(self._terms, self._round, SKIP, float(1.0 - mix.sum()), 0.0, no_costs)
            self._learn(self._state, skipped)
        self._round += 1
        decision = Decision(self._round, arm, mix, prices_in_units(self._units, unit_prices), self._names[arm])
        if arm != SKIP:
            reserve(self._ledger)
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
        with self._lock:
            own = self._own(decision)
            if own is None:
                if gain != 0.0 or uses.any():
                    raise OutcomeError(
                        f"round {decision.round} was skipped: its reward and costs must be 0, "
                        f"got reward {reward} and costs {uses}; a SKIP needs no tell."
                    )
                return
            probability = float(own.mix[own.arm])
            self._learn(self._state, _new_outcome(self._terms, own.round - 1, own.arm, probability, gain, uses))
            self._settle(own, uses)

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
        with self._lock:
            own = self._own(decision)
            if own is not None:
                self._settle(own, uses)
            elif uses.any():
                raise OutcomeError(
                    f"round {decision.round} was skipped: its costs are 0, got {uses * self._units.costs}."
                )

    def _settle(self, own: Decision, uses: Floats) -> None:
        """Charge a pending decision and release its reservation."""
        charge(self._ledger, uses)
        release(self._ledger)
        del self._pending[own.round]

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

        Args:
            path: The file to write. If writing fails, it keeps its previous content.
        """
        with self._lock:
            content = {
                "policy": self.policy.to_spec(),
                "problem": self.problem.to_dict(),
                "safe": self.safe,
                "round": self._round,
                "fallbacks": self._fallbacks,
                "rng": self._rng.bit_generator.state,
            }
            pending = PendingArrays.of(self.pending, self.problem)
            stored = self._arrays() | arrays(pending, "pending")
            file_format.write(path, "learner", _LAYOUT, content, stored)

    def _check_progress(self) -> None:
        """Raise unless the round and the pending decisions that were read are possible."""
        if not 0 <= self._round <= self.problem.horizon:
            raise ValueError(f"the round must lie in [0, {self.problem.horizon}], got {self._round}")
        for decision in self._pending.values():
            if not (1 <= decision.round <= self._round and 0 <= decision.arm < self.problem.arms):
                raise ValueError(f"round {decision.round} with arm {decision.arm} cannot be pending")

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Every array that makes up state and ledger; reservations follow from the pending decisions."""
        found = arrays(self._state, "state") | arrays(self._ledger, "ledger")
        del found["ledger.reserved"]
        return found

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Learner:
        """Read a file that :meth:`save` wrote. The policy's class must have been imported.

        Args:
            path: The file.

        Returns:
            A learner that continues where the saved one stopped, bit for bit.

        Raises:
            FileFormatError: The file is damaged, of another kind or of another version.
        """
        content, stored = file_format.read(path, "learner", _LAYOUT)
        try:
            learner = cls(from_spec(content["policy"]), Problem(**content["problem"]), safe=content["safe"])
            learner._round, learner._fallbacks = int(content["round"]), int(content["fallbacks"])
            waiting = PendingArrays(*(stored.pop(f"pending.{field}") for field in PendingArrays._fields))
            learner._pending = {d.round: d for d in waiting.decisions(learner.problem.arm_names)}
            learner._check_progress()
            learner._ledger.reserved[:] = float(len(learner._pending))
            learner._rng.bit_generator.state = content["rng"]
            targets = learner._arrays()
            if targets.keys() != stored.keys():
                raise ValueError(f"expected arrays {sorted(targets)}, got {sorted(stored)}")
            for name, target in targets.items():
                if stored[name].shape != target.shape or stored[name].dtype != target.dtype:
                    raise ValueError(f"array {name} has another shape or type than this problem needs")
                target[...] = stored[name]
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path} holds a learner that is inconsistent: {error}") from error
        return learner
