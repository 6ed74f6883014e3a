r"""Bandit over bandit (after Cheung, Simchi-Levi and Zhu 2019): one bandit learns the window of another.

Time is divided into blocks of H rounds. In each block a fresh sliding-window UCB uses one of the windows

.. math:: w_k = \lfloor H^{k/\Delta} \rfloor, \quad k = 0, \dots, \Delta, \qquad \Delta = \lceil \ln H \rceil,

and EXP3 over the :math:`K = \Delta + 1` windows receives the block's reward over H,

.. math:: p_k = (1 - \gamma) \frac{u_k}{\sum_l u_l} + \frac{\gamma}{K}, \qquad
          u_k \leftarrow u_k \exp\Bigl(\frac{\gamma}{K} \frac{\text{reward}}{H p_k}\Bigr), \qquad
          \gamma = \min\Bigl(1, \sqrt{\frac{K \ln K}{(e - 1) \lceil T/H \rceil}}\Bigr).

Every block has its own budget, H times the rate, so that blocks are comparable; a block whose budget does not cover one
more round at its maximum cost skips until it ends. :math:`H = \lceil m \sqrt T \rceil` or, if that is larger, the
number of rounds whose budget covers ten rounds at their maximum cost.

*Guarantee*: without budgets, regret :math:`\tilde O(m^{1/3} V^{1/3} T^{2/3} + m^{1/2} T^{3/4})` without knowing V. With
budgets, Theorem N1 of docs/theory-new.md bounds the regret for prompt feedback; its constants exceed every horizon that
can be played. A block cannot remember more than H rounds, so the policy needs many long blocks, and
confidence radii that shrink within a block: the printed ones (``scale=1``) exceed 1 throughout a short block. A
round costs as much as in sliding-window UCB. If feedback arrives after the end of its block, only its costs count,
and they are charged to the current block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import INITIAL, RoundNumbers, round_from, within
from driftsack.core.checks import LARGEST_INT, ROUNDING, whole
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.game.desk_arrays import LARGEST_RATE
from driftsack.game.ledger import Ledger, can_pay, charge, open_ledger, reset_account, set_budget
from driftsack.game.records import Outcome, Round, with_account, with_time
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import SMALLEST, mix_uniform, softmax
from driftsack.numerics.sampling import draw
from driftsack.policies import sliding_window_ucb as ucb
from driftsack.policies.parts.estimates import Estimates
from driftsack.policies.parts.memory import Memory, pack, restore, snapshot
from driftsack.policies.parts.pacing import FIXED, BudgetRule, check_budget_rule
from driftsack.policies.parts.radius import check_radius_settings, new_radius
from driftsack.policies.policy import Policy


class Block(NamedTuple):
    """The current block."""

    first: RoundNumbers  # (1,) its first round; -1 before the first block
    window: Ints  # (1,) index of its window
    missing: Ints  # (1,) number of rounds by which it is shorter than H
    earned: Annotated[Floats, round_from(0, beyond=1)]  # (1,) reward so far
    rate: Annotated[Floats, within(0.0, LARGEST_RATE)]  # (d,) the rate when it began


class State(NamedTuple):
    """The learner of the block, the block's account, and EXP3 over the windows."""

    base: ucb.State  # in ``memory``
    memory: Memory
    initial: Memory  # (1, ...) the memory before a block's first round, read-only
    block: Block
    account: Ledger  # of the block
    windows: Annotated[Ints, INITIAL]  # (K,) in rounds, 0 for the whole block
    log_weights: Floats  # (K,) of the windows
    probabilities: Annotated[Floats, within(SMALLEST, 1.0 + ROUNDING)]  # (K,) of the windows in this block
    explore: float  # gamma
    length: int  # H

    def grow_from(self, old: State) -> None:
        """Start a new block, because length and windows depend on the number of arms; keep the weights if they fit."""
        if self.windows.size == old.windows.size:
            self.log_weights[:] = old.log_weights
            self.probabilities[:] = old.probabilities

    def rounds_of_base(self, rounds: int) -> int:
        """Return the number of rounds that have begun by the clock of the block, which ends with its H-th round."""
        first = int(self.block.first[0])
        return min(max(rounds - first + int(self.block.missing[0]), 0), self.length) if first >= 0 else 0

    def check(self) -> None:
        """Raise unless the block has one of the windows, its learner uses it, and its budget is possible."""
        block = self.block
        if not (0 <= block.window[0] < self.windows.size and 0 <= block.missing[0] < self.length):
            raise ValueError("the block has a window or a length that does not exist")
        length = int(self.windows[block.window[0]]) if block.first[0] >= 0 else None
        if not ucb.uses_windows(self.base, length):
            raise ValueError("the learner of the block does not use its window")
        if (np.abs(self.account.budget) > LARGEST_RATE * LARGEST_INT).any():
            raise ValueError("the budget of the block is larger than any")


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Let the block's learner choose while the block's budget lasts, then skip."""
    # At the end of a block, reward its window and open the next block.
    first = state.block.first[0]
    if first < 0 or block_time(state, round.t) >= state.length:
        if first >= 0:
            reward_window(state)
        open_block(state, round, rng)
    follow_rate(state, round)
    # The block's learner sees the clock and the budget of the block.
    if can_pay(state.account, 1) or round.must:
        t = block_time(state, round.t)
        block_round = with_account(round, t, float(state.length - t), state.account)
        ucb.update_bounds(state.base, block_round, rng)
        return ucb.choose(state.base, block_round, rng, mix, prices)
    mix[:] = 0.0
    prices[:] = 0.0
    return SKIP


@kernel
def block_time(state: State, t: int) -> int:
    """Convert round ``t`` to the clock of a block that ends with its H-th round."""
    return int(t - state.block.first[0] + state.block.missing[0])


@kernel
def reward_window(state: State) -> None:
    """Update the weight of the last block's window with its importance-weighted reward (EXP3)."""
    k = state.block.window[0]
    payoff = state.block.earned[0] / (state.length * state.probabilities[k])
    state.log_weights[k] += state.explore / state.log_weights.size * payoff


@kernel
def open_block(state: State, round: Round, rng: Generator) -> None:
    """Start a block: draw a window, reset the learner and open the block's budget."""
    block, account = state.block, state.account
    # Draw the window of the block.
    softmax(state.log_weights, state.probabilities)
    mix_uniform(state.probabilities, state.explore)
    k = draw(state.probabilities, rng.random())
    block.first[0] = round.t
    block.window[0] = state.log_weights.size - 1 if k == SKIP else k
    block.earned[0] = 0.0
    # Reset the learner to its initial state with that window.
    restore(state.memory, state.initial, 0)
    ucb.use_windows(state.base, state.windows[block.window[0]])
    # Open the block's budget; the last block may be shorter than H.
    rounds = min(state.length, math.ceil(round.rounds_left))
    block.missing[0] = state.length - rounds
    for j in range(block.rate.size):
        block.rate[j] = round.rate[j]
        reset_account(account, j, round.rate[j] * rounds)


@kernel
def follow_rate(state: State, round: Round) -> None:
    """Adjust the block's budget, which assumes a constant rate, by the deviation of the current rate."""
    account = state.account
    for j in range(account.budget.size):
        set_budget(account, j, account.budget[j] + (round.rate[j] - state.block.rate[j]))


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Charge the block, and pass the outcome to the learner unless the block of its round has ended."""
    charge(state.account, outcome.costs)
    if outcome.t >= state.block.first[0]:
        state.block.earned[0] += outcome.reward
        ucb.learn(state.base, with_time(outcome, block_time(state, outcome.t)))


@dataclass(frozen=True)
class BanditOverBandit(Policy):
    """EXP3 over the window lengths of sliding-window UCB.

    Attributes:
        block: The block length H in rounds; None for the default above.
        scale: Factor on both radii; see ``SlidingWindowUCB``.
        clip: Whether to clip confidence bounds to [0, 1].
        budget_rule: ``"fixed"`` paces a block by its rate, ``"remaining"`` by its remaining budget per
            remaining round.

    >>> BanditOverBandit().block_length(Problem(horizon=10_000, arms=2, budget=[5_000]))
    200
    """

    block: int | None = None
    scale: float = 0.05
    clip: bool = False
    budget_rule: BudgetRule = "fixed"

    def __post_init__(self) -> None:
        if self.block is not None:
            object.__setattr__(self, "block", whole(self.block, "block", at_least=1))
        check_radius_settings(self)
        check_budget_rule(self)

    @property
    def forgets(self) -> bool:
        """True: every block starts without observations."""
        return True

    def follow_rate(self) -> BanditOverBandit:
        """Return a copy that plans with the rate of each round."""
        return replace(self, budget_rule=FIXED)

    def block_length(self, problem: Problem) -> int:
        """Return the block length on a problem.

        Args:
            problem: The problem to play.
        """
        if self.block is not None:
            return min(self.block, problem.horizon)
        rate = float(problem.rate.min())
        affordable = math.ceil(10.0 / rate) if rate * problem.horizon > 10.0 else problem.horizon
        return min(max(math.ceil(problem.arms * math.sqrt(problem.horizon)), affordable), problem.horizon)

    def windows(self, problem: Problem) -> list[int]:
        """Return the windows that EXP3 chooses from.

        Args:
            problem: The problem to play.

        Returns:
            The window lengths in rounds, in increasing order.
        """
        length = self.block_length(problem)
        steps = max(math.ceil(math.log(length)), 1)
        return [min(math.floor(length ** (k / steps) + 1e-9), length) for k in range(steps + 1)]

    def rounds_kept(self, problem: Problem) -> int:
        """Return the number of rounds of a block."""
        return self.block_length(problem)

    def new_state(self, problem: Problem) -> State:
        """Return the state before the first block."""
        length, windows = self.block_length(problem), self.windows(problem)
        count = len(windows)
        # A block must be able to pay for at least one round.
        least = float(problem.rate.min())
        if least * length < 1.0 <= least * problem.horizon:
            raise SettingError(
                f"block must be long enough to cover a round at its maximum cost, {math.ceil(1.0 / least)} rounds at "
                f"this budget, got {length}."
            )
        # The learner of a block plays a problem of H rounds.
        blocks = math.ceil(problem.horizon / length)
        inner = Problem(length, problem.arms, problem.rate * length)
        longest = max(length - 1, 1)  # a window as long as the block needs no ring
        radius = new_radius(inner, self.scale, self.clip)
        base, memory = pack(ucb.ucb_state(inner, (longest, longest), radius, self.budget_rule))
        return State(
            base=base,
            memory=memory,
            initial=snapshot(memory),
            block=Block(
                first=np.full(1, -1, dtype=np.int64),
                window=np.zeros(1, dtype=np.int64),
                missing=np.zeros(1, dtype=np.int64),
                earned=np.zeros(1),
                rate=problem.rate.copy(),
            ),
            account=open_ledger(inner),
            windows=np.array([w if w < length else 0 for w in windows]),
            log_weights=np.zeros(count),
            probabilities=np.full(count, 1.0 / count),
            explore=min(1.0, math.sqrt(count * math.log(count) / ((math.e - 1.0) * blocks))),
            length=length,
        )

    def estimates(self, state: State) -> Estimates:
        """The estimates of the current block."""
        return ucb.estimates_of(state.base)
