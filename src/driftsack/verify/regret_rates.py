r"""Check Theorem 2: fitted exponents of regret with bootstrap intervals, and the least regret of every policy.

An exponent is the slope of log regret against the log of the varied quantity. For its interval the trials (or draws of
the instance) are resampled a thousand times. The verdict ``consistent`` means that the interval, widened by ``SLACK``
for terms of lower order, contains the exponent of the statement; a finite experiment cannot prove an asymptotic
statement. A policy that never plays has enough regret for every lower bound, but the wrong exponents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from driftsack.benchmarks import fixed_distribution, lp_dynamic
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.instances import budget_trap, cost_switching, reward_switching
from driftsack.measures import variation
from driftsack.policies import DynamicOracle, Policy, SlidingWindowUCB, from_spec
from driftsack.policies.oracles import Oracle
from driftsack.sweeps.forecasts import forecast, spending
from driftsack.sweeps.league import entries
from driftsack.sweeps.spec import PolicySpec
from driftsack.theory.bounds import drift_rate, regret_lower_bounds
from driftsack.verify.regret_bounds import NEVER_PLAYS, regrets
from driftsack.verify.statement import (
    CONSISTENT,
    FAILS,
    FALSE_AS_PRINTED,
    Case,
    Effort,
    Finding,
    Rate,
    Statement,
    judge_correction,
)

RESAMPLES: Final = 1_000
LEAST_SHARES: Final = (0.1, 0.06, 0.25)  # shares of Theorem 2's three rates that every policy's regret must exceed


def fit_exponent(
    varied: str, expected: float, places: Sequence[float], samples: Sequence[Floats], rng: np.random.Generator
) -> Rate:
    """Fit log mean regret against the log of the varied quantity, with a bootstrap over the sample at each value."""
    x = np.log(np.asarray(places, dtype=np.float64))

    def slope(means: Floats) -> float:
        return float(np.polyfit(x, np.log(np.maximum(means, 1e-9)), 1)[0])

    means = np.array([sample.mean() for sample in samples])
    resampled = [rng.choice(sample, (RESAMPLES, sample.size)).mean(axis=1) for sample in samples]
    fits = [slope(row) for row in np.column_stack(resampled)]
    low, high = np.quantile(fits, [0.025, 0.975]).tolist()
    return Rate(varied, tuple(places), tuple(means.tolist()), slope(means), low, high, expected)


def regret_exponent(
    effort: Effort,
    rate: tuple[str, float, Sequence[float]],
    world: Callable[[float, int], Instance],
    policy: Callable[[float], Policy | None],
) -> Rate:
    """Fit the exponent of a policy's regret; each draw of an instance is one observation.

    ``rate`` has the varied quantity, its exponent in the statement, and its values. ``world(value, draw)`` returns the
    instance, ``policy(value)`` the policy, or None to never play.
    """
    varied, expected, places = rate
    draws, trials = effort.pick(8, 16), effort.pick(1, 4)
    samples = [
        np.array([regrets(policy(x), world(x, draw), trials, effort.seed + draw).mean() for draw in range(draws)])
        for x in places
    ]
    return fit_exponent(varied, expected, places, samples, effort.rng(31))


def learners(world: Instance) -> Iterator[tuple[str, Policy]]:
    """Yield every policy of the league that is not an oracle.

    Each is given the quantities that it requires; forecasts contain the means of the first phase only, so that no
    policy knows the future.
    """
    moves = variation(world)
    first_phase = Instance(world.problem, world.rewards, world.costs, 0 * world.phase, world.noise)
    measured: dict[str, Any] = {
        "variation": (moves.v1, moves.v2),
        "opt_fd": fixed_distribution(world).value,
        "forecast": forecast(first_phase).to_dict(),
        "spending": spending(forecast(first_phase)),
    }
    for entry in entries():
        policy = from_spec(PolicySpec.model_validate(entry).resolve(measured))
        if not isinstance(policy, Oracle):
            yield entry["name"], policy


def lower_bound_margins(effort: Effort, worlds: Sequence[Instance], which: int, case: Case) -> list[tuple[float, str]]:
    """Compute each learner's largest regret over the instances as a share of a rate of Theorem 2, minus the least one.

    ``which`` is the index of the rate. The case ``PLANTED`` adds an oracle, whose regret is too small; ``TRIVIAL``
    never plays.
    """
    rates = []
    for world in worlds:
        moves, b = variation(world), float(world.problem.rate[0])
        pairs = (moves.v1, moves.v2), (moves.w1, moves.w2)
        rates.append(regret_lower_bounds(world.horizon, world.arms, b, *pairs, moves.q_bar_full)[which])
    policies: list[tuple[str, Policy | None]] = list(learners(worlds[0]))
    if case is Case.PLANTED:
        policies.append(("DynamicOracle", DynamicOracle()))
    if case is Case.TRIVIAL:
        policies = [("nobody", None)]
    trials, margins = effort.pick(2, 8), []
    for name, policy in policies:
        shares = [
            regrets(policy, world, trials, effort.seed).mean() / rate for world, rate in zip(worlds, rates, strict=True)
        ]
        margins.append((float(max(shares)) - LEAST_SHARES[which], name))
    return margins


def judge_lower_bound(margins: list[tuple[float, str]], *rates: Rate) -> Finding:
    """Return ``CONSISTENT`` if every policy has enough regret and every exponent is that of the statement."""
    least, name = min(margins)
    margin = min(least, *(rate.gap() for rate in rates))
    exponents = ", ".join(map(str, rates))
    note = f"least share of the rate minus {LEAST_SHARES}, by {name}: {least:.2f}; exponents: {exponents}"
    return Finding(CONSISTENT if margin >= 0.0 else FAILS, len(margins), margin, note, rates=rates)


def variations(effort: Effort) -> list[float]:
    """The values of V: one decade in a quick run, two in a full one."""
    return [2.0, 6.0, 20.0] if effort.quick else [1.0, 10.0, 100.0]


def theorem_2_rewards(effort: Effort, case: Case) -> Finding:
    """Check (i): T^(2/3), V1^(1/3), m^(1/3) where rewards switch. Planted: an oracle takes part."""
    horizon = effort.pick(60_000, 200_000)
    lengths = [6_000, 20_000, 60_000] if effort.quick else [10_000, 100_000, 1_000_000]
    arms = [16, 32, 64] if effort.quick else [16, 50, 160]

    def world(draw: int, arms: float = 2, horizon: float = horizon, v1: float = 5.0) -> Instance:
        return reward_switching(arms=int(arms), horizon=int(horizon), v1=v1, seed=draw)

    def given_variation(v1: float) -> Policy | None:
        return None if case is Case.TRIVIAL else SlidingWindowUCB(variation=(v1, 0.0), scale=0.3)

    rates = (
        regret_exponent(
            effort, ("T", 2 / 3, lengths), lambda x, draw: world(draw, horizon=x), lambda _: given_variation(5.0)
        ),
        regret_exponent(effort, ("V1", 1 / 3, variations(effort)), lambda x, draw: world(draw, v1=x), given_variation),
        regret_exponent(
            effort, ("m", 1 / 3, arms), lambda x, draw: world(draw, arms=x), lambda _: given_variation(5.0)
        ),
    )
    return judge_lower_bound(lower_bound_margins(effort, [reward_switching(horizon=10_000, v1=5.0)], 0, case), *rates)


def theorem_2_costs(effort: Effort, case: Case) -> Finding:
    """Check (ii): V2^(1/3) and 1/b where costs switch, for gaps Δ <= b; for small b the printed rate exceeds OPT.

    Planted: an oracle takes part.
    """
    horizon = effort.pick(20_000, 100_000)
    small, v2 = cost_switching(horizon=10_000, v2=5.0, rate=0.01), 5.0
    unguarded = drift_rate(small.horizon, small.arms, v2) / 0.01
    printed = 1.0 - unguarded / lp_dynamic(small).value

    def given_variation(v2: float) -> Policy | None:
        return None if case is Case.TRIVIAL else SlidingWindowUCB(variation=(0.0, v2), scale=0.3)

    rates = (
        regret_exponent(
            effort,
            ("V2", 1 / 3, variations(effort)),
            lambda x, draw: cost_switching(horizon=horizon, v2=x, seed=draw),
            given_variation,
        ),
        regret_exponent(
            effort,
            ("b", -1.0, [0.05, 0.15, 0.5]),
            lambda x, draw: cost_switching(horizon=horizon, v2=5.0, rate=x, seed=draw),
            lambda _: given_variation(5.0),
        ),
    )
    margins = lower_bound_margins(effort, [cost_switching(horizon=10_000, v2=5.0)], 1, case)
    note = f"b = 0.01, T = 10,000, V2 = 5: the printed rate is {1.0 - printed:.0f} times OPT"
    return judge_correction(printed, judge_lower_bound(margins, *rates), note)


def theorem_2_trap(effort: Effort, case: Case) -> Finding:
    """Check (iii): regret on the worse future of the trap is linear in W. Planted: an oracle takes part."""

    def regrets_on_worse_future(w: float) -> Floats:
        futures = [budget_trap(horizon=100_000, w1=w, w2=w, better=better) for better in (True, False)]
        policy = None if case is Case.TRIVIAL else SlidingWindowUCB(windows=(2_000, 2_000), scale=0.1)
        trials = effort.pick(4, 12)
        return max((regrets(policy, world, trials, effort.seed) for world in futures), key=np.mean)

    places = [20.0, 200.0, 2_000.0]
    rate = fit_exponent("W", 1.0, places, [regrets_on_worse_future(w) for w in places], effort.rng(32))
    return judge_lower_bound(
        lower_bound_margins(effort, [budget_trap(better=better) for better in (True, False)], 2, case), rate
    )


STATEMENTS = (
    Statement(
        "theorem-2-i",
        "Theorem 2 (i)",
        "Ω(m^⅓ V1^⅓ T^⅔), for every policy",
        CONSISTENT,
        theorem_2_rewards,
        NEVER_PLAYS,
    ),
    Statement(
        "theorem-2-ii",
        "Theorem 2 (ii)",
        "Ω(m^⅓ V2^⅓ T^⅔ / b), for every policy",
        FALSE_AS_PRINTED,
        theorem_2_costs,
        NEVER_PLAYS,
    ),
    Statement(
        "theorem-2-iii", "Theorem 2 (iii)", "Ω(W1 + q̄W2), for every policy", CONSISTENT, theorem_2_trap, NEVER_PLAYS
    ),
)
