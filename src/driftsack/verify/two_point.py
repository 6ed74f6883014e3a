r"""Compute the value of the games behind Theorem 2 (i) and (ii), for two arms.

The horizon is divided into phases of H rounds, and in each nature draws one of two arms to be better by a gap Δ. The
phases are independent, so the best that a learner can do is to play each phase optimally. Where a pull of either arm
tells as much about which is better, pulling the arm that is more likely to be the better one is optimal, so the
expected number of wrong pulls of the optimal learner can be computed exactly. Nature chooses H, and the largest gap
that the variation V allows, :math:`\Delta = V H / T`.

The exponents of this value are those of the theorem, for *every* policy. Exponents of the regret of a policy on a
family of instances whose gap already depends on V, T and b say nothing: uniformly random arms have them too. Here, if
the learner is replaced by one that plays uniformly or never, nature chooses another gap, and the exponents change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from scipy.stats import binom

from driftsack.verify.exponents import exact_exponent
from driftsack.verify.statement import (
    CONSISTENT,
    FAILS,
    FALSE_AS_PRINTED,
    SLACK,
    Case,
    Effort,
    Finding,
    Rate,
    Statement,
    judge_correction,
)

LEARNS_NOTHING: Final = "a learner that plays uniformly, always one arm, or never"
Game = Callable[[float, float, float], float]  # value by V, T and b


def wrong_pulls_of_rewards(length: int, gap: float) -> float:
    r"""Expected wrong pulls in a phase if one arm earns 1 with probability (1 + Δ)/2 and the other with (1 - Δ)/2.

    A pull of either arm votes for the better arm with probability (1 + Δ)/2, so the majority of t votes is wrong with
    probability :math:`P(\mathrm{Bin}(t, (1 + \Delta)/2) < t/2) + \tfrac12 P(= t/2)`.

    >>> wrong_pulls_of_rewards(1, 0.5), wrong_pulls_of_rewards(2, 0.5)
    (0.5, 0.75)
    """
    votes = np.arange(length)
    below = binom.cdf(np.ceil(votes / 2) - 1, votes, (1.0 + gap) / 2.0)
    equal = np.where(votes % 2 == 0, binom.pmf(votes // 2, votes, (1.0 + gap) / 2.0), 0.0)
    return round(float((below + 0.5 * equal).sum()), 9)


def wrong_pulls_of_costs(length: int, low: float, high: float) -> float:
    r"""A lower bound on wrong pulls in a phase if one arm costs 1 with probability ``low``, the other with ``high``.

    The learner is shown the costs of both arms, and pulls the one with fewer: after t rounds it is wrong with
    probability :math:`P(S > S') + \tfrac12 P(S = S')`, where S has the law Bin(t, low) and S' the law Bin(t, high).
    This falls with t, and is computed at every t up to 50 and then at growing intervals.

    >>> round(wrong_pulls_of_costs(2, 0.25, 0.75), 6)
    0.75
    """
    times = sorted({*range(min(length, 50)), *np.geomspace(50, max(length, 51), 160).astype(int).tolist()})
    times = [t for t in times if t < length]
    total = 0.0
    for t, until in zip(times, [*(t for t in times[1:]), length], strict=True):
        later = until - 1  # the largest t of the interval has the smallest probability
        k = np.arange(min(later, int(high * later + 10.0 * math.sqrt(high * later) + 20.0)) + 1)
        wrong = float(binom.pmf(k, later, high) @ (binom.sf(k, later, low) + 0.5 * binom.pmf(k, later, low)))
        total += (until - t) * wrong
    return total


def value_of_rewards(variation: float, horizon: float, _rate: float) -> float:
    """The regret per phase times the number of phases, for nature's best phase length; the gap is at most 1."""

    def regret(length: int) -> float:
        gap = min(variation * length / horizon, 1.0)
        return horizon / length * gap * wrong_pulls_of_rewards(length, gap)

    return best_length(regret, (horizon / variation) ** (2 / 3), horizon)


def value_of_costs(variation: float, horizon: float, rate: float) -> float:
    """The same for costs b and b + Δ in the first half: a wrong pull loses at least Δ/(b + Δ) (docs/theory-paper.md).

    The learner is shown more than a bandit sees, so this is a lower bound on the value.
    """

    def regret(length: int) -> float:
        gap = min(variation * length / (horizon / 2), 1.0 - rate)
        phases = horizon / 2 / length
        return phases * gap * wrong_pulls_of_costs(length, rate, rate + gap) / (rate + gap)

    return best_length(regret, (2 * rate) ** (1 / 3) * (horizon / 2 / variation) ** (2 / 3), horizon / 2)


def best_length(regret: Callable[[int], float], scale: float, longest: float) -> float:
    """The largest regret over phase lengths near ``scale``."""
    lengths = {min(max(math.ceil(scale * share), 1), int(longest)) for share in np.geomspace(0.4, 4.0, 7)}
    return max(map(regret, lengths))


def idle_value(variation: float, horizon: float, rate: float) -> float:
    """The smallest value if the learner learns nothing: nature lets the gap last as long as the variation allows."""
    longest = min(1.0, variation)  # the largest gap, with phases of T/V rounds or one of T rounds
    return horizon * longest / 2 / (1.0 + rate)


def exponents_of(
    game: Game, varied: Sequence[tuple[str, float, Sequence[float]]], base: dict[str, float]
) -> list[Rate]:
    """Fit the exponent of the value of a game in each varied quantity."""
    rates = []
    for name, expected, places in varied:
        values = [game(*({**base, name: place}[key] for key in ("V", "T", "b"))) for place in places]
        rates.append(exact_exponent(name, expected, places, values))
    return rates


def judge_exponents(rates: Sequence[Rate], note: str, factor: float) -> Finding:
    """Judge exact exponents by ``factor`` times those of the statement; the power is that of the best one."""
    gaps = [SLACK - abs(rate.value - factor * rate.expected) for rate in rates]
    power = max((abs(rate.value) - SLACK) / abs(rate.expected) for rate in rates)
    text = f"exponents of the value: {', '.join(f'{r.varied} {r.value:.3f} ({r.expected:.3f})' for r in rates)}; {note}"
    verdict = CONSISTENT if min(gaps) >= 0.0 else FAILS
    return Finding(verdict, len(rates), min(gaps), text, rates=tuple(rates), power=min(max(power, 0.0), 1.0))


def rewards(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check (i) for two arms: the value grows as V^(1/3) T^(2/3), and is at most T (as printed, it has no cap)."""
    game = idle_value if case is Case.TRIVIAL else value_of_rewards
    decade = (10.0, 31.6, 100.0)
    varied = [("V", 1 / 3, decade), ("T", 2 / 3, (1e4, 1e5, 1e6))]
    rates = exponents_of(game, varied, {"V": 10.0, "T": 1e5, "b": 0.5})
    share = game(10.0, 1e5, 0.5) / (2 * 10.0 * 1e10) ** (1 / 3)
    uncapped = (1_000 * 0.5) ** (1 / 3)  # m = 1000, V1 = T/2
    note = f"{share:.3f} of the rate at V = 10, T = 10⁵; for m = 1000 and V1 = T/2 the rate is {uncapped:.1f} T"
    return judge_correction(1.0 - uncapped, judge_exponents(rates, note, factor), "the printed rate may exceed T")


def costs(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check (ii) for two arms: the value grows as V^(1/3) and b^(-2/3), not as 1/b."""
    game = idle_value if case is Case.TRIVIAL else value_of_costs
    horizon = effort.pick(2_000_000, 50_000_000)
    rates_of_spending = (0.01, 0.03, 0.1) if effort.quick else (0.003, 0.01, 0.03, 0.1)
    varied = [("V", 1 / 3, (1.0, 3.0, 9.0)), ("b", -2 / 3, rates_of_spending)]
    base = {"V": 1.0, "T": float(horizon), "b": 0.1}
    rates = exponents_of(game, varied, base)
    share = game(1.0, base["T"], 0.1) / ((2 * base["T"] ** 2) ** (1 / 3) * 0.1 ** (-2 / 3))
    note = f"{share:.3f} of the rate at V = 1, b = 0.1"
    printed = SLACK - abs(rates[-1].value + 1.0)
    return judge_correction(printed, judge_exponents(rates, note, factor), "as printed the exponent of b is -1")


STATEMENTS = (
    Statement(
        "theorem-2-i",
        "Theorem 2 (i)",
        "every policy loses Ω(m^⅓ V1^⅓ T^⅔)",
        FALSE_AS_PRINTED,
        rewards,
        LEARNS_NOTHING,
        "the exponents",
    ),
    Statement(
        "theorem-2-ii",
        "Theorem 2 (ii)",
        "every policy loses Ω(m^⅓ V2^⅓ T^⅔ / b)",
        FALSE_AS_PRINTED,
        costs,
        LEARNS_NOTHING,
        "the exponents",
    ),
)
