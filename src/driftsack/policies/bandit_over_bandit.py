r"""Bandit over bandit (after Cheung, Simchi-Levi and Zhu 2019): a bandit learns the window of the bandit below it.

Time is cut into blocks of H rounds. In each block a fresh sliding-window UCB plays with one of the windows

.. math:: w_k = \lfloor H^{k/\Delta} \rfloor, \quad k = 0, \dots, \Delta, \qquad \Delta = \lceil \ln H \rceil,

and EXP3 over the :math:`K = \Delta + 1` windows is paid the block's reward over H,

.. math:: p_k = (1 - \gamma) \frac{u_k}{\sum_l u_l} + \frac{\gamma}{K}, \qquad
          u_k \leftarrow u_k \exp\Bigl(\frac{\gamma}{K} \frac{\text{reward}}{H p_k}\Bigr), \qquad
          \gamma = \min\Bigl(1, \sqrt{\frac{K \ln K}{(e - 1) \lceil T/H \rceil}}\Bigr).

Every block has a budget of its own, H times the rate, or blocks would not compare; a block whose budget cannot bear one
more round at the highest cost skips until its end. :math:`H = \lceil m \sqrt T \rceil`, or as many rounds as ten rounds
at the highest cost need at this rate, if that is more.

*Guarantee*: without budgets, regret :math:`\tilde O(m^{1/3} V^{1/3} T^{2/3} + m^{1/2} T^{3/4})` without knowing V.
*None is known to us with budgets.* A block cannot remember longer than H rounds, so it needs many blocks of many rounds
each, and confidence radii that are small within a block: the printed ones (``scale=1``) are above 1 for all of a short
one. A round costs that of sliding-window UCB. Of feedback that comes after its block has ended only
the costs count, for the block of that day.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import whole
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.game.ledger import FORGIVEN, Ledger, affordable, charge, open_ledger
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import blend, soften
from driftsack.numerics.sampling import draw
from driftsack.policies import sliding_window_ucb as ucb
from driftsack.policies.nesting import Memory, load, packed, sealed
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """All that changes as the learner plays."""

    base: ucb.State  # the block's learner, in ``memory``
    memory: Memory
    fresh: Memory  # (1, ...) the memory before a block's first round, read-only
    account: Ledger  # the block's own
    windows: Ints  # (K,) in rounds, 0 for the whole block
    logs: Floats  # (K,) log weights of the windows
    chances: Floats  # (K,) their probabilities in this block
    explore: float  # gamma
    block: Ints  # (3,) the block's first round, -1 before any; its window's number; rounds that it lacks to H
    opened: Floats  # (d,) the rate when the block began
    earned: Floats  # (1,) in this block so far
    length: int  # H
    horizon: int


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:
    """What the block's learner does, as long as the block's budget lasts."""
    if state.block[0] < 0 or t >= state.block[0] + state.length:
        if state.block[0] >= 0:
            pay_window(state)
        open_block(state, ledger, t, rng)
    follow_rate(state, ledger)
    if affordable(state.account, 1):
        return ucb.choose(state.base, state.account, t - state.block[0] + state.block[2], rng, mix, prices)
    mix[:] = 0.0
    prices[:] = 0.0
    return SKIP


@kernel
def pay_window(state: State) -> None:
    """EXP3: the ended block's window earns its reward by importance."""
    k = state.block[1]
    payoff = state.earned[0] / (state.length * state.chances[k])
    state.logs[k] += state.explore / state.logs.size * payoff


@kernel
def open_block(state: State, ledger: Ledger, t: int, rng: Generator) -> None:
    """A window, a fresh learner, a budget."""
    soften(state.logs, state.chances)
    blend(state.chances, state.explore)
    k = draw(state.chances, rng.random())
    state.block[0] = t
    state.block[1] = state.logs.size - 1 if k == SKIP else k
    state.earned[0] = 0.0
    load(state.memory, state.fresh, 0)
    state.base.rewards.length[0] = state.windows[state.block[1]]
    state.base.costs.length[0] = state.windows[state.block[1]]
    rounds = min(state.length, state.horizon - t)
    state.block[2] = state.length - rounds
    for j in range(state.opened.size):
        state.opened[j] = ledger.rate[j]
        state.account.budget[j] = ledger.rate[j] * rounds
        state.account.spent[j] = 0.0
        state.account.carry[j] = 0.0


@kernel
def follow_rate(state: State, ledger: Ledger) -> None:
    """The block's budget was set as if the rate stayed as it was; add what today's has more."""
    account = state.account
    for j in range(state.opened.size):
        account.rate[j] = ledger.rate[j]
        account.budget[j] += ledger.rate[j] - state.opened[j]
        account.limit[j] = account.budget[j] * (1.0 + FORGIVEN)


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:
    """Charge the block, and tell its learner unless the round's own block has ended."""
    charge(state.account, costs)
    if t >= state.block[0]:
        state.earned[0] += reward
        ucb.learn(state.base, t - state.block[0] + state.block[2], arm, chance, reward, costs)


@dataclass(frozen=True)
class BanditOverBandit(Policy):
    """Recipe: ``block`` is H in rounds, or None for the theory's; the rest as for ``SlidingWindowUCB``.

    >>> BanditOverBandit().block_length(Problem(horizon=10_000, arms=2, budget=[5_000]))
    200
    """

    block: int | None = None
    scale: float = 0.05
    clip: bool = False
    budget_rule: str = "fixed"

    def __post_init__(self) -> None:
        if self.block is not None:
            object.__setattr__(self, "block", whole(self.block, "block", at_least=1))
        ucb.check_optimism(self)

    @property
    def forgets(self) -> bool:
        """With every block."""
        return True

    def block_length(self, problem: Problem) -> int:
        """H in rounds on this problem."""
        if self.block is not None:
            return min(self.block, problem.horizon)
        rate = float(problem.rate.min())
        bearable = math.ceil(10.0 / rate) if rate * problem.horizon > 10.0 else problem.horizon  # noqa: PLR2004
        return min(max(math.ceil(problem.arms * math.sqrt(problem.horizon)), bearable), problem.horizon)

    def windows(self, problem: Problem) -> list[int]:
        """The windows that the upper bandit chooses from."""
        length = self.block_length(problem)
        steps = max(math.ceil(math.log(length)), 1)
        return [min(math.floor(length ** (k / steps) + 1e-9), length) for k in range(steps + 1)]

    def new_state(self, problem: Problem) -> State:
        """Before the first block."""
        length, windows = self.block_length(problem), self.windows(problem)
        count = len(windows)
        least = float(problem.rate.min())
        if least * length < 1.0 <= least * problem.horizon:
            raise SettingError(
                f"block must be long enough to pay for a round at the highest cost, {math.ceil(1.0 / least)} rounds at "
                f"this budget, got {length}."
            )
        blocks = math.ceil(problem.horizon / length)
        inner = Problem(length, problem.arms, problem.rate * length)
        optimism = ucb.Optimism(self.scale, self.clip, self.budget_rule)
        longest = max(length - 1, 1)  # a window as long as the block needs no ring
        base, memory = packed(ucb.new_state(inner, (longest, longest), optimism))
        return State(
            base=base,
            memory=memory,
            fresh=sealed(memory),
            account=open_ledger(inner.unit_budget, length),
            windows=np.array([w if w < length else 0 for w in windows]),
            logs=np.zeros(count),
            chances=np.full(count, 1.0 / count),
            explore=min(1.0, math.sqrt(count * math.log(count) / ((math.e - 1.0) * blocks))),
            block=np.array([-1, 0, 0]),
            opened=problem.rate.copy(),
            earned=np.zeros(1),
            length=length,
            horizon=problem.horizon,
        )
