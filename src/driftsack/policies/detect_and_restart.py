r"""Detect and restart: any policy for a world that does not move, begun anew when the world has moved.

Every arm's reward and each of its costs is a stream with a change detector (:mod:`driftsack.numerics.glr` or
:mod:`driftsack.numerics.cusum`). When any of them rings, the base and all detectors begin anew; budgets and the clock
go on. So that no arm is out of sight, a share :math:`\alpha` of the rounds is spread over the arms:

.. math:: x = (1 - \alpha)\, x_{\mathrm{base}} + \alpha / m .

*Guarantee*: without budgets, for a base with regret :math:`\tilde O(\sqrt{mT})` and :math:`\Upsilon` changes that are
large and far enough apart, :math:`\tilde O(\sqrt{m \Upsilon T})` (Besson, Kaufmann, Maillard and Seznec 2022; Liu, Lee
and Shroff 2018). *None is known to us with budgets*, and slow drift may never ring: use windows there. A round costs
the base's and, for GLR, :math:`O(d \log T)`. Late feedback reaches the detectors in the order in which it comes;
outcomes of rounds before the last restart are dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import above_zero, one_of, share
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.numerics.compiled import kernel
from driftsack.numerics.cusum import CUSUM, cusum_rings, forget_cusum, new_cusum
from driftsack.numerics.exp3p import blend
from driftsack.numerics.glr import GLR, forget_glr, glr_rings, new_glr
from driftsack.policies.naive_ucb import NaiveUCB
from driftsack.policies.nesting import Memory, check_base, load, packed, sealed
from driftsack.policies.policy import STUCK, Policy
from driftsack.policies.policy import choose as choose_base
from driftsack.policies.policy import learn as learn_base

DETECTORS: Final = ("glr", "cusum")


class State(NamedTuple):
    """All that changes as the learner plays."""

    base: Any  # the base's state, in ``memory``
    memory: Memory
    fresh: Memory  # (1, ...) the memory before the first round, read-only
    glr: GLR  # a stream for each arm's reward, then its costs; none with CUSUM
    cusum: CUSUM  # the same; none with GLR
    clock: Ints  # (3,) the latest round chosen, the first round since the last restart, restarts so far
    explore: float  # alpha


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:
    """What the base would do, or once in a while any arm."""
    arm = choose_base(state.base, ledger, t, rng, mix, prices)
    if arm == STUCK:
        return STUCK
    state.clock[0] = t
    blend(mix, state.explore)
    uniform = rng.random()
    return int(uniform / state.explore * mix.size) if uniform < state.explore else arm


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:
    """Tell the base and the arm's detectors; begin anew if one rings."""
    if t < state.clock[1]:
        return
    learn_base(state.base, t, arm, chance, reward, costs)
    if arm != SKIP and any_rings(state, arm, reward, costs):
        load(state.memory, state.fresh, 0)
        forget_glr(state.glr)
        forget_cusum(state.cusum)
        state.clock[1] = state.clock[0] + 1
        state.clock[2] += 1


@kernel
def any_rings(state: State, arm: int, reward: float, costs: Floats) -> bool:
    """Enter an outcome into all streams of its arm; whether any has changed."""
    streams = 1 + costs.size
    rings = False
    for k in range(streams):
        outcome = reward if k == 0 else costs[k - 1]
        stream = arm * streams + k
        if state.glr.counts.size > 0:
            rings |= glr_rings(state.glr, stream, outcome)
        else:
            rings |= cusum_rings(state.cusum, stream, outcome)
    return rings


@dataclass(frozen=True)
class DetectAndRestart(Policy):
    """Recipe: the ``base`` policy and the detector, ``"glr"`` or ``"cusum"``.

    ``explore`` is the share of rounds spread over all arms, also where the base would skip: if not given 0.02, or a
    tenth of the least rate b if that is less; ``delta`` the probability of a false alarm in each
    stream, 1/sqrt(T) if not given; ``change`` the smallest change that CUSUM is to see.

    >>> DetectAndRestart(NaiveUCB(scale=0.1), detector="cusum").to_spec()["base"]["policy"]
    'NaiveUCB'
    """

    base: Policy = field(default_factory=lambda: NaiveUCB(scale=0.1))
    detector: str = "glr"
    explore: float | None = None
    delta: float | None = None
    change: float = 0.2

    def __post_init__(self) -> None:
        check_base(self.base)
        one_of(self.detector, "detector", DETECTORS)
        if self.explore is not None:
            object.__setattr__(self, "explore", share(self.explore, "explore"))
        object.__setattr__(self, "change", above_zero(self.change, "change"))
        if self.delta is not None:
            object.__setattr__(self, "delta", share(above_zero(self.delta, "delta"), "delta"))

    @property
    def forgets(self) -> bool:
        """At every restart."""
        return True

    def new_state(self, problem: Problem) -> State:
        """The base's first state and detectors that have seen nothing."""
        horizon, streams = problem.horizon, problem.arms * (1 + problem.resources)
        delta = self.delta or 1.0 / math.sqrt(horizon)
        base, memory = packed(self.base.new_state(problem))
        return State(
            base=base,
            memory=memory,
            fresh=sealed(memory),
            glr=new_glr(streams if self.detector == "glr" else 0, horizon, delta),
            cusum=new_cusum(streams if self.detector == "cusum" else 0, horizon, delta, self.change),
            clock=np.array([-1, 0, 0]),
            explore=self._explore(problem),
        )

    def _explore(self, problem: Problem) -> float:
        """A fiftieth of the rounds, or a tenth of what the tightest budget could pay for if that is less."""
        return self.explore if self.explore is not None else min(0.02, float(problem.rate.min()) / 10.0)
