r"""MASTER (Wei and Luo 2021) over LP(UCB, LCB): learners at many time scales, and two tests that restart them.

Time is divided into blocks n = 0, 1, 2, ... of :math:`2^n` rounds. In round :math:`\tau = 0, \dots, 2^n - 1` of a
block, for each order :math:`k \le n` with :math:`2^k \mid \tau`, a fresh learner of order k is started with probability
:math:`\rho(2^n)/\rho(2^k) = 2^{-(n-k)/2}` for :math:`2^k` rounds. The learner of lowest order is active: it chooses and
learns while the others wait. A learner is UCB without a window (:mod:`driftsack.policies.naive_ucb`); its LP's value
:math:`\tilde g_t` is an optimistic value of the round; :math:`U_t` is its minimum in this block so far, at prices q.
With

.. math:: \rho(L) = (1 + sR) \sqrt{m/L}, \qquad \hat\rho(L) = c \cdot 6 (\log_2 T + 1) \ln(T^2)\, \rho(L),

s the ``scale`` of the radius R, the block ends and block n = 0 starts again if one of these tests fires (c is
``constant``, 1 in the theory):

1. *The environment improved*: a learner of order k has ended and in its :math:`L = 2^k` rounds

   .. math:: \frac{1}{L} \sum (r - q^\top (c - b)) \ge U_t + 9 \hat\rho(L) (1 + \|q\|_1) .

2. *The environment became worse*: over the block's L rounds so far, with a the pulled arm,
   :math:`\frac{1}{L} \sum (\mathrm{UCB}_a - r) \ge 3 \hat\rho(L)` or, mirrored for a resource j,
   :math:`\frac{1}{L} \sum (c_j - \mathrm{LCB}_{j,a}) \ge 3 \hat\rho(L)`.

Test 1 prices the use of resources because a young learner, whose lower bounds on costs are loose, overspends and so
earns more than any LP at the rate b. In a stationary environment the priced reward is at most the dual function at q,
which for optimistic means is :math:`U_t`, so overspending does not make the test fire. The simple mirrored test, a mean
cost below an optimistic one, would fire whenever two learners prefer different arms. Test 2 uses the arm's bounds;
their mean over the mix is :math:`\tilde g_t`.

*Guarantee*: without budgets, :math:`\tilde O(\min(\sqrt{m \Upsilon T},\; m^{1/3} V^{1/3} T^{2/3} + \sqrt{mT}))` without
knowing the number of changes or V. *No guarantee with budgets is known.* With c = 1 no test can fire at practical
horizons (:math:`\hat\rho(L) < 1` needs :math:`L \gg 10^6`); the default makes them fire at :math:`10^4`. A round costs
as much as in UCB, plus the occasional copy of a learner; memory is O((md + d²) log T). Feedback that arrives after
its block, or belongs to a round before the active learner was started, is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import Counts, RoundNumbers, index_of, round_from, within
from driftsack.core.checks import LARGEST_FLOAT, LARGEST_SETTING, above_zero
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.policies import sliding_window_ucb as ucb
from driftsack.policies.parts.estimates import Estimates
from driftsack.policies.parts.memory import Memory, pack, repeat, restore, save, snapshot, states_in
from driftsack.policies.parts.pacing import FIXED
from driftsack.policies.parts.radius import check_radius_settings, new_radius
from driftsack.policies.policy import Policy
from driftsack.theory.windows import radius_constant


class Schedule(NamedTuple):
    """The current block and its learners."""

    order: Annotated[Ints, index_of("ends")]  # (1,) n of the block
    first: Annotated[Ints, round_from(0)]  # (1,) first round of the block
    latest: RoundNumbers  # (1,) the round that the schedule was last advanced to; -1 before the first
    restarts: Ints  # (1,) number of restarts
    begun: Annotated[Ints, round_from(0)]  # (orders,) first round of the learner of each order
    ends: Counts  # (orders,) the round after its last; at most the current round if there is no learner
    active: Annotated[Ints, index_of("ends", least=-1)]  # (1,) the order of the active learner

    def check(self) -> None:
        """Raise unless the learner of the block's order lasts until the block ends."""
        n = self.order[0]
        if self.latest[0] >= 0 and not (
            0 <= self.active[0] <= n and self.first[0] <= self.latest[0] and self.ends[n] == self.first[0] + (1 << n)
        ):
            raise ValueError("the schedule has a block without a learner")


class ChangeStatistics(NamedTuple):
    """The statistics of the tests since the block began."""

    earned: Floats  # (orders, 1 + d) since each learner was started: rewards, and costs minus the rate
    gaps: Floats  # (1 + d,) sums of UCB - r and c - LCB
    least: Annotated[Floats, within(-LARGEST_FLOAT, np.inf)]  # (1 + d,) U_t and the prices of its LP


class State(NamedTuple):
    """The active learner, the waiting ones, the schedule and the tests."""

    base: ucb.State  # the active learner, in ``memory``
    memory: Memory
    initial: Memory  # (1, ...) the memory before a learner's first round, read-only
    waiting: Memory  # (orders, ...) the waiting learners
    schedule: Schedule
    evidence: ChangeStatistics
    width: float  # rho-hat(L) sqrt(L)

    def nested(self) -> Iterator[Any]:
        """Iterate over the states of the waiting learners."""
        return states_in(self.waiting, self.base, self.memory)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Run the tests, advance the schedule and let the active learner choose."""
    least = state.evidence.least
    # Once per round: advance the schedule; evidence counts costs minus the rate.
    if round.t > state.schedule.latest[0]:
        advance(state, round.t, rng)
        for k in range(state.schedule.order[0] + 1):
            for j in range(prices.size):
                state.evidence.earned[k, 1 + j] -= round.rate[j]
    ucb.update_bounds(state.base, round, rng)
    # U_t is the smallest optimistic value of the block.
    arm = ucb.choose(state.base, round, rng, mix, prices)
    if arm != STUCK:
        value = ucb.optimistic_value(state.base, round)
        if value < least[0]:
            least[0] = value
            for j in range(prices.size):
                least[1 + j] = prices[j]
    return arm


@kernel
def advance(state: State, t: int, rng: Generator) -> None:
    """Run the tests, start a new block if one fires or the block is over, and start and activate learners."""
    schedule = state.schedule
    n = schedule.order[0]
    played = t - schedule.first[0]
    # Restart at order 0 if a test fires; double the block length if the block is over.
    if schedule.latest[0] < 0:
        open_block(state, 0, t)
    elif became_worse(state, played) or improved(state, t):
        schedule.restarts[0] += 1
        open_block(state, 0, t)
    elif played >= 1 << n:
        open_block(state, min(n + 1, schedule.ends.size - 1), t)
    schedule.latest[0] = t
    # Start learners of each order k at multiples of 2^k, with probability 2^(-(n - k) / 2).
    n, step = schedule.order[0], t - schedule.first[0]
    for k in range(n, -1, -1):
        if step & ((1 << k) - 1) == 0 and (k == n or rng.random() < 2.0 ** (-0.5 * (n - k))):
            start_learner(state, k, t)
    activate_lowest(state, t)


@kernel
def open_block(state: State, n: int, t: int) -> None:
    """Start a block of order ``n`` in round ``t``, without learners or evidence."""
    state.schedule.order[0] = n
    state.schedule.first[0] = t
    state.schedule.ends[:] = t
    state.schedule.active[0] = -1
    state.evidence.gaps[:] = 0.0
    state.evidence.least[:] = 0.0
    state.evidence.least[0] = np.inf


@kernel
def start_learner(state: State, k: int, t: int) -> None:
    """Set the active learner aside and start a learner of order ``k``."""
    schedule = state.schedule
    set_aside(state, t)
    restore(state.memory, state.initial, 0)
    save(state.memory, state.waiting, k)
    schedule.active[0] = k
    schedule.begun[k] = t
    schedule.ends[k] = t + (1 << k)
    state.evidence.earned[k, :] = 0.0


@kernel
def set_aside(state: State, t: int) -> None:
    """Save the active learner unless it has ended."""
    active = state.schedule.active[0]
    if active >= 0 and state.schedule.ends[active] > t:
        save(state.memory, state.waiting, active)


@kernel
def activate_lowest(state: State, t: int) -> None:
    """Activate the learner of the lowest order that has not ended."""
    schedule = state.schedule
    k = 0
    while schedule.ends[k] <= t:
        k += 1
    if k != schedule.active[0]:
        set_aside(state, t)
        restore(state.memory, state.waiting, k)
        schedule.active[0] = k


@kernel
def became_worse(state: State, played: int) -> bool:
    """Return whether test 2 fires: outcomes were worse than the optimistic bounds, in reward or in some cost."""
    gaps = state.evidence.gaps
    for i in range(gaps.size):
        if gaps[i] / played >= 3.0 * state.width / math.sqrt(played):
            return True
    return False


@kernel
def improved(state: State, t: int) -> bool:
    """Return whether test 1 fires for a learner whose last round was ``t - 1``."""
    schedule, earned, least = state.schedule, state.evidence.earned, state.evidence.least
    for k in range(schedule.order[0] + 1):
        if schedule.ends[k] == t and schedule.begun[k] < t:
            length = t - schedule.begun[k]
            mean = earned[k, 0] / length
            weight = 1.0
            for j in range(1, least.size):
                mean -= least[j] * earned[k, j] / length
                weight += least[j]
            if mean >= least[0] + 9.0 * state.width / math.sqrt(length) * weight:
                return True
    return False


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the tests and the active learner."""
    schedule, earned, gaps = state.schedule, state.evidence.earned, state.evidence.gaps
    t, arm, costs = outcome.t, outcome.arm, outcome.costs
    if arm == SKIP or t < schedule.first[0]:
        return
    # Add the outcome to the statistics of test 1 for each learner that was running.
    for k in range(schedule.order[0] + 1):
        if schedule.begun[k] <= t < schedule.ends[k]:
            earned[k, 0] += outcome.reward
            for j in range(costs.size):
                earned[k, 1 + j] += costs[j]
    # The active learner and test 2 use only rounds since the learner was started.
    if t >= schedule.begun[schedule.active[0]]:
        gaps[0] += ucb.reward_bound(state.base, arm) - outcome.reward
        for j in range(costs.size):
            gaps[1 + j] += costs[j] - ucb.cost_bound(state.base, j, arm)
        ucb.learn(state.base, outcome)


@dataclass(frozen=True)
class Master(Policy):
    """MASTER over UCB without a window.

    Attributes:
        constant: The factor c of the tests; 1 in the theory.
        scale: Factor on both radii; see ``SlidingWindowUCB``.
        clip: Whether to clip confidence bounds to [0, 1].

    >>> Master(constant=1.0).to_spec()
    {'policy': 'Master', 'constant': 1.0, 'scale': 0.1, 'clip': True}
    """

    constant: float = 0.001
    scale: float = 0.1
    clip: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", above_zero(self.constant, "constant", LARGEST_SETTING))
        check_radius_settings(self)

    @property
    def forgets(self) -> bool:
        """True: every block and every restart begins without observations."""
        return True

    def new_state(self, problem: Problem) -> State:
        """Return the state before the first block."""
        horizon, kinds = problem.horizon, 1 + problem.resources
        radius = new_radius(problem, self.scale, self.clip)
        base, memory = pack(ucb.ucb_state(problem, (horizon, horizon), radius, FIXED))
        orders = horizon.bit_length()
        schedule = Schedule(
            order=np.zeros(1, dtype=np.int64),
            first=np.zeros(1, dtype=np.int64),
            latest=np.full(1, -1, dtype=np.int64),
            restarts=np.zeros(1, dtype=np.int64),
            begun=np.zeros(orders, dtype=np.int64),
            ends=np.zeros(orders, dtype=np.int64),
            active=np.full(1, -1, dtype=np.int64),
        )
        # rho-hat(L) sqrt(L), the common factor of all thresholds.
        logs = 6.0 * (math.log2(horizon) + 1.0) * 2.0 * math.log(max(horizon, 2))
        regret = 1.0 + self.scale * radius_constant(horizon, problem.arms, problem.resources)
        return State(
            base=base,
            memory=memory,
            initial=snapshot(memory),
            waiting=repeat(memory, orders),
            schedule=schedule,
            evidence=ChangeStatistics(np.zeros((orders, kinds)), np.zeros(kinds), np.zeros(kinds)),
            width=self.constant * logs * regret * math.sqrt(problem.arms),
        )

    def estimates(self, state: State) -> Estimates:
        """The estimates of the active learner."""
        return ucb.estimates_of(state.base)
