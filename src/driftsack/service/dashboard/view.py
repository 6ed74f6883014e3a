"""What the templates show: the numbers of a campaign as words and lengths of bars."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from driftsack.service import messages as ms
from driftsack.service.amounts import text_of
from driftsack.service.dashboard import apprentice
from driftsack.service.dashboard.drift import Sample
from driftsack.service.dashboard.figures import share_of
from driftsack.service.dashboard.plan import Planned, planned
from driftsack.service.dashboard.progress import WIDE, Axis, axis_of, ends_at, season_buckets
from driftsack.service.dashboard.track import Track

ON_PACE: Final = 0.05  # of the budget that spending may be away from the plan
SMALL: Final = 24  # points of a small chart
MOST_SMALL: Final = 6  # small charts in a row
THOUSAND: Final = 1000


class BudgetBar(NamedTuple):
    """A budget as a bar.

    Attributes:
        name: The resource.
        granted: The budget, as text; the next ones too.
        spent: What was spent.
        reserved: What is reserved for decisions that wait.
        left: What may still be reserved.
        overrun: What was spent beyond reservations; empty if nothing was.
        spent_width: The length of the bar of ``spent``, in per cent; the next one too.
        reserved_width: That of ``reserved``.
        plan_width: Where the bar would end at an even pace; None if the end of the season is not known.
        pace: Whether spending is as planned, in words.
        is_off: Whether it is not.
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


def number(value: float | str | Decimal, digits: int = 3) -> str:
    """A number for people: a few digits, thousands apart.

    >>> number(1234.5), number(0.0123456), number(0), number(12), number("3.14159"), number(0.000085, 2)
    ('1,234', '0.0123', '0', '12', '3.14', '0.000085')
    """
    amount = float(value)
    if amount == 0:
        return "0"
    if abs(amount) >= THOUSAND:
        return f"{amount:,.0f}"
    text = f"{amount:.{digits}g}"
    return f"{Decimal(text):f}" if abs(amount) > 1e-9 else text  # noqa: PLR2004


def when(at: int) -> str:
    """A time, in UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def interval(sample: Sample) -> str:
    """An estimate with its 95% interval.

    >>> interval(Sample(100, 0.5, 0.05)), interval(Sample(0, 0.0, 0.0))
    ('0.5 ± 0.098', 'no outcome yet')
    """
    if sample.size == 0:
        return "no outcome yet"
    return number(sample.mean) if sample.error == 0 else f"{number(sample.mean)} ± {number(WIDE * sample.error, 2)}"


def span(mean: ms.Interval | None) -> str:
    """A mean with its 95% interval.

    >>> span(ms.Interval(0.5, 0.4, 0.6)), span(ms.Interval(1e-17, 1e-17, 1e-17)), span(None)
    ('0.5 ± 0.1', '0', '')
    """
    if mean is None:
        return ""
    if mean.low == mean.high:
        return number(round(mean.mean, 12))
    return f"{number(mean.mean)} ± {number(mean.high - mean.mean, 2)}"


def bars(track: Track) -> list[BudgetBar]:
    """The budgets of the present season."""
    axis, account = axis_of(track), track.account
    found = []
    for j, (name, k) in enumerate(zip(track.resources, track.exponents, strict=True)):
        granted, spent, reserved = account.granted[j], account.spent[j], account.reserved[j]
        whole = max(granted, spent + reserved, 1)
        share, elapsed = spent / max(granted, 1), axis.elapsed
        pace, is_off = pace_of(track, axis, j, share, elapsed)
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
                plan_width=None if elapsed is None else round(100 * elapsed * granted / whole, 2),
                pace=pace,
                is_off=is_off,
            )
        )
    return found


def pace_of(track: Track, axis: Axis, resource: int, share: float, elapsed: float | None) -> tuple[str, bool]:
    """Spending against an even pace, in words, and whether it will not last."""
    if elapsed is None:
        return f"{share:.0%} spent", False
    said = f"{share:.0%} spent after {elapsed:.0%} of the {'period' if axis.by_time else 'requests'}"
    buckets = season_buckets(track)
    spent = [float(bucket.spent[resource]) for bucket in buckets]
    left = float(buckets[-1].granted[resource] - buckets[-1].spent[resource]) if buckets else 0.0
    last = ends_at([axis.of(bucket) for bucket in buckets], spent, left)
    if share > elapsed + ON_PACE and last is not None and axis.end is not None and last < axis.end:
        where = (last - axis.start) / (axis.end - axis.start)
        return f"{said}; used up after {where:.0%} at this rate", True
    return said, False


def sentence(resource: str, price: float) -> str:
    """What a price means.

    >>> sentence("usd", 3.25), sentence("seconds", 0.1)
    ('One more usd is worth 3.25 of reward.', 'One more second is worth 0.1 of reward.')
    """
    if price <= 1e-12:  # noqa: PLR2004
        return f"More {resource} would earn nothing now: this budget does not limit the plan."
    unit = resource.removesuffix("s") if not resource.endswith("ss") else resource
    return f"One more {unit} is worth {number(price)} of reward."


def arms(track: Track) -> list[dict[str, Any]]:
    """A row for each arm: share, estimates, and whether it is offered."""
    estimates = track.estimates()
    lately = [share_of(track, [arm]) if track.number else [] for arm in range(len(track.arms))]
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
    """The points of a small chart of shares, 100 wide and 24 high."""
    if not values:
        return ""
    step = max(len(values) // SMALL, 1)
    kept = values[::-1][::step][::-1]
    if len(kept) == 1:
        kept = kept * 2
    return " ".join(f"{100 * k / (len(kept) - 1):.1f},{23 - 22 * value:.1f}" for k, value in enumerate(kept))


def alarms(track: Track) -> list[dict[str, Any]]:
    """The latest drift alarms, with the evidence."""
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


def regret_text(plan: Planned) -> str:
    """Live regret with its interval."""
    if not plan.regret:
        return "not known yet"
    return f"{number(plan.regret[-1])} ± {number(plan.error[-1])}"


def card(track: Track, done: bool) -> dict[str, Any]:
    """A campaign in the list."""
    return {
        "name": track.name,
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
        "lost": track.lost,
    }


def details(track: Track, done: bool) -> dict[str, Any]:
    """A campaign on its own page."""
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
        "sentences": [sentence(name, price) for name, price in zip(track.resources, prices, strict=False)],
        "regret": regret_text(plan),
        "alarm_list": alarms(track),
        "latest": [latest(track, shown) for shown in reversed(track.shown.values())],
        "updated": when(track.at),
        "seq": track.seq,
        "policy": str(track.config.policy.get("policy", "")),
        "apprentice": apprentice.shown(track, span),
    }


def latest(track: Track, shown: Any) -> dict[str, Any]:
    """One of the latest decisions."""
    return {
        "number": shown.number,
        "when": when(shown.at),
        "arm": "skipped" if shown.arm < 0 else track.arms[shown.arm],
        "probability": f"{shown.probability:.0%}",
        "state": shown.state,
        "reward": "" if shown.reward is None else number(shown.reward),
    }
