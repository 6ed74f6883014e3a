r"""Pacing over windows: dual descent whose primal starts again in every window (cf. Braverman et al. 2025).

The benchmark may play another mix in every window of w rounds, but must spend at most bw of each budget in each window.
Against an adversary no policy has sublinear regret against the best fixed mix over the whole horizon, because it
may have to spend early or late; against this benchmark there is one. The primal, EXP3.P over the arms and SKIP with
the loss :math:`-r_t + q_t^\top c_t`, starts with equal weights in every window; the dual never restarts,

.. math:: q_{t+1} = \Pi\bigl(q_t - \eta\,(b - c_t)\bigr), \qquad \eta = \frac{\mathrm{step}}{b \sqrt{d T (w + 1)}},

with :math:`\{q \ge 0, \|q\|_1 \le 1/b\}` as in :mod:`~driftsack.policies.dual_descent`, whose kernels it uses. Its
steps are small enough for prices to be nearly constant within a window.

*Guarantee* (theorem N8 of docs/theory-new.md, with proof): regret :math:`\tilde O(T \sqrt{m/w}/b + \sqrt{dwT}/b)` in
any environment, the rate of Braverman, Liu, Mao, Schneider and Xue (2025), whose algorithm is another one. O(m + d) per
round, no LP. Late feedback: the outcome of an earlier window moves the prices only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.bounds import RoundNumbers
from driftsack.core.checks import LARGEST_SETTING, above_zero, whole
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import new_exp3p
from driftsack.policies import dual_descent
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """Dual descent and the current window."""

    base: dual_descent.State
    first: RoundNumbers  # (1,) the first round of the window; -1 before the first one
    length: int  # w


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Start a window if one is due, and choose as dual descent does."""
    first = state.first[0]
    if first < 0 or round.t >= first + state.length:
        state.first[0] = round.t
        dual_descent.restart_primal(state.base)
    return dual_descent.choose(state.base, round, rng, mix, prices)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Learn as dual descent does; an outcome of an earlier window moves only the prices."""
    if outcome.t >= state.first[0]:
        dual_descent.learn(state.base, outcome)
    else:
        dual_descent.move_prices(state.base, outcome.costs)


@dataclass(frozen=True)
class WindowPacing(Policy):
    """Dual descent that competes with another mix in every window.

    Attributes:
        window: The length w of the windows in rounds; None for √T, rounded up.
        step: Factor on the dual's step size.

    >>> WindowPacing(window=500).to_spec()
    {'policy': 'WindowPacing', 'window': 500, 'step': 1.0}
    """

    window: int | None = None
    step: float = 1.0

    def __post_init__(self) -> None:
        if self.window is not None:
            object.__setattr__(self, "window", whole(self.window, "window", at_least=1))
        object.__setattr__(self, "step", above_zero(self.step, "step", LARGEST_SETTING))

    @property
    def forgets(self) -> bool:
        """True: the primal starts again in every window."""
        return True

    def window_length(self, problem: Problem) -> int:
        """Return the length of the windows on a problem.

        Args:
            problem: The problem to play.
        """
        length = math.ceil(math.sqrt(problem.horizon)) if self.window is None else self.window
        return min(length, problem.horizon)

    def new_state(self, problem: Problem) -> State:
        """Return the state with equal weights and zero prices."""
        length = self.window_length(problem)
        base = dual_descent.DualDescent().new_state(problem)
        spread = base.rate * math.sqrt(problem.resources * problem.horizon * (length + 1))
        base = base._replace(primal=new_exp3p(problem.arms + 1, length, 1.0 / problem.horizon), step=self.step / spread)
        return State(base=base, first=np.full(1, -1, dtype=np.int64), length=length)
