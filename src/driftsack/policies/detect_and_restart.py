r"""Detect and restart: a policy for stationary environments, restarted whenever a change is detected.

Every arm's reward and each of its costs is a stream with a change detector (:mod:`driftsack.numerics.glr` or
:mod:`driftsack.numerics.cusum`). When any of them detects a change, the base and all detectors restart; budgets
and time continue. To keep observing every arm, a share :math:`\alpha` of the rounds explores the arms uniformly:

.. math:: x = (1 - \alpha)\, x_{\mathrm{base}} + \alpha / m .

*Guarantee*: without budgets, for a base with regret :math:`\tilde O(\sqrt{mT})` and :math:`\Upsilon` changes that are
large and far enough apart, :math:`\tilde O(\sqrt{m \Upsilon T})` (Besson, Kaufmann, Maillard and Seznec 2022; Liu, Lee
and Shroff 2018). *No guarantee with budgets is known*, and slow drift may never be detected: use windows in that case.
A round costs as much as in the base, plus :math:`O(d \log T)` for GLR. Late feedback reaches the detectors in the
order of its arrival; outcomes of rounds before the last restart are dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import RoundNumbers, round_from
from driftsack.core.checks import above_zero, one_of, share
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.protocol import choose as choose_base
from driftsack.game.protocol import learn as learn_base
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.policies.naive_ucb import NaiveUCB
from driftsack.policies.parts.detection import DETECTORS, Detector, detects, new_detector, reset
from driftsack.policies.parts.estimates import Estimates
from driftsack.policies.parts.memory import Memory, check_base, pack, restore, snapshot
from driftsack.policies.parts.open_arms import count_open, explore_open, nth_open
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """The base, its initial state and the detectors."""

    base: Any  # the base's state, in ``memory``
    memory: Memory
    initial: Memory  # (1, ...) the memory before the first round, read-only
    detector: Detector
    latest: RoundNumbers  # (1,) the latest round chosen, from 0
    since: Annotated[Ints, round_from(0, beyond=1)]  # (1,) the first round since the last restart
    restarts: Ints  # (1,)
    explore: float  # alpha


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Choose the arm of the base or, with probability alpha, a uniformly random arm."""
    arm = choose_base(state.base, round, rng, mix, prices)
    if arm == STUCK:
        return STUCK
    state.latest[0] = round.t
    explore_open(round, mix, state.explore)
    uniform = rng.random()
    return nth_open(round, int(uniform / state.explore * count_open(round))) if uniform < state.explore else arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Pass the outcome to the base and to the detectors of its arm; restart if a change is detected."""
    if outcome.t < state.since[0]:
        return
    learn_base(state.base, outcome)
    if outcome.arm != SKIP and detects(state.detector, outcome.arm, outcome.reward, outcome.costs):
        restore(state.memory, state.initial, 0)
        reset(state.detector)
        state.since[0] = state.latest[0] + 1
        state.restarts[0] += 1


@dataclass(frozen=True)
class DetectAndRestart(Policy):
    """Restarts a base policy when a change is detected.

    Attributes:
        base: The policy that is restarted.
        detector: ``"glr"`` or ``"cusum"``.
        explore: The share of rounds that explore all arms uniformly, even where the base would skip. None for 0.02,
            or a tenth of the smallest rate b if that is less.
        delta: The false-alarm probability of each stream; None for 1/sqrt(T).
        change: The smallest change that CUSUM is tuned to, in [0, 1].

    >>> DetectAndRestart(NaiveUCB(scale=0.1), detector="cusum").to_spec()["base"]["policy"]
    'NaiveUCB'
    """

    base: Policy = field(default_factory=lambda: NaiveUCB(scale=0.1))
    detector: Literal["glr", "cusum"] = "glr"
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
        """True: a restart forgets all observations."""
        return True

    def follow_rate(self) -> DetectAndRestart:
        """Return a copy whose base plans with the rate of each round."""
        return replace(self, base=self.base.follow_rate())

    def new_state(self, problem: Problem) -> State:
        """Return the initial state of the base, and detectors without observations."""
        delta = self.delta or 1.0 / math.sqrt(problem.horizon)
        base, memory = pack(self.base.new_state(problem))
        return State(
            base=base,
            memory=memory,
            initial=snapshot(memory),
            detector=new_detector(problem, self.detector, delta, self.change),
            latest=np.full(1, -1, dtype=np.int64),
            since=np.zeros(1, dtype=np.int64),
            restarts=np.zeros(1, dtype=np.int64),
            explore=self._explore(problem),
        )

    def estimates(self, state: State) -> Estimates | None:
        """The estimates of the base."""
        return self.base.estimates(state.base)

    def _explore(self, problem: Problem) -> float:
        """Return the exploration share: by default 0.02, or a tenth of the smallest rate if that is less."""
        return self.explore if self.explore is not None else min(0.02, float(problem.rate.min()) / 10.0)
