r"""MASTER (Wei and Luo 2021) over LP(UCB, LCB): learners at many time scales, and two tests that restart them.

Time is cut into blocks n = 0, 1, 2, ... of :math:`2^n` rounds. In round :math:`\tau = 0, \dots, 2^n - 1` of a block,
for each order :math:`k \le n` with :math:`2^k \mid \tau`, a fresh learner of order k is started with probability
:math:`\rho(2^n)/\rho(2^k) = 2^{-(n-k)/2}`, to live for :math:`2^k` rounds. The shortest-lived one plays and learns;
the others wait. A learner is UCB without a window (:mod:`driftsack.policies.naive_ucb`); its LP's value :math:`\tilde
g_t` is an optimistic value of the round, and :math:`U_t` the smallest of this block so far, at prices q. With

.. math:: \rho(L) = (1 + sR) \sqrt{m/L}, \qquad \hat\rho(L) = c \cdot 6 (\log_2 T + 1) \ln(T^2)\, \rho(L),

s the ``scale`` of the radius R, the block ends and n = 0 begins anew if one of these fires (c is ``constant``, 1 in
the theory):

1. *The world became better*: a learner of order k has come to its end and in its :math:`L = 2^k` rounds

   .. math:: \frac{1}{L} \sum (r - q^\top (c - b)) \ge U_t + 9 \hat\rho(L) (1 + \|q\|_1) .

2. *The world became worse*: over the block's L rounds so far, a the arm played,
   :math:`\frac{1}{L} \sum (\mathrm{UCB}_a - r) \ge 3 \hat\rho(L)` or, mirrored for a resource j,
   :math:`\frac{1}{L} \sum (c_j - \mathrm{LCB}_{j,a}) \ge 3 \hat\rho(L)`.

Test 1 prices the use of resources because a young learner, whose lower bounds on costs are loose, overspends and so
earns more than any LP at the rate b. In a world that stands still the priced reward is at most the dual function at q,
which for optimistic means is :math:`U_t`: so it does not fire by overspending. The plain mirror image, a cost mean
below an optimistic one, would, whenever two learners prefer different arms. Test 2 uses the arm's own bounds; their
mean over the mix is :math:`\tilde g_t`.

*Guarantee*: without budgets, :math:`\tilde O(\min(\sqrt{m \Upsilon T},\; m^{1/3} V^{1/3} T^{2/3} + \sqrt{mT}))`
without knowing the number of changes or V. *None is known to us with budgets.* With c = 1 no test can fire before T is
astronomic (:math:`\hat\rho(L) < 1` needs :math:`L \gg 10^6`); the default makes them fire at :math:`10^4`. A round
costs that of UCB and, now and then, the copy of a learner; memory is O((md + d²) log T). Feedback that comes after its
block, or before the playing learner was started, is dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import above_zero, at_least_zero, flag
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.numerics.compiled import kernel
from driftsack.policies import sliding_window_ucb as ucb
from driftsack.policies.nesting import Memory, load, packed, rows, sealed, store
from driftsack.policies.policy import STUCK, Policy
from driftsack.theory.windows import radius_constant


class Clock(NamedTuple):
    """Where the schedule stands."""

    block: Ints  # (4,) its order n, its first round, the round it was last advanced to, restarts so far
    begun: Ints  # (orders,) first round of the learner of each order
    ends: Ints  # (orders,) the round after its last; at most the present one if there is none
    active: Ints  # (1,) the order of the learner that plays


class Watch(NamedTuple):
    """What the tests look at, since the block began."""

    earned: Floats  # (orders, 1 + d) in the life of each learner: rewards, and costs less the rate
    gaps: Floats  # (1 + d,) sums of UCB - r and c - LCB
    least: Floats  # (1 + d,) U_t, and the prices at it


class State(NamedTuple):
    """All that changes as the learner plays."""

    base: ucb.State  # the learner that plays, in ``memory``
    memory: Memory
    fresh: Memory  # (1, ...) before a first round, read-only
    waiting: Memory  # (orders, ...) the learners that wait
    clock: Clock
    watch: Watch
    width: float  # rho-hat(L) sqrt(L)


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Test, keep the schedule, let the shortest-lived learner play."""
    if t > state.clock.block[2]:
        advance(state, t, rng)
        for k in range(state.clock.block[0] + 1):
            for j in range(prices.size):
                state.watch.earned[k, 1 + j] -= ledger.rate[j]
    arm = ucb.choose(state.base, ledger, t, rng, mix, prices)
    if arm != STUCK:
        lp, least = state.base.lp, state.watch.least
        value = lp.duals[prices.size]
        for j in range(prices.size):
            value += lp.duals[j] * lp.rhs[j]
        if value < least[0]:
            least[0] = value
            for j in range(prices.size):
                least[1 + j] = prices[j]
    return arm


@kernel
def advance(state: State, t: int, rng: Generator) -> None:
    """Tests, then a new block if it is time or a test has fired, then new learners, then whose turn it is."""
    clock = state.clock
    n, first = clock.block[0], clock.block[1]
    played = t - first
    if clock.block[2] < 0:
        open_block(state, 0, t)
    elif became_worse(state, played) or became_better(state, t):
        clock.block[3] += 1
        open_block(state, 0, t)
    elif played >= 1 << n:
        open_block(state, min(n + 1, clock.ends.size - 1), t)
    clock.block[2] = t
    n, step = clock.block[0], t - clock.block[1]
    for k in range(n, -1, -1):
        if step & ((1 << k) - 1) == 0 and (k == n or rng.random() < 2.0 ** (-0.5 * (n - k))):
            begin(state, k, t)
    take_turns(state, t)


@kernel
def open_block(state: State, n: int, t: int) -> None:
    """A block of order ``n`` from round ``t`` on: no learner lives, nothing has been seen."""
    state.clock.block[0] = n
    state.clock.block[1] = t
    state.clock.ends[:] = t
    state.clock.active[0] = -1
    state.watch.gaps[:] = 0.0
    state.watch.least[:] = 0.0
    state.watch.least[0] = np.inf


@kernel
def begin(state: State, k: int, t: int) -> None:
    """A fresh learner of order ``k``; the one that plays is put aside first."""
    clock, watch = state.clock, state.watch
    put_aside(state, t)
    load(state.memory, state.fresh, 0)
    store(state.memory, state.waiting, k)
    clock.active[0] = k
    clock.begun[k] = t
    clock.ends[k] = t + (1 << k)
    watch.earned[k, :] = 0.0


@kernel
def put_aside(state: State, t: int) -> None:
    """Keep the learner that played, if it lives on."""
    active = state.clock.active[0]
    if active >= 0 and state.clock.ends[active] > t:
        store(state.memory, state.waiting, active)


@kernel
def take_turns(state: State, t: int) -> None:
    """The living learner of the lowest order plays."""
    clock = state.clock
    k = 0
    while clock.ends[k] <= t:
        k += 1
    if k != clock.active[0]:
        put_aside(state, t)
        load(state.memory, state.waiting, k)
        clock.active[0] = k


@kernel
def became_worse(state: State, played: int) -> bool:
    """Test 2: optimism was disappointed, in reward or in some cost."""
    for i in range(state.watch.gaps.size):
        if state.watch.gaps[i] / played >= 3.0 * state.width / math.sqrt(played):
            return True
    return False


@kernel
def became_better(state: State, t: int) -> bool:
    """Test 1, for every learner whose last round was the one before ``t``."""
    clock, watch = state.clock, state.watch
    for k in range(clock.block[0] + 1):
        if clock.ends[k] == t and clock.begun[k] < t:
            length = t - clock.begun[k]
            mean = watch.earned[k, 0] / length
            weight = 1.0
            for j in range(1, watch.least.size):
                mean -= watch.least[j] * watch.earned[k, j] / length
                weight += watch.least[j]
            if mean >= watch.least[0] + 9.0 * state.width / math.sqrt(length) * weight:
                return True
    return False


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:
    """Tell the learner that plays, and the tests."""
    clock, watch = state.clock, state.watch
    if arm == SKIP or t < clock.block[1]:
        return
    for k in range(clock.block[0] + 1):
        if clock.begun[k] <= t < clock.ends[k]:
            watch.earned[k, 0] += reward
            for j in range(costs.size):
                watch.earned[k, 1 + j] += costs[j]
    if t >= clock.begun[clock.active[0]]:
        watch.gaps[0] += state.base.lp.objective[arm] - reward
        for j in range(costs.size):
            watch.gaps[1 + j] += costs[j] - state.base.lp.columns[j, arm]
        ucb.learn(state.base, t, arm, chance, reward, costs)


@dataclass(frozen=True)
class Master(Policy):
    """Recipe: ``constant`` is c of the tests, 1 in the theory; ``scale`` and ``clip`` as for ``SlidingWindowUCB``.

    >>> Master(constant=1.0).to_spec()
    {'policy': 'Master', 'constant': 1.0, 'scale': 0.1, 'clip': True}
    """

    constant: float = 0.001
    scale: float = 0.1
    clip: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", above_zero(self.constant, "constant"))
        object.__setattr__(self, "scale", at_least_zero(self.scale, "scale"))
        object.__setattr__(self, "clip", flag(self.clip, "clip"))

    @property
    def forgets(self) -> bool:
        """With every block and every restart."""
        return True

    def new_state(self, problem: Problem) -> State:
        """Before the first block."""
        horizon, kinds = problem.horizon, 1 + problem.resources
        optimism = ucb.Optimism(self.scale, self.clip, "fixed")
        base, memory = packed(ucb.new_state(problem, (horizon, horizon), optimism))
        orders = horizon.bit_length()
        clock = Clock(
            block=np.array([0, 0, -1, 0]),
            begun=np.zeros(orders, dtype=np.int64),
            ends=np.zeros(orders, dtype=np.int64),
            active=np.array([-1]),
        )
        watch = Watch(np.zeros((orders, kinds)), np.zeros(kinds), np.zeros(kinds))
        logs = 6.0 * (math.log2(horizon) + 1.0) * 2.0 * math.log(max(horizon, 2))
        regret = 1.0 + self.scale * radius_constant(horizon, problem.arms, problem.resources)
        return State(
            base=base,
            memory=memory,
            fresh=sealed(memory),
            waiting=rows(memory, orders),
            clock=clock,
            watch=watch,
            width=self.constant * logs * regret * math.sqrt(problem.arms),
        )
