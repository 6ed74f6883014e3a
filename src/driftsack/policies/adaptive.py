r"""Adaptive: a policy for unknown drift, without windows, variation budgets or scales to choose.

It has three parts: estimation (:mod:`driftsack.policies.parts.run_length`), exploration (below) and pacing
(:mod:`driftsack.game.two_speed`).

*Exploration* is Thompson sampling over *whether an arm has changed* as well as over its means. With probability
:math:`s_i`, the chance that arm i has changed since it was last observed (1 without observations), its outcomes are
drawn from the prior of a new run, otherwise from the belief,

.. math:: \tilde y_{ik} \sim
          \mathcal N\Bigl(q^0_{ik},\; \frac{\varphi_k q^0_{ik} (1 - q^0_{ik}/M_k)}{\kappa_k + 1}\Bigr)
          \qquad \text{or} \qquad \mathcal N(\text{mean}_{ik},\, (z\, \mathrm{sd}_{ik})^2),

clipped to :math:`[0, M_k]`. If rewards and costs are correlated, so are their draws. With persistent outcomes the mean
is the outcome that is expected now. While outcomes of an arm are pending, :math:`s_i` counts from its last pull, and n
pending pulls that are expected to be answered narrow the draws by :math:`\sqrt{w/(w + n)}` for an estimate of the
weight w. An arm that is not pulled is therefore revisited about every :math:`\sqrt{1/h}` rounds.

*Held draws.* Each round draws new means only for the arms chosen or observed since the last round and for two others in
turn. The other draws are kept, so that few columns of the LP change and its last basis is a good start.

*Price lists.* Where costs are listed (:mod:`driftsack.game.listed_costs`) the plan and the snapshots of the pacer have
the draws times the factors of the list. If these change by more than 10% from one request to the next, the arm is the
best one at the long-run price instead of that of the LP, which would spend the rate of the average request on each one.

*Choice.* The mix solves the two-speed LP on the draws. Costs are measured in units of the budget rate, and rewards and
costs are divided by their scales M, so learning does not depend on ``reward_max`` or ``cost_max``.

*Guarantee*: no regret bound is known. docs/theory-adaptive.md proves that no round plans to spend more than
:math:`\theta` times the remaining rate, and bounds the belief's loss and the number of revisits. docs/policies.md has
measurements. A round costs O(md), an LP with 2d + 1 rows, and O(Kd) to learn for K = 6 runs.

Late feedback counts for its own round; its weight depends only on the age of the belief when it arrives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.bounds import Counts, NonNegative, RoundNumbers, index_of, round_from
from driftsack.core.checks import LARGEST_SETTING, at_least_zero, number, one_of
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round, share_to_come, usual_skip_cost
from driftsack.game.state_growth import grow
from driftsack.game.two_speed import (
    LARGEST_REWARD,
    TINY,
    TwoSpeed,
    best_response,
    draw_from_tiers,
    follow,
    is_even,
    new_tiered_lp,
    new_two_speed,
    set_tiers,
)
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, column_changed, solve
from driftsack.policies.parts.estimates import DRAWS, Estimates
from driftsack.policies.parts.open_arms import CLOSED, served, uniform_over_open
from driftsack.policies.parts.pacing import FIXED, REMAINING, TWO_SPEED
from driftsack.policies.parts.run_length import (
    RunLengths,
    changed_since,
    correlated,
    expected_now,
    mean_age,
    new_run_lengths,
    observe_outcome,
    prior_mean,
    variance,
)
from driftsack.policies.policy import Policy

FIRST_PULLS: Final = 4  # pulls that are not skipped because of an expensive outcome
EXPENSIVE: Final = 20.0  # budget rates
SMALL_SHARE: Final = 0.2  # of every budget, for all first pulls together
SWINGING: Final = 0.1  # mean change of the factors of a price list above which no LP is solved for one request
ENDING: Final = 0.18  # share of all rounds over which the pace becomes even at the end
IN_TURN: Final = 2  # arms that are drawn again in each round, besides those that were observed
PACES: Final = (TWO_SPEED, REMAINING, FIXED)


class State(NamedTuple):
    """The belief, the pacer and the LP of the current draws."""

    belief: RunLengths
    pacer: TwoSpeed
    lp: Simplex
    drawn: NonNegative  # (m, 1 + d) the present draws
    planned: NonNegative  # (m, 1 + d) the draws at the listed costs of the latest round
    due: Bools  # (m,) arms that are to be drawn again
    turn: Annotated[Ints, index_of("due")]  # (1,) the arm whose turn is next
    scale: NonNegative  # (1 + d,) the units of the LP when it was written
    latest: Annotated[Floats, round_from(-1)]  # (1,) the latest round for which means were drawn; -1 before the first
    asked: RoundNumbers  # (m,) the latest round in which each arm was chosen; -1 before the first
    pulls: Counts  # (m,) how often each arm was chosen
    exploration: float  # z

    def grow_from(self, old: State) -> None:
        """Keep the belief, the pacer and the draws; ``scale`` stays 0, so that the whole LP is written again."""
        self.asked[:] = -1
        for name in ("belief", "pacer", "lp", "drawn", "due", "turn", "latest", "asked", "pulls"):
            grow(getattr(self, name), getattr(old, name))


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw means, solve the LP on them and draw the arm."""
    # Without any observation, choose uniformly.
    if state.belief.observed[0] == 0.0:
        uniform_over_open(round, mix)
        prices[:] = 0.0
        return chosen(state, round, draw(mix, rng.random()))
    # Once per round: draw means, update the pace, and write the LP.
    if round.t > state.latest[0]:
        state.latest[0] = round.t
        draw_means(state, round, rng)
        planned = state.drawn
        if round.listed:
            plan_at_list(state, round)
            planned = state.planned
        follow(state.pacer, round, planned, state.belief.mean, state.belief.overall[0])
        set_program(state, round, planned)
    if round.swing > SWINGING and not is_even(state.pacer):
        return chosen(state, round, at_long_run_price(state, round, mix, prices))
    if solve(state.lp) != OPTIMAL:
        return STUCK
    arm = served(state.lp, round, mix, draw_from_tiers(state.pacer, state.lp, state.scale, rng, mix, prices))
    if arm == SKIP:
        arm = first_pull(state, round, mix)
    return chosen(state, round, arm)


@kernel
def plan_at_list(state: State, round: Round) -> None:
    """Write the draws with which the round is planned: the costs are multiplied by the factors of a price list."""
    for i in range(state.due.size):
        state.planned[i, 0] = state.drawn[i, 0]
        for j in range(state.pacer.price.size):
            state.planned[i, 1 + j] = state.drawn[i, 1 + j] * round.factors[j, i]


@kernel
def at_long_run_price(state: State, round: Round, mix: Floats, prices: Floats) -> int:
    """Choose the best arm at the long-run price, for listed costs that differ from request to request.

    The LP of one request would spend the rate of the average request on each of them, the cheap and the expensive ones.
    """
    mix[:] = 0.0
    for j in range(prices.size):
        prices[j] = state.pacer.price[j] / state.pacer.unit[j]
    arm = best_response(state.planned, state.pacer.price, round)
    if arm != SKIP:
        mix[arm] = 1.0
    return arm


@kernel
def chosen(state: State, round: Round, arm: int) -> int:
    """Note the choice of an arm, which is drawn again in the next round; return it."""
    if arm != SKIP:
        state.asked[arm] = round.t
        state.pulls[arm] += 1
        state.due[arm] = True
    return arm


@kernel
def first_pull(state: State, round: Round, mix: Floats) -> int:
    """Instead of skipping among the first pulls: the open arm with the fewest, if it is cheap beside the budgets.

    One expensive outcome at the start would otherwise close all arms for a long time. The arm, or ``SKIP``.
    """
    pulls, largest, budget = 0, 0.0, np.inf
    for i in range(mix.size):
        pulls += state.pulls[i]
    if pulls >= FIRST_PULLS:
        return SKIP
    for j in range(state.pacer.unit.size):
        largest = max(largest, state.belief.largest[1 + j])
        budget = min(budget, round.ledger.budget[j] / state.pacer.unit[j] / state.belief.largest[1 + j])
    if largest <= EXPENSIVE or pulls + 1 > SMALL_SHARE * budget:
        return SKIP
    arm = SKIP
    for i in range(mix.size):
        if round.open[i] and (arm == SKIP or state.pulls[i] < state.pulls[arm]):
            arm = i
    if arm != SKIP:
        mix[:] = 0.0
        mix[arm] = 1.0
    return arm


@kernel
def draw_means(state: State, round: Round, rng: Generator) -> None:
    """Draw, for each arm that is due, whether it has changed and then its means (Thompson sampling).

    Pending pulls count: an arm that was chosen lately is not stale although its outcomes are late, and its draws are as
    narrow as they will be when the outcomes have arrived.
    """
    belief, arms, t = state.belief, state.due.size, round.t
    share = share_to_come(round)
    # Mark the next arms in turn as due.
    for _ in range(min(IN_TURN, max(arms - 1, 1))):
        state.due[state.turn[0]] = True
        state.turn[0] = (state.turn[0] + 1) % arms
    for i in range(arms):
        if not state.due[i]:
            continue
        # From the prior of a new run if the arm has changed unseen, otherwise from the belief.
        pending = share * round.pending[i]
        last = max(belief.last[i], state.asked[i]) if pending > 0.0 else belief.last[i]
        stale = rng.random() < changed_since(belief, i, t, last)
        age = mean_age(belief, i) if pending > 0.0 and not stale else 0.0
        reward = 0.0  # the standard normal number that was drawn for the reward
        for k in range(state.drawn.shape[1]):
            if stale:
                mean = prior_mean(belief, i, k)
                sd = math.sqrt(variance(belief, k, mean, 0.0))
            else:
                mean, sd = expected_now(belief, i, k, t), state.exploration * belief.sd[i, k]
            if pending > 0.0:
                weight = age + belief.prior[k] + 1.0
                sd *= math.sqrt(weight / (weight + pending))
            normal = rng.standard_normal()
            if k == 0:
                reward = normal
            else:
                normal = correlated(belief, k, reward, normal)
            state.drawn[i, k] = min(max(mean + sd * normal, 0.0), belief.largest[k])


@kernel
def set_program(state: State, round: Round, planned: Floats) -> None:
    """Write the new draws into the LP, in units of the largest outcomes; closed arms are excluded."""
    lp, scale, resources = state.lp, state.scale, state.pacer.price.size
    for k in range(scale.size):
        largest = largest_planned(state, round, k)
        if scale[k] != largest or (round.listed and k > 0):
            scale[k] = largest
            state.due[:] = True
            lp.counts[STALE] = 1
    # Write the objective of every arm, but only the columns of arms with new draws.
    for i in range(state.due.size):
        lp.objective[i] = state.drawn[i, 0] / scale[0] + usual_skip_cost(round) if round.open[i] else CLOSED
        if state.due[i]:
            for j in range(resources):
                lp.columns[j, i] = planned[i, 1 + j] / scale[1 + j]
            column_changed(lp, i)
            state.due[i] = False
    set_tiers(state.pacer, lp, scale)


@kernel
def largest_planned(state: State, round: Round, k: int) -> float:
    """Return the unit of outcome k in the LP: the largest outcome, at the largest factor of a price list."""
    largest = state.belief.largest[k]
    if not round.listed or k == 0:
        return float(largest)
    most = TINY
    for i in range(state.due.size):
        most = max(most, round.factors[k - 1, i])
    return float(largest * most)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the belief about the arm."""
    if outcome.arm != SKIP:
        observe_outcome(state.belief, outcome)
        state.due[outcome.arm] = True


@dataclass(frozen=True)
class Adaptive(Policy):
    """Policy for unknown drift that needs no tuning.

    Attributes:
        exploration: Factor z on the standard deviations in Thompson sampling.
        pacing: ``"two-speed"`` saves when rewards per cost are low and spends up to ``speed`` times the even pace when
            they are high; ``"remaining"`` spends the remaining budget evenly over the remaining rounds; ``"fixed"``
            spends the rate of each round.
        speed: The maximum planned spending of a round with ``"two-speed"``, in units of the even pace.

    >>> import driftsack as ds
    >>> world = ds.instances.example_2()
    >>> share = ds.simulate(world, Adaptive(), trials=20).reward.mean() / ds.benchmarks.lp_dynamic(world).value
    >>> bool(share > 0.9)
    True
    """

    exploration: float = 0.7
    pacing: Literal["two-speed", "remaining", "fixed"] = "two-speed"
    speed: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "exploration", at_least_zero(self.exploration, "exploration", LARGEST_SETTING))
        one_of(self.pacing, "pacing", PACES)
        object.__setattr__(self, "speed", number(self.speed, "speed"))
        if self.speed < 1.0:
            raise OutOfRangeError(f"speed must be at least 1, the even pace, got {self.speed:g}.")

    @property
    def forgets(self) -> bool:
        """True: the belief moves to younger runs after a change."""
        return True

    @property
    def bounded(self) -> bool:
        """False: learning does not depend on the maxima."""
        return False

    @property
    def known_costs(self) -> bool:
        """True: it plans with its estimates times the factors of the list."""
        return True

    @property
    def keeps_floors(self) -> bool:
        """True: on a problem with floors the state is that of :mod:`driftsack.policies.adaptive_with_floors`."""
        return True

    def follow_rate(self) -> Adaptive:
        """Return a copy that plans with the rate of each round."""
        return replace(self, pacing=FIXED)

    def announce(self, state: Any, arm: int, cost_factors: Floats) -> None:
        """Multiply the costs of an arm in the snapshots of the pacer.

        Args:
            state: The state; changed in place.
            arm: The arm whose costs change.
            cost_factors: (d,) the factor of each resource.
        """
        snapshots = usual_state(state).pacer.snapshots
        snapshots[:, arm, 1:] = np.minimum(snapshots[:, arm, 1:] * cost_factors, LARGEST_REWARD)

    def new_state(self, problem: Problem) -> Any:
        """Return the state without observations."""
        speed = self.speed if self.pacing == TWO_SPEED else 1.0
        usual = State(
            belief=new_run_lengths(problem),
            pacer=new_two_speed(problem, speed, self.pacing != FIXED, ENDING),
            lp=new_tiered_lp(problem.arms, problem.resources),
            drawn=np.zeros((problem.arms, 1 + problem.resources)),
            planned=np.zeros((problem.arms, 1 + problem.resources)),
            due=np.ones(problem.arms, dtype=np.bool_),
            turn=np.zeros(1, dtype=np.int64),
            scale=np.zeros(1 + problem.resources),
            latest=np.full(1, -1.0),
            asked=np.full(problem.arms, -1, dtype=np.int64),
            pulls=np.zeros(problem.arms, dtype=np.int64),
            exploration=self.exploration,
        )
        if not problem.floor:
            return usual
        from driftsack.policies.adaptive_with_floors import with_floors

        return with_floors(usual, problem)

    def estimates(self, state: Any) -> Estimates:
        """Means of the posteriors, and the draws of the latest decision at its listed costs, in outcome units."""
        state = usual_state(state)
        units = np.concatenate([[1.0], state.belief.unit])
        seen = (state.belief.last >= 0)[:, None]
        drawn = state.planned if state.planned.any() else state.drawn
        return Estimates(np.where(seen, state.belief.mean, np.nan) * units, drawn * units, DRAWS)


def usual_state(state: Any) -> State:
    """Return the state for the usual goal, which is a part of that for a problem with floors."""
    found: State = getattr(state, "usual", state)
    return found
