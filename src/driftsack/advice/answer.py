"""The answer of advice: the present rule beside the recommended policy, and what to do, in three sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from driftsack.advice.candidates import PLANS
from driftsack.advice.units import amount, enumeration, of_resource, of_reward, plain_name, worth_of_units
from driftsack.core.text import percent
from driftsack.measures.drift_kind import DriftKind

if TYPE_CHECKING:
    from driftsack.advice.advice import Advice

SAME: Final = 0.005  # relative differences below this are not stated
NO_GAIN: Final = 0.0005  # of the optimum: gains below it are stated as 0%
LEAST_SHARE: Final = 0.005  # of the first mix that is listed


def answer(advice: Advice) -> str:
    """Say what the present rule earns and what the recommended policy would earn, a day or over the horizon."""
    scale, period = per_period(advice)
    low, high = reward_interval(advice)
    expected, reward = advice.expected, advice.reward_name

    def earned(value: float) -> str:
        return of_reward(value * scale, reward)

    would = f"{earned(expected)} {period} (95% interval {amount(low * scale)} to {amount(high * scale)})"
    own = advice.own_rule
    if own is None:
        return f"With this budget, {advice.policy_name} would earn {would}."
    spent = enumeration(
        [of_resource(cost * scale, name) for cost, name in zip(own.costs, advice.survey.resources, strict=True)]
    )
    verb = "earns" if advice.survey.calendar is None else "earned"
    present = f"Your present rule {verb} {earned(own.reward)} {period} for {spent}"
    within = own.reward * own.covered
    if own.covered < 1.0 - SAME:
        present += f"; this budget covers {percent(own.covered)} of that, with which it would earn {earned(within)}"
    text = f"{present}. With this budget, {advice.policy_name} would earn {would}{_compared(expected, within)}"
    if own.enough is None:
        return f"{text}."
    if own.enough > 1.0 - SAME:
        return f"{text}, and the same as now for the same spending."
    less = enumeration(
        [
            of_resource((1.0 - own.enough) * cost * scale, name)
            for cost, name in zip(own.costs, advice.survey.resources, strict=True)
            if cost > 0
        ]
    )
    return f"{text}; or the same as now for {less} {period} less ({percent(1.0 - own.enough)} less)."


def comparison(advice: Advice) -> tuple[list[str], list[list[str]]]:
    """Return the titles and rows of the answer as a table: reward and spending now and with the recommended policy."""
    (scale, period), own, problem = per_period(advice), advice.own_rule, advice.world.problem
    names = advice.survey.resources
    # The columns: the present rule, the recommended policy, and the same reward as now.
    columns = {
        f"with {advice.policy_name}": [
            of_reward(advice.expected * scale, advice.reward_name),
            *(f"at most {of_resource(most * scale, name)}" for most, name in zip(problem.budget, names, strict=True)),
        ]
    }
    if own is not None:
        earned = of_reward(own.reward * scale, advice.reward_name)
        for title, part in (("your present rule", 1.0), ("the same for less", own.enough)):
            if part is not None:
                spent = [of_resource(part * cost * scale, name) for cost, name in zip(own.costs, names, strict=True)]
                columns[title] = [earned, *spent]
    titles = [title for title in dict.fromkeys(["your present rule", *columns]) if title in columns]
    heads = [f"earned {period}", *(f"{plain_name(name)} {period}" for name in names)]
    return ["", *titles], [[head, *(columns[title][k] for title in titles)] for k, head in enumerate(heads)]


def actions(advice: Advice) -> list[str]:
    """Say what to do: which policy, when or which to watch, and what to do about the budget."""
    return [_use(advice), _watch(advice), _spend(advice)]


def per_period(advice: Advice) -> tuple[float, str]:
    """Return the factor from the horizon to the period of the answer, and the period in words."""
    horizon, calendar = advice.world.horizon, advice.survey.calendar
    if calendar is None:
        return 1.0, f"in {horizon:,} rounds"
    rounds_a_day = advice.survey.rows / calendar.days
    if rounds_a_day > horizon:  # the horizon is less than a day
        return rounds_a_day / 24.0 / horizon, "an hour"
    return rounds_a_day / horizon, "a day"


def reward_interval(advice: Advice) -> tuple[float, float]:
    """Return the 95% interval of the policy's reward: the errors of the optimum and of its share, combined."""
    expected, ranges, share = advice.expected, advice.ranges, advice.recommended
    if ranges.expected <= 0 or share.share <= 0:
        return expected, expected
    ends = []
    for optimum, part in ((ranges.best[0], share.low), (ranges.best[1], share.high)):
        error = np.hypot(optimum / ranges.expected - 1.0, part / share.share - 1.0)
        ends.append(float(error) * expected)
    return max(expected - ends[0], 0.0), expected + ends[1]


def first_mix_text(advice: Advice) -> str:
    """List the first mix of the learner, the largest shares first."""
    mix = advice.first_mix
    shares = sorted(mix.items(), key=lambda item: -item[1])
    parts = [f"{name} {percent(share)}" for name, share in shares if share >= LEAST_SHARE]
    rest = 1.0 - sum(mix.values())
    return enumeration(parts + [f"no arm {percent(rest)}"] * (rest >= LEAST_SHARE)) or "no arm"


def _use(advice: Advice) -> str:
    """Which policy to use, what it has learnt, and how it begins."""
    rounds = advice.rounds_taught
    learnt = f"has learnt {rounds:,} rounds of the log" if rounds else "begins without experience"
    average = ", on average over the last requests" if advice.by_context is not None else ""
    return (
        f"Use {advice.policy_name}: the saved learner {learnt}, and its first mix is {first_mix_text(advice)}{average}."
    )


def _watch(advice: Advice) -> str:
    """What drift asks for, with the estimated gains."""
    optima, kind = advice.worth.optima, advice.kind
    which, when = (percent(gain if gain > NO_GAIN else 0.0) for gain in (optima.tracking, optima.timing))
    gains = f"following which arm is best is worth {which} of the optimum, choosing when to spend {when}"
    if kind == DriftKind.STATIONARY:
        return (
            "Go on using old data: no drift was detected, so nothing must be forgotten and no time to spend is better."
        )
    if kind == DriftKind.HARMLESS:
        return f"Nothing needs to be done about the drift: {gains}, which is small or would also come from noise alone."
    if kind == DriftKind.WHICH:
        return f"Let the policy change arms: {gains}."
    if advice.by_context is None and advice.recommended.candidate.family == PLANS:
        return f"Follow the spending plan of the policy: {gains}."
    return f"Let the policy spend unevenly instead of fixing an amount per day: {gains}."


def _spend(advice: Advice) -> str:
    """What to do about the budget."""
    value, names, j = advice.worth, advice.survey.resources, int(np.argmax(advice.worth.more))
    if value.best <= 0 or value.more[j] < 1e-4 * value.best:
        return "Do not buy more budget: no resource is scarce, so more would not earn more."
    worth = worth_of_units(float(value.prices[j]), names[j], advice.reward_name)
    return f"If you can spend more, add {plain_name(names[j])}: {worth}."


def _compared(expected: float, present: float) -> str:
    """How much more or less than the present rule."""
    if present <= 0 or abs(expected / present - 1.0) < SAME:
        return ""
    return f", {percent(abs(expected / present - 1.0))} {'more' if expected > present else 'less'}"
