"""The values of the templates: numbers of a campaign as strings and widths of bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from driftsack.game.amounts import whole_units
from driftsack.service.domain.amounts import text_of
from driftsack.service.projections.choice import Choice
from driftsack.service.projections.plan import Planned, planned
from driftsack.service.projections.progress import Axis, Pace, axis_of, pace_of, recent_shares
from driftsack.service.projections.track import Track
from driftsack.service.web.pages import apprentice, limits, segments
from driftsack.service.web.pages.numbers import interval, named_costs, number, when

SMALL: Final = 24  # points of a small chart
MOST_SMALL: Final = 6  # small charts in a row
CURRENCIES: Final = {"usd": "dollar", "eur": "euro"}


class BudgetBar(NamedTuple):
    """A budget as a bar; amounts are strings, widths are percentages.

    Attributes:
        name: The resource.
        granted: The budget.
        spent: The amount spent.
        reserved: The amount reserved for pending decisions.
        left: The amount that can still be reserved.
        overrun: The amount spent beyond reservations; empty if none.
        spent_width: Width of the spent part.
        reserved_width: Width of the reserved part.
        plan_width: Position of an even pace; None if the end of the season is not known.
        pace: Description of the pace.
        is_off: Whether the budget will be used up before the end of the season.
    """

    name: str
    granted: str
    spent: str
    reserved: str
    left: str
    overrun: str
    spent_width: float
    reserved_width: float
    plan_width: float | None
    pace: str
    is_off: bool


def bars(track: Track) -> list[BudgetBar]:
    """Return the budgets of the current season."""
    axis, account = axis_of(track), track.account
    found = []
    for j, (name, k) in enumerate(zip(track.resources, track.exponents, strict=True)):
        granted, spent, reserved = account.granted[j], account.spent[j], account.reserved[j]
        whole = max(granted, spent + reserved, 1)
        pace = pace_of(track, axis, j)
        found.append(
            BudgetBar(
                name=name,
                granted=number(text_of(granted, k)),
                spent=number(text_of(spent, k)),
                reserved=number(text_of(reserved, k)),
                left=number(text_of(granted - spent - reserved, k)),
                overrun=number(text_of(account.overrun[j], k)) if account.overrun[j] else "",
                spent_width=round(100 * spent / whole, 2),
                reserved_width=round(100 * reserved / whole, 2),
                plan_width=None if pace.elapsed is None else round(100 * pace.elapsed * granted / whole, 2),
                pace=pace_text(pace, axis),
                is_off=pace.exhausted is not None,
            )
        )
    return found


def pace_text(pace: Pace, axis: Axis) -> str:
    """Describe spending compared with an even pace.

    >>> pace_text(Pace(0.5, 0.25, 0.6), Axis(False, 0.0, 25.0, 100.0))
    '50% spent after 25% of the requests; used up after 60% at this rate'
    """
    if pace.elapsed is None:
        return f"{pace.spent:.0%} spent"
    text = f"{pace.spent:.0%} spent after {pace.elapsed:.0%} of the {'period' if axis.by_time else 'requests'}"
    return text if pace.exhausted is None else f"{text}; used up after {pace.exhausted:.0%} at this rate"


def price_text(resource: str, price: float) -> str:
    """Describe the shadow price of a budget.

    >>> price_text("usd", 2.98), price_text("seconds", 0.1)
    ('One more dollar would earn about 3 more reward.', 'One more second would earn about 0.1 more reward.')
    """
    if price <= 1e-12:
        return f"More {resource} would earn nothing now: this budget does not limit the plan."
    unit = CURRENCIES.get(resource, resource.removesuffix("s") if not resource.endswith("ss") else resource)
    return f"One more {unit} would earn about {number(price, 2)} more reward."


def outcome(choice: Choice, resources: Sequence[str]) -> str:
    """Describe the outcome of a decision.

    >>> outcome(Choice(0.5, "told", 1.0, [0.05]), ["usd"])
    'It was told: reward 1, costs 0.05 usd.'
    """
    costs = "" if choice.costs is None else named_costs(choice.costs, resources)
    return {
        "skipped": "The policy skipped the request, so there is no outcome.",
        "pending": "It is waiting for its outcome.",
        "told": f"It was told: reward {choice.reward or 0.0:g}, costs {costs}.",
        "cancelled": f"It was cancelled with costs {costs}.",
        "lost": "Its outcome did not arrive within the lease, so the worst case was charged.",
    }[choice.state]


def arms(track: Track) -> list[dict[str, Any]]:
    """Return a row for each arm: share, estimates, and whether it is offered."""
    estimates = track.estimates()
    lately = [recent_shares(track, [arm]) if track.number else [] for arm in range(len(track.arms))]
    observed = [count / max(track.shadow.observations, 1) for count in track.shadow.own]  # by the user's own rule
    return [
        {
            "number": arm,
            "name": name,
            "offered": arm not in track.retired,
            "share": f"{lately[arm][-1] if lately[arm] else observed[arm]:.0%}",
            "line": small_line(lately[arm]),
            "outcomes": estimates[arm].reward.size,
            "reward": interval(estimates[arm].reward),
            "costs": [interval(cost) for cost in estimates[arm].costs],
        }
        for arm, name in enumerate(track.arms)
    ]


def small_line(values: list[float]) -> str:
    """Return the points of a small chart of shares, 100 wide and 24 high."""
    if not values:
        return ""
    step = max(len(values) // SMALL, 1)
    kept = values[::-1][::step][::-1]
    if len(kept) == 1:
        kept = kept * 2
    return " ".join(f"{100 * k / (len(kept) - 1):.1f},{23 - 22 * value:.1f}" for k, value in enumerate(kept))


def alarms(track: Track) -> list[dict[str, Any]]:
    """Return the latest drift alarms, with the evidence."""
    found = []
    for alarm in reversed(track.alarms):
        what = "reward" if alarm.stream == 0 else f"{track.resources[alarm.stream - 1]} per request"
        up = alarm.after.mean > alarm.before.mean
        found.append(
            {
                "when": when(alarm.at),
                "decision": alarm.decision,
                "title": f"{track.arms[alarm.arm]}: {what} went {'up' if up else 'down'}",
                "before": interval(alarm.before),
                "before_count": alarm.before.size,
                "after": interval(alarm.after),
                "after_count": alarm.after.size,
            }
        )
    return found


def refusals(track: Track) -> list[dict[str, Any]]:
    """Return the latest outcomes that were refused because their cost is absurd, newest first."""
    return [
        {"when": when(each.at), "decision": each.number, "costs": named_costs(each.costs, track.resources)}
        for each in reversed(track.refusals)
    ]


def regret_text(plan: Planned) -> str:
    """Format the regret with its 95% interval."""
    if not plan.regret:
        return "not known yet"
    return f"{number(plan.regret[-1])} ± {number(plan.error[-1])}"


def card(track: Track, done: bool) -> dict[str, Any]:
    """Return the values of a campaign in the list."""
    return {
        "name": track.name,
        "damaged": "",
        "state": track.state,
        "done": done,
        "bars": bars(track),
        "arms": arms(track)[:MOST_SMALL],
        "more_arms": max(len(track.arms) - MOST_SMALL, 0),
        "decisions": f"{track.number:,}",
        "observed": f"{track.shadow.observations:,}",
        "reward": number(track.reward),
        "alarms": len(track.alarms),
        "overruns": track.overruns,
        "refused": track.refused,
        "lost": track.lost,
    }


def details(track: Track, done: bool) -> dict[str, Any]:
    """Return the values of a campaign on its own page."""
    plan = planned(track)
    prices = [column[-1] for column in plan.prices if column]
    return {
        **card(track, done),
        "arms": arms(track),
        "resources": track.resources,
        "pending": f"{track.pending:,}",
        "told": f"{track.told:,}",
        "late": f"{track.late:,}",
        "lost": f"{track.lost:,}",
        "overruns": f"{track.overruns:,}",
        "skipped": f"{track.skipped:,}",
        "sentences": [price_text(name, price) for name, price in zip(track.resources, prices, strict=False)],
        "warnings": blocked_texts(track),
        "regret": regret_text(plan),
        "alarm_list": alarms(track),
        "refusals": refusals(track),
        "latest": [latest(track, shown) for shown in reversed(track.shown.values())],
        "updated": when(track.at),
        "seq": track.seq,
        "policy": str(track.config.policy_spec.get("policy", "")),
        "apprentice": apprentice.shown(track),
        "contexts": segments.shown(track),
        "limits": limits.shown(track),
        "crossings": limits.crossings(track),
    }


def blocked_texts(track: Track) -> list[str]:
    """Return a warning for each resource of which all that is left is reserved, so that every arm is closed."""
    account, problem = track.account, track.config.problem()
    found = []
    for j, (name, k) in enumerate(zip(track.resources, track.exponents, strict=True)):
        smallest = whole_units(float(problem.cost_max_by_arm[j].min()), k, up=True)
        left = account.granted[j] - account.spent[j]
        if left - account.reserved[j] < smallest <= left:
            found.append(
                f"All that is left of {name} is reserved for pending decisions: requests are skipped until outcomes "
                "arrive. Tell the costs as soon as they are known, or pass caps."
            )
    return found


def latest(track: Track, shown: Any) -> dict[str, Any]:
    """Return a row of the table of latest decisions."""
    return {
        "number": shown.number,
        "when": when(shown.at),
        "arm": "skipped" if shown.arm < 0 else track.arms[shown.arm],
        "probability": f"{shown.probability:.0%}",
        "state": shown.state,
        "reward": "" if shown.reward is None else number(shown.reward),
    }
