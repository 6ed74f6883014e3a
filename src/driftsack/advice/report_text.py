"""The findings of advice as text: a summary paragraph, and cautions where an assumption may not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from driftsack.advice.candidates import ADAPTS, FORGETS, PLANS, REMEMBERS, RESTARTS
from driftsack.advice.fit import FEW_PULLS
from driftsack.advice.units import amount, enumeration, of_resource, of_reward, plain_name, worth_of_units
from driftsack.core.checks import ROUNDING
from driftsack.core.text import number, percent
from driftsack.logs.lenient import name_key
from driftsack.measures.drift_kind import NEGLIGIBLE, DriftKind, explain

if TYPE_CHECKING:
    from driftsack.advice.advice import Advice
    from driftsack.logs import Survey

FAMILY_TEXT: Final = {
    ADAPTS: "learns how much of the past still applies and when spending pays off",
    REMEMBERS: "learns from all rounds",
    FORGETS: "learns from the most recent rounds only",
    RESTARTS: "learns from the rounds since the last detected change",
    PLANS: "follows a spending plan computed from the log and learns the rest",
}
SHORT_LOG: Final = 20  # pulls of the most played arm, below which a log is too short to detect drift
HOURLY_DAYS: Final = 7  # of a log, below which the hour of a change is stated
MAX_LISTED: Final = 3  # changes or arms that are listed individually
LOOSE_SHARE: Final = 0.2  # a maximum is loose if no outcome exceeds this share of it


def findings(advice: Advice) -> list[str]:
    """Write the findings: drift and its kind, the recommended policy, foresight, contexts and the value of budget."""
    if advice.worth.best <= 0:
        return [drift_text(advice), zero_optimum_text(advice)]
    drift = f"{drift_text(advice)} {kind_text(advice)}"
    texts = (write(advice) for write in (recommendation_text, foresight_text, context_text, budget_text))
    return [drift, *(text for text in texts if text)]


def kind_text(advice: Advice) -> str:
    """Say what drift changes, or that it cannot be told from noise."""
    optima = advice.worth.optima
    if advice.kind == DriftKind.HARMLESS and max(optima.timing, optima.tracking) >= NEGLIGIBLE:
        return (
            "The gain from following the drift with this budget cannot be told from noise: estimates of "
            f"{percent(max(optima.tracking, 0.0))} of the optimum by tracking the changes and "
            f"{percent(max(optima.timing, 0.0))} by planning when to spend would also come from noise alone."
        )
    return explain(advice.kind, optima)


def drift_text(advice: Advice) -> str:
    """Say whether drift was detected, when, and where it is strongest."""
    drift, rows = advice.drift, advice.survey.rows
    if not drift.found and advice.survey.pulls.max() < SHORT_LOG:
        return f"The log of {rows:,} rounds is too short to detect drift."
    if not drift.found:
        smallest = drift.measures["w1"].floor_high / rows  # 0 if rewards never vary
        size = number(smallest * advice.survey.reward_max, digits=2)
        hidden = f" Changes of a mean reward below about {size} would not be detected in a log of this length."
        return f"No drift detected in {rows:,} rounds ({p_text(drift.p_value)})." + hidden * (smallest > ROUNDING)
    arm, quantity = drift.where
    strongest = f"strongest in the {quantity} of arm {arm} ({p_text(drift.p_value)} under no drift)."
    changes = [round_text(advice, change) for change in advice.fit.changes.tolist()]
    if len(changes) > MAX_LISTED:
        return f"Drift detected, either gradual or with {len(changes)} change points, {strongest}"
    rounds = "" if advice.survey.calendar is not None else f"round{'s' * (len(changes) > 1)} "
    return f"Drift detected around {rounds}{enumeration(changes)}, {strongest}"


def round_text(advice: Advice, change: int) -> str:
    """Format a round of the log, from 0: with its date if the log has dates."""
    calendar = advice.survey.calendar
    if calendar is None:
        return f"{change + 1:,}"
    day = calendar.at(change)
    clock = f" {day:%H:%M}" if calendar.days < HOURLY_DAYS else ""
    return f"{day.day} {day:%B %Y}{clock} (round {change + 1:,})"


def p_text(p_value: float) -> str:
    """Format a p-value.

    >>> p_text(0.005), p_text(0.4)
    ('p < 0.01', 'p = 0.40')
    """
    return "p < 0.01" if p_value < 0.01 else f"p = {p_value:.2f}"


def recommendation_text(advice: Advice) -> str:
    """Name the recommended policy and its simulated performance."""
    best, horizon, rows = advice.recommended, advice.world.horizon, advice.survey.rows
    low, high = advice.ranges.best
    remembering = max(one.share for one in advice.standings if one.candidate.family == REMEMBERS)
    others = f"; the best policy that never forgets earned {percent(remembering)}" if best.share > remembering else ""
    optimum = of_reward(advice.ranges.expected, advice.reward_name)
    basis = "the last periods of the log" if advice.periods >= 2 else "the log and its later parts"
    title = "Recommended policy" if advice.by_context is None else "Best policy without contexts"
    course = "the log" if horizon == rows else f"the log's {rows:,} rounds, scaled to this length"
    return (
        f"If the next {horizon:,} rounds follow the course of {course}, the best possible plan earns about "
        f"{optimum} (95% interval {amount(low)} to {amount(high)}). {title}: "
        f"{best.candidate.name}, which {FAMILY_TEXT[best.candidate.family]}. In simulations on instances resampled "
        f"from {basis} it earned {percent(best.share)} of the optimum (95% range {percent(best.low)} to "
        f"{percent(best.high)}, including random variation){others}."
    )


def foresight_text(advice: Advice) -> str:
    """Divide the gap to the optimum into the price of not knowing the future and the cost of learning."""
    known, share = advice.present, advice.recommended.share
    earned = (
        "A policy that knew the present means but not the future would earn "
        f"{percent(known.even)} at an even pace and {percent(known.two_speed)} at two speeds"
    )
    if known.best <= share:
        return f"{earned}, so learning costs nothing that could be measured; more would need foresight."
    return (
        f"{earned}: of the {percent(1.0 - share)} that are missing, {percent(1.0 - known.best)} would need foresight, "
        f"and {percent(known.best - share)} are the cost of learning and of random outcomes."
    )


def context_text(advice: Advice) -> str:
    """State the value of contexts and whether to use them; empty without contexts."""
    found = advice.context
    if found is None:
        return ""
    names = f"The contexts ({enumeration(list(found.features))})"
    if found.worth is None:
        return f"{names} were not used, because what they are worth cannot be estimated: {found.reason}"
    worth = found.worth
    interval = f"(95% interval {amount(worth.low)} to {amount(worth.high)})"
    # A plan that sees the contexts may earn more, and so may a policy that has to learn to use them.
    if not worth.pays:
        return (
            f"{names} do not pay as far as the log shows: seeing them changed the reward of a plan by "
            f"{amount(worth.gain)} {interval}, on rows of the log that it was not made from."
        )
    share = f", {percent(worth.gain / worth.without)}" if worth.without > 0 else ""
    finding = (
        f"are worth about {amount(worth.gain)}{share} {interval}: a plan that sees them earned this much more, on rows "
        "of the log that it was not made from"
    )
    if not found.pays:
        return (
            f"{names} {finding}. But a policy has to learn how to use them, and in simulations over this horizon "
            f"{type(found.policy).__name__} did not earn more than {advice.recommended.candidate.name}."
        )
    return (
        f"{names} {finding}. Recommended policy: {type(found.policy).__name__}, which decides by them and earned "
        f"{percent(found.ratio - 1.0)} more than {advice.steady.candidate.name} in simulations on an instance fitted "
        "to the log."
    )


def budget_text(advice: Advice) -> str:
    """Name the scarcest resource and the effect of more or less of it."""
    value, names = advice.worth, advice.survey.resources
    j = int(np.argmax(value.more))
    if value.more[j] < 1e-4 * value.best:
        return "More budget would not increase the reward: no resource is scarce."
    low, high = advice.ranges.more[:, j]
    tenth = of_resource(0.1 * float(advice.world.problem.budget[j]), names[j])
    return (
        f"The scarcest resource is {plain_name(names[j])}: 10% more of it ({tenth}) would earn "
        f"{of_reward(float(value.more[j]), advice.reward_name, more=True)} ({percent(value.more[j] / value.best)}; 95% "
        f"interval {amount(low)} to {amount(high)}), 10% less would earn {amount(-value.less[j])} less; "
        f"{worth_of_units(float(value.prices[j]), names[j], advice.reward_name)}."
    )


def zero_optimum_text(advice: Advice) -> str:
    """Explain why nothing can be earned."""
    if advice.fit.means[:, :, 0].any():
        why = "Nothing can be earned with this budget, whatever the policy."
    else:
        why = "Nothing can be earned, whatever the policy: no arm in the log has a reward above 0."
    return f"{why} Recommended policy: {advice.recommended.candidate.name}."


def log_notes(advice: Advice) -> str:
    """State the maxima taken from the log, lost outcomes and repeated rows; empty if there are none."""
    survey = advice.survey
    texts = (maxima_note(survey, advice.reward_name), lost_note(survey), repeated_note(survey), *survey.lenient)
    return " ".join(text for text in texts if text)


def maxima_note(survey: Survey, reward: str) -> str:
    """State the maxima that were taken from the log."""
    maxima = dict(zip(("reward", *survey.resources), (survey.reward_max, *survey.cost_max), strict=True))
    own = {"reward": reward}
    taken = [f"{own.get(name, name)} {amount(maxima[name])}" for name in survey.inferred]
    if not taken:
        return ""
    return (
        f"Taken as the largest possible outcomes, because none in the log is larger: {enumeration(taken)}. If larger "
        "ones are possible, pass reward_max or cost_max."
    )


def lost_note(survey: Survey) -> str:
    """State how many outcomes were lost."""
    if not survey.lost:
        return ""
    return f"Rounds whose outcome was lost: {survey.lost:,} of {survey.rows:,}; nothing was learnt from them."


def repeated_note(survey: Survey) -> str:
    """State how many rows repeat an earlier one, and what was done with them."""
    if not survey.repeated:
        return ""
    count = f"Rows that repeat an earlier row in every column: {survey.repeated:,}"
    if survey.without_repeats:
        return f"{count}, which were left out."
    return (
        f"{count}, which were kept; pass drop_duplicates=True (--drop-duplicates) "
        "if they were written twice by mistake."
    )


def caution(advice: Advice) -> str:
    """Write the cautions that apply; empty if there are none."""
    texts = (
        similar_names_caution(advice.survey),
        timing_caution(advice),
        rare_arms_caution(advice),
        loose_maximum_caution(advice),
        overshoot_caution(advice),
        unseen_timing_caution(advice),
    )
    return " ".join(text for text in texts if text)


def similar_names_caution(survey: Survey) -> str:
    """Warn about arms whose names differ only by case and blanks, with the number of their outcomes."""
    groups: dict[str, list[str]] = {}
    for arm, pulls in zip(survey.arms, survey.pulls.tolist(), strict=True):
        groups.setdefault(name_key(arm), []).append(f"{arm!r} ({pulls:,})")
    alike = [" and ".join(group) for group in groups.values() if len(group) > 1]
    if not alike:
        return ""
    return (
        f"Names of arms that differ only by case or blanks: {'; '.join(alike)}. They were counted as different arms; "
        "if they are the same, pass merge_names=True (--merge-names)."
    )


def timing_caution(advice: Advice) -> str:
    """Warn if the recommended policy assumes that the timing of the log repeats."""
    steady = advice.steady
    if advice.by_context is not None or advice.recommended.candidate.family != PLANS:
        return ""
    recommended_share, steady_share = advice.shifted
    return (
        "The recommended policy assumes that the timing of the log repeats: with changes a tenth of the horizon "
        f"earlier or later, it earned {percent(recommended_share)} of the optimum. If the timing may differ, use: "
        f"{steady.candidate.name} ({percent(steady.share)}, and {percent(steady_share)} with changes earlier or later)."
    )


def unseen_timing_caution(advice: Advice) -> str:
    """Say why no plan was considered although planning would pay, if the log covers too few horizons."""
    if advice.kind != DriftKind.WHEN or advice.periods >= 2:
        return ""
    rows, horizon = advice.survey.rows, advice.world.horizon
    return (
        "Planning the spending would need to know when things change. The log covers "
        f"{rows:,} rounds, less than two horizons of {horizon:,}, so it cannot show whether its timing recurs, and no "
        "plan was considered; if you know that it does, see PlanWithForecast and SpendingPlan."
    )


def rare_arms_caution(advice: Advice) -> str:
    """Warn about arms with too few observations."""
    arms = zip(advice.survey.arms, advice.survey.pulls.tolist(), strict=True)
    rare = [f"{arm} ({pulls:,})" for arm, pulls in arms if pulls < FEW_PULLS]
    if not rare:
        return ""
    more = f" and {len(rare) - MAX_LISTED:,} more" if len(rare) > MAX_LISTED else ""
    return (
        f"Arms played fewer than {FEW_PULLS} times are poorly known: {', '.join(rare[:MAX_LISTED])}{more}. Play them "
        "more often before relying on results that depend on them."
    )


def loose_maximum_caution(advice: Advice) -> str:
    """Warn about maxima that are far above all outcomes in the log."""
    survey = advice.survey
    names, maxima = ("reward", *survey.resources), (survey.reward_max, *survey.cost_max)
    loose = [
        f"the {name} was at most about {amount(largest * most)}, far below its maximum of {amount(most)}"
        for name, most, largest in zip(names, maxima, advice.fit.largest.tolist(), strict=True)
        if 0 < largest <= LOOSE_SHARE
    ]
    if not loose:
        return ""
    return (
        f"In the log {', and '.join(loose)}. All candidates except Adaptive explore in proportion to these maxima: "
        "pass a smaller reward_max or cost_max if no outcome can exceed it."
    )


def overshoot_caution(advice: Advice) -> str:
    """Explain the optimum if candidates earned more than LP-Dynamic."""
    if not advice.overshoots:
        return ""
    return (
        "Single costs are large relative to this budget, and a policy plays until a cost exceeds it. The optimum that "
        "is stated is that of a budget that is larger by the largest cost, which no policy exceeds on average."
    )
