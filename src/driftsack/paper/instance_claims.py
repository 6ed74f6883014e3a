"""Judge the claims of the experiments appendix about the instances: their optima, optimal policies, V and W.

They do not depend on the setting and are exact up to the discretisation of the instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from driftsack.paper.experiments import BEST
from driftsack.paper.judging import Evidence, JudgedClaim, Reading, Verdict, exactly

EXACT: Final = 1e-3  # relative: the printed optima are "up to discretisation", which is 1/T per step


def _optimum(
    evidence: Evidence, example: int, share: float, condition: Callable[[float], bool]
) -> tuple[Verdict, Mapping[str, Reading | float]]:
    """Whether LP-Dynamic is the printed share of T for all parameters that satisfy a condition."""
    wanted = share * evidence.horizon
    values = [value for parameter, value in evidence.optima(example).items() if condition(parameter)]
    right = all(abs(value - wanted) <= EXACT * wanted for value in values)
    numbers = {"printed": wanted, "least": min(values), "most": max(values)}
    return exactly(right), numbers


def optimum_1(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 1."""
    return JudgedClaim("optimum_1", "Example 1: OPT(T) = T/2.", *_optimum(evidence, 1, 0.5, lambda _: True))


def optimum_2(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 2."""
    return JudgedClaim("optimum_2", "Example 2: OPT(T) = T/2.", *_optimum(evidence, 2, 0.5, lambda _: True))


def optimum_3(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 3 for every α, as the text states it."""
    return JudgedClaim(
        "optimum_3", "Example 3: OPT(T) = T/4 for every α.", *_optimum(evidence, 3, 0.25, lambda _: True)
    )


def optimum_3_late(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 3 where the budget can be spent before the change."""
    found = _optimum(evidence, 3, 0.25, lambda alpha: alpha >= 0.5)
    return JudgedClaim("optimum_3_late", "Example 3: OPT(T) = T/4 for α ≥ 1/2.", *found)


def optimum_4(evidence: Evidence) -> JudgedClaim:
    """OPT of Example 4."""
    return JudgedClaim("optimum_4", "Example 4: OPT(T) = 0.375 T.", *_optimum(evidence, 4, 0.375, lambda _: True))


def _described(evidence: Evidence, example: int, text: str) -> JudgedClaim:
    """Whether the policy that the text describes is feasible and earns the optimum."""
    best = evidence.optima(example)
    wanted = {parameter: value for parameter, value in best.items() if example != 3 or parameter >= 0.5}
    rewards, uses = (evidence.by_parameter(example, f"described_{name}") for name in ("reward", "use"))
    right = True
    for parameter, value in wanted.items():
        # In Example 4 the threshold may fall on either side of a round, twice in each period.
        slack = EXACT + (2 * parameter / evidence.horizon if example == 4 else 0.0)
        right &= abs(1.0 - rewards[parameter] / value) <= slack and uses[parameter] <= 1 + slack
    numbers = {
        "least share of the optimum": min(rewards[parameter] / value for parameter, value in wanted.items()),
        "largest share of a budget": max(uses[parameter] for parameter in wanted),
    }
    sentence = f"Example {example}: the optimal policy is {text}."
    return JudgedClaim(f"described_{example}", sentence, exactly(right), numbers)


def described_1(evidence: Evidence) -> JudgedClaim:
    """The optimal policy of Example 1."""
    return _described(evidence, 1, "the first arm in the first half, then the second")


def described_2(evidence: Evidence) -> JudgedClaim:
    """The optimal policy of Example 2."""
    return _described(evidence, 2, "both arms with equal chances in the first half, then the second")


def described_3(evidence: Evidence) -> JudgedClaim:
    """The optimal policy of Example 3, where the budget can be spent before the change."""
    return _described(evidence, 3, "both arms with equal chances, all resources in the first part (α ≥ 1/2)")


def described_4(evidence: Evidence) -> JudgedClaim:
    """The optimal policy of Example 4."""
    return _described(evidence, 4, "equal chances in the first half, then the second arm where it costs at most 0.5")


def _invariant(evidence: Evidence, example: int, measure: str, below: float) -> tuple[Verdict, Mapping[str, float]]:
    """Whether V or W is the same for all parameters below a limit."""
    values = [value for at, value in evidence.by_parameter(example, measure).items() if at < below]
    numbers = {"least": min(values), "most": max(values)}
    return exactly(numbers["most"] - numbers["least"] <= EXACT * numbers["most"]), numbers


def v_invariant_3(evidence: Evidence) -> JudgedClaim:
    """V of Example 3; at α = 1 there is no change, so V = 0."""
    found = _invariant(evidence, 3, "V", below=1.0)
    return JudgedClaim("v_invariant_3", "Example 3: V does not depend on α (α < 1).", *found)


def w_fixed_4(evidence: Evidence) -> JudgedClaim:
    """W of Example 4."""
    return JudgedClaim(
        "w_fixed_4", "Example 4: W does not depend on the frequency.", *_invariant(evidence, 4, "W", below=math.inf)
    )


def w_coincides(evidence: Evidence) -> JudgedClaim:
    """Figure 3."""
    ks, w1 = evidence.series(0, BEST, "W1")
    _, least = evidence.series(0, BEST, "W1_min")
    size = evidence.horizon
    gaps = [one.mean - two.mean for one, two in zip(w1, least, strict=True)]
    off = max(abs(two.mean - min(k, size - k)) for k, two in zip(ks, least, strict=True))
    middle = gaps[int(np.argmin([abs(k - size / 2) for k in ks]))]
    right = abs(middle) <= EXACT * size and off <= EXACT * size and max(gaps) > EXACT * size
    numbers = {"W1 - W1_min at T/2": middle, "largest W1 - W1_min": max(gaps), "largest error of min(k, T-k)": off}
    sentence = "W1_min = min(k, T - k); W1 is larger, but the two coincide at k = T/2."
    return JudgedClaim("w_coincides", sentence, exactly(right), numbers)


EXACT_CLAIMS: Final = (
    optimum_1,
    optimum_2,
    optimum_3,
    optimum_3_late,
    optimum_4,
    described_1,
    described_2,
    described_3,
    described_4,
    v_invariant_3,
    w_fixed_4,
    w_coincides,
)
"""Claims about the instances, which do not depend on the setting."""
