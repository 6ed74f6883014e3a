r"""LagrangeCBwK with any regression (Slivkins, Zhou, Sankararaman and Foster 2024), in plain Python.

The primal is SquareCB: with estimates :math:`\hat r, \hat c` of a regression and prices q, the value of an arm is
:math:`v_i = \hat r_i - q^\top \hat c_i / b`, skipping has value 0, and every action but the best has probability
:math:`1/(m + 1 + \gamma \sqrt t\, (v^* - v_i))`. The dual takes a step after each round,

.. math:: q_j \leftarrow \max\bigl(0,\, q_j + \eta\, (c_j / b_j - 1)\bigr),

also after a skip, which lowers prices. The step is not from their paper.

A regression is any object with ``partial_fit(X, y)`` and ``predict(X)``, as in scikit-learn, or with
``learn_one(x, y)`` and ``predict_one(x)``, as in river. It learns rewards divided by ``reward_max``, or costs divided
by the budget rate b, and should predict 0 or raise ``NotFittedError`` before its first outcome.

A :class:`~driftsack.Learner` that is offered only the drawn arm handles budgets, rounds, and late and repeated
outcomes. ``simulate`` accepts this policy. It is not compiled and cannot be saved. A round costs 1 + d fits and
m (1 + d) predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from driftsack.core.arrays import Bools, Floats
from driftsack.core.checks import Safe, above_zero, of_type
from driftsack.core.decision import SKIP, Decision, read_only
from driftsack.core.encoder import Context, checked_context
from driftsack.core.errors import NotFiniteError, SettingError
from driftsack.core.names import Amounts, ArmAmounts
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, generator
from driftsack.game.units import checked_outcome
from driftsack.policies.learner.arguments import arm_number, factors_of
from driftsack.policies.learner.learner import Costs, Learner
from driftsack.policies.uniform_random import UniformRandom

INTERFACES = (("partial_fit", "predict"), ("learn_one", "predict_one"))


@dataclass(frozen=True)
class LagrangeCBwK:
    """Inverse gap weighting on any regression, with a dual step.

    Attributes:
        regression: A function without arguments that returns a new regression, one for each outcome of each arm.
        learning_rate: The factor γ; the larger it is, the less often arms with larger gaps are chosen.
        step: The step size η of the dual.

    >>> class Mean:
    ...     total, count = 0.0, 0
    ...     def partial_fit(self, X, y):
    ...         self.total, self.count = self.total + y[0], self.count + 1
    ...     def predict(self, X):
    ...         return [self.total / max(self.count, 1)]
    >>> learner = LagrangeCBwK(Mean).start(Problem(horizon=9, arms=2, budget=3, features=1), seed=0)
    >>> decision = learner.ask(context=[0.5])
    >>> learner.tell(decision, reward=1.0, costs=[0.5])
    >>> learner.prices.round(3).tolist(), learner.remaining.tolist()
    ([0.01], [2.5])
    """

    regression: Callable[[], Any]
    learning_rate: float = 50.0
    step: float = 0.02

    def __post_init__(self) -> None:
        if not callable(self.regression):
            raise SettingError(
                "regression must be a function that returns a new regression, such as SGDRegressor or "
                f"lambda: SGDRegressor(alpha=0.1), got {self.regression!r:.80}."
            )
        above_zero(self.learning_rate, "learning_rate")
        above_zero(self.step, "step")

    def start(self, problem: Problem, seed: Seed = 0, safe: Safe = False) -> LagrangeLearner:
        """Start a learner.

        Args:
            problem: The problem, with features and without a fallback.
            seed: The seed of the learner.
            safe: Whether an arm may be chosen only if every budget covers its maximum cost and the reservations of all
                pending decisions, so that no budget is ever overspent; or ``"statistical"``, as for other policies.

        Raises:
            SettingError: The problem has no features, or a fallback; or the regression cannot learn incrementally.
        """
        of_type(problem, Problem, "problem")
        if not problem.features:
            raise SettingError("LagrangeCBwK uses the features of requests; declare Problem(features=...).")
        if problem.fallback is not None:
            raise SettingError("LagrangeCBwK skips rounds, which a problem with a fallback forbids; use LinearBwK.")
        return LagrangeLearner(self, problem, seed, safe)


class LagrangeLearner:
    """A started ``LagrangeCBwK``; outcomes may arrive late. It must not be shared between threads.

    Attributes:
        policy: The policy that was started.
        problem: The problem it was started on.
        ledger: The learner of budgets and rounds. Call its ``grant``, ``revise`` and ``retire_arm``, but not ``ask``.
        prices: (d,) the dual prices, in units of reward per budget rate.
    """

    def __init__(self, policy: LagrangeCBwK, problem: Problem, seed: Seed, safe: Safe = False) -> None:
        self.policy, self.problem = policy, problem
        self.prices: Floats = np.zeros(problem.resources)
        self.ledger: Learner = UniformRandom().start(problem, seed, safe)  # only ever offered one arm
        self._rng = generator(seed)
        self._draw = self._rng.random()  # uniform draw of the next round, so that a failed ask changes nothing
        outcomes = range(1 + problem.resources)
        self._models = [[_checked(policy.regression()) for _ in outcomes] for _ in problem.arm_names]
        if len({id(model) for models in self._models for model in models}) < problem.arms * len(outcomes):
            raise SettingError(
                "regression must return a new object in each call, because every outcome of every arm has its own, got "
                f"the same object again: {self._models[0][0]!r:.80}."
            )
        self._factors = np.ones((problem.arms, problem.resources))  # announced cost factors
        self._pulls = np.zeros(problem.arms)
        self._awaited: dict[int, tuple[Decision, Floats]] = {}  # decision and its cost factors, by round
        rate = np.asarray(problem.budget) / problem.horizon
        self._aim = (rate > 0.0).astype(np.float64)  # target spending of a round
        self._unit = np.where(rate > 0.0, rate, problem.cost_max)  # unit of costs
        self._price_unit = problem.reward_max / self._unit

    @property
    def round(self) -> int:
        """The number of rounds that have begun."""
        return self.ledger.round

    @property
    def remaining(self) -> Floats:
        """(d,) the remaining budget of each resource, as in :class:`~driftsack.Learner`."""
        return self.ledger.remaining

    @property
    def done(self) -> bool:
        """Whether ``ask`` would raise: the horizon is reached or a budget is exceeded."""
        return self.ledger.done

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions whose outcome has not arrived, oldest first."""
        return tuple(self._awaited[decision.round][0] for decision in self.ledger.pending)

    def ask(
        self,
        open: Sequence[str] | Sequence[int] | Bools | None = None,  # noqa: A002
        caps: ArmAmounts | None = None,
        at: float | datetime | None = None,
        context: Context | None = None,
    ) -> Decision:
        """Start a round and choose an arm, or skip.

        Args:
            open: The arms that this request may use, as in :meth:`driftsack.Learner.ask`.
            caps: The request's maximum cost, as in :meth:`driftsack.Learner.ask`.
            at: The time of the request, as in :meth:`driftsack.Learner.ask`.
            context: (n,) the features of the request.

        Raises:
            HorizonReachedError: All rounds have begun.
            BudgetExhaustedError: A budget is exceeded.
            SettingError: There is no context; or see :meth:`driftsack.Learner.ask`.
        """
        if context is None:
            raise SettingError("LagrangeCBwK needs the features of each request, got none; pass context=... to ask.")
        # Draw an arm or SKIP (the last index), and let the ledger begin a round with that arm only.
        x = checked_context(self.problem.encoder, self.problem.features, context)
        chances = self._chances(x, self.ledger.admissible(open, caps))
        drawn = int(np.searchsorted(chances.cumsum(), self._draw * chances.sum(), side="right"))
        made = self.ledger.ask(np.arange(self.problem.arms) == drawn, caps, at, x)
        decision = replace(made, mix=read_only(chances[:-1]), prices=read_only(self.prices * self._price_unit))
        self._draw = self._rng.random()
        if decision.arm == SKIP:
            self._move(np.zeros(self.problem.resources))
        else:
            self._pulls[decision.arm] += 1
            self._awaited[decision.round] = decision, self._factors[decision.arm].copy()
        return decision

    def tell(self, decision: Decision, reward: float, costs: Costs) -> None:
        """Report the outcome of a decision, in any order; repeating a call has no effect.

        Args:
            decision: The decision that ``ask`` returned.
            reward: The reward, in the problem's units.
            costs: The costs, in order or by name.

        Raises:
            AlreadyToldError: The decision was already settled with a different outcome.
            UnknownDecisionError: This learner did not make the decision.
        """
        gain, uses = checked_outcome(self.problem, reward, costs)
        self.ledger.tell(_forced(decision), gain, uses)
        own, factors = self._awaited.pop(decision.round, (None, uses))
        if own is None or own.context is None:  # a skipped round, or a repeated call
            return
        outcomes = [gain / self.problem.reward_max, *(uses / self._unit / factors).tolist()]
        for model, value in zip(self._models[own.arm], outcomes, strict=True):
            _fit(model, own.context, value)
        self._move(uses / self._unit)

    def cancel(self, decision: Decision, costs: Costs | None = None) -> None:
        """Cancel a decision whose outcome will never arrive; nothing is learnt from it.

        Args:
            decision: The decision that ``ask`` returned.
            costs: Its costs if known; they are charged.
        """
        self.ledger.cancel(_forced(decision), costs)
        self._awaited.pop(decision.round, None)

    def forfeit(self, decision: Decision) -> None:
        """Charge the reservation of a decision whose outcome may never arrive; ``tell`` remains possible.

        Args:
            decision: The decision that ``ask`` returned.
        """
        self.ledger.forfeit(_forced(decision))

    def announce(self, arm: str | int, cost_factor: Amounts) -> None:
        """Announce that the costs of an arm change now.

        Args:
            arm: The arm, by name or number.
            cost_factor: The factor on its future costs, in order or by name; a single number applies to all resources.
        """
        self._factors[arm_number(self.problem, arm)] *= factors_of(self.problem, cost_factor)

    def _chances(self, x: Floats, is_open: Bools) -> Floats:
        """Return the probabilities (m + 1,) of the arms and, last, of ``SKIP``; 0 for closed arms."""
        chances = np.zeros(self.problem.arms + 1)
        # Pull every arm once.
        untried = np.flatnonzero(is_open & (self._pulls == 0))
        if untried.size:
            chances[untried[0]] = 1.0
            return chances
        # Inverse gap weighting over the open arms and SKIP.
        actions = np.append(np.flatnonzero(is_open), self.problem.arms)
        values = np.array([self._value(arm, x) for arm in actions.tolist()])
        best, rate = int(values.argmax()), self.policy.learning_rate * math.sqrt(self.round + 1.0)
        chances[actions] = 1.0 / (values.size + rate * (values[best] - values))
        chances[actions[best]] += 1.0 - chances.sum()
        return chances

    def _value(self, arm: int, x: Floats) -> float:
        """Return the estimated reward of an arm minus its priced costs; 0 for ``SKIP``, the last index."""
        if arm == self.problem.arms:
            return 0.0
        gain, *uses = (_predict(model, x) for model in self._models[arm])
        return float(gain - self.prices @ (np.array(uses) * self._factors[arm]))

    def _move(self, used: Floats) -> None:
        """Make a dual step with normalised costs (d,)."""
        self.prices = np.maximum(self.prices + self.policy.step * (used - self._aim), 0.0)


def _forced(decision: Any) -> Any:
    """Return a decision with the mix that the ledger recorded, which has a single arm."""
    if not isinstance(decision, Decision):
        return decision  # the ledger rejects it
    return replace(decision, mix=read_only((np.arange(decision.mix.size) == decision.arm).astype(np.float64)))


def _checked(model: Any) -> Any:
    """Return a regression after checking that it can learn one outcome at a time."""
    if not any(all(hasattr(model, name) for name in names) for names in INTERFACES):
        raise SettingError(
            "regression must return an object with partial_fit and predict, or with learn_one and predict_one, got "
            f"{model!r:.80}."
        )
    return model


def _fit(model: Any, x: Floats, value: float) -> None:
    """Fit one outcome, through the interface of river or scikit-learn."""
    if hasattr(model, "learn_one"):
        model.learn_one(dict(enumerate(x.tolist())), value)
    else:
        model.partial_fit(x[None], np.array([value]))


def _predict(model: Any, x: Floats) -> float:
    """Predict an outcome; 0 before the first fit."""
    try:
        river = hasattr(model, "predict_one")
        value = float(model.predict_one(dict(enumerate(x.tolist()))) if river else model.predict(x[None])[0])
    except Exception as error:
        if type(error).__name__ == "NotFittedError":  # before its first outcome
            return 0.0
        raise
    if not math.isfinite(value):
        raise NotFiniteError(f"regression must predict finite numbers, got {value} from {model!r:.80}; lower its rate.")
    return value
