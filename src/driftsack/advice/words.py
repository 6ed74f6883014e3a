"""The findings in words that a person who decides can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from driftsack.advice.candidates import FORGETS, PLANS, REMEMBERS, RESTARTS
from driftsack.advice.fit import FEW_PULLS
from driftsack.advice.worth import HARMLESS, STILL, WHEN
from driftsack.core.checks import ROUNDING

if TYPE_CHECKING:
    from driftsack.advice.advise import Advice

MEANS: Final = {
    REMEMBERS: "learns from every round since the start",
    FORGETS: "learns from the latest rounds only",
    RESTARTS: "learns from the rounds since the last change that it noticed",
    PLANS: "spends by a plan made from the log and learns the rest",
}
SHORT: Final = 20  # pulls of some arm, below which a log cannot show that a world stands still
FEW: Final = 3  # changes, or arms, that are named one by one
LOOSE: Final = 0.2  # of a told maximum: where no outcome is above it, the maximum is loose
ABOVE: Final = 1.02  # of the optimum: who earns more was helped by chance


def summary(advice: Advice) -> str:
    """The first paragraph: does it move, does it matter, what to do, what is budget worth."""
    if advice.worth.best <= 0:
        return f"{moves(advice)} {nothing(advice)}"
    return " ".join([moves(advice), matters(advice), recommends(advice), budget(advice)])


def moves(advice: Advice) -> str:
    """Whether the log drifts, and when."""
    seen, brief = advice.drift, advice.survey
    if not seen.found and brief.pulls.max() < SHORT:
        return f"These {brief.rows:,} rounds are too few to tell whether your world moves."
    if not seen.found:
        least = seen.measures["w1"].floor_high / brief.rows
        size = f"{least * brief.reward_max:.2g} in an average reward would not show in a log of this length"
        hidden = f" (movements of less than about {size})" if least > ROUNDING else ""  # none where nothing varies
        return (
            f"We see no drift in these {brief.rows:,} rounds: a world that stands still would look at least this "
            f"restless {amount_of_chance(seen.p_value)}{hidden}."
        )
    changes = [f"{change + 1:,}" for change in advice.fit.changes.tolist()]
    when = f"around round {' and '.join(changes)}" if len(changes) <= FEW else f"in {len(changes)} steps or slowly"
    arm, quantity = seen.where
    return (
        f"Your world moves, {when}, most clearly the {quantity} of arm {arm}; a world that stands still would look "
        f"like this {amount_of_chance(seen.p_value)}."
    )


def amount_of_chance(p_value: float) -> str:
    """How often chance does it.

    >>> amount_of_chance(0.005), amount_of_chance(0.4)
    ('less than once in 100 times', '40 times in 100')
    """
    return "less than once in 100 times" if p_value < 0.01 else f"{100 * p_value:.0f} times in 100"  # noqa: PLR2004


def matters(advice: Advice) -> str:
    """Whether drift moves what to play or when to spend, or nothing that a budget cares for."""
    value = advice.worth
    if advice.kind == STILL:
        return "So keep what you learn: nothing here asks for forgetting."
    if advice.kind == HARMLESS:
        return (
            "But for this budget it hardly matters: one fixed mix of arms, never changed, could earn "
            f"{percent(value.fixed / value.best)} of the optimum."
        )
    if advice.kind == WHEN:
        return (
            f"What moves is above all WHEN to spend: spending evenly gives up {percent(value.timing)} of what can be "
            "earned, and forgetting the past does not bring that back; a plan does."
        )
    return (
        f"What moves is WHICH arm is best: following the changes is worth {percent(value.tracking)} of what can be "
        f"earned, planning when to spend {percent(max(value.timing, 0.0))}; forgetting the past helps."
    )


def recommends(advice: Advice) -> str:
    """The policy, what it earned, and what others would have."""
    best, horizon = advice.recommended, advice.world.horizon
    low, high = advice.ranges.best
    keeps = max(standing.share for standing in advice.standings if standing.candidate.family == REMEMBERS)
    others = f"; the best policy that forgets nothing earned {percent(keeps)}" if best.share > keeps else ""
    rows = advice.survey.rows
    course = "go as the log did" if horizon == rows else f"take the course of the log's {rows:,}, stretched"
    return (
        f"If the next {horizon:,} rounds {course}, the best possible plan earns about "
        f"{amount(advice.ranges.expected)} ({amount(low)} to {amount(high)}). We recommend: {best.candidate.name}, "
        f"which {MEANS[best.candidate.family]}. In simulations of worlds like yours it earned {percent(best.share)} "
        f"of what was possible there ({percent(best.low)} to {percent(best.high)}, luck included){others}."
    )


def caution(advice: Advice) -> str:
    """What the recommendation takes for granted, and what to do if that is not so; empty if nothing."""
    return " ".join(text for text in (timing(advice), few(advice), loose(advice), lucky(advice)) if text)


def timing(advice: Advice) -> str:
    """Whether the recommended policy trusts the log's timing."""
    steady = advice.steady
    if advice.recommended.candidate.family != PLANS:
        return ""
    off, safe = advice.shifted
    return (
        "The recommended policy trusts the log's timing to come again: where things come a tenth of the horizon "
        f"earlier or later it earned {percent(off)}. If you do not trust the timing, take: {steady.candidate.name} "
        f"({percent(steady.share)}, and {percent(safe)} where things come earlier or later)."
    )


def few(advice: Advice) -> str:
    """The arms of which a few pulls say little."""
    arms = zip(advice.survey.arms, advice.survey.pulls.tolist(), strict=True)
    rare = [f"{arm} ({pulls:,})" for arm, pulls in arms if pulls < FEW_PULLS]
    if not rare:
        return ""
    more = f" and {len(rare) - FEW:,} more" if len(rare) > FEW else ""
    return (
        f"Arms tried fewer than {FEW_PULLS} times are known badly: {', '.join(rare[:FEW])}{more}. If anything rests on "
        "them, try them more often first."
    )


def loose(advice: Advice) -> str:
    """The told maxima that are far above everything in the log."""
    brief = advice.survey
    names, told = ("reward", *brief.resources), (brief.reward_max, *brief.cost_max)
    wide = [
        f"the {name} was at most about {amount(seen * most)}, far below its maximum of {amount(most)}"
        for name, most, seen in zip(names, told, advice.fit.largest.tolist(), strict=True)
        if 0 < seen <= LOOSE
    ]
    if not wide:
        return ""
    return (
        f"In the log {', and '.join(wide)}. Policies explore in units of these maxima: pass a smaller reward_max or "
        "cost_max if nothing can exceed it."
    )


def lucky(advice: Advice) -> str:
    """Whether shares of the optimum are above all."""
    if max(standing.share for standing in advice.standings) <= ABOVE:
        return ""
    return (
        "Some candidates earned more than 100% of the optimum, which counts on averages: single costs are so large "
        "beside this budget that chance decides when it is gone. Read the shares as a ranking only."
    )


def nothing(advice: Advice) -> str:
    """What to say where the optimum is 0."""
    why = "with this budget" if advice.fit.means[:, :, 0].any() else "by this log, in which no arm ever earned anything"
    return f"Nothing can be earned {why}, whatever the policy. We recommend: {advice.recommended.candidate.name}."


def budget(advice: Advice) -> str:
    """What budget is worth."""
    value, names = advice.worth, advice.survey.resources
    j = int(np.argmax(value.more))
    if value.more[j] < 1e-4 * value.best:
        return "More budget would earn nothing: no resource is scarce."
    low, high = advice.ranges.more[:, j]
    return (
        f"The scarcest resource is {names[j]}: 10% more of it would earn {amount(value.more[j])} more "
        f"({percent(value.more[j] / value.best)}; {amount(low)} to {amount(high)}), 10% less would cost "
        f"{amount(-value.less[j])}; one more unit is worth {amount(value.prices[j])}."
    )


def percent(share: float) -> str:
    """A share for people.

    >>> percent(0.974), percent(0.0042)
    ('97%', '0.4%')
    """
    return f"{share:.0%}" if share == 0 or abs(share) >= 0.01 else f"{share:.1%}"  # noqa: PLR2004


def amount(value: float) -> str:
    """A number for people.

    >>> amount(1071.3), amount(0.4142), amount(-20.66)
    ('1,071', '0.414', '-20.7')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"  # noqa: PLR2004
