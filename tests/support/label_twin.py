"""The slow twin of limits by label: every decision in exact decimal numbers, summed up again for each question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.config import Limit
from driftsack.service.domain.views import label_accounts

Amounts = dict[str, Decimal]


def period(at: int, limit: Limit) -> str:
    """The name of the period of a time; two times with the same name are in one period."""
    day = datetime.fromtimestamp(at / 1000, ZoneInfo(limit.zone))
    if limit.every == "month":
        return f"{day:%Y-%m}"
    return f"{day:%Y-%m-%d}" if limit.every == "day" else f"{day - timedelta(days=day.weekday()):%Y-%m-%d}"


@dataclass
class Entry:
    """A decision: its labels, its time, when it was last used, and what it reserves and has spent."""

    labels: dict[str, str]
    at: int
    kept: Amounts
    reserved: Amounts
    spent: Amounts
    is_open: bool = True
    used: int = 0
    forgotten: set[int] = field(default_factory=set)


class LabelTwin:
    """The decisions of a campaign with limits.

    Args:
        limits: The limits.
    """

    def __init__(self, limits: Sequence[Limit]) -> None:
        self._limits, self._entries = limits, dict[int, Entry]()
        self._asked: dict[str, str] = {}

    def check(self, command: ms.Ask, answer: ms.Decided, at: int) -> str:
        """Say what is wrong with an answer: some limit covers nothing if it refuses, and all cover what it reserves."""
        self._asked = dict(command.labels or {})
        reserved = {name: Decimal(amount) for name, amount in answer.reserved.items()}
        short = [k for k in range(len(self._limits)) if not self._fits(k, reserved, at)]
        if not answer.skipped and short:
            return f"{answer} passes the limits {short}"
        if answer.reason == "limit":
            least = min(Decimal((command.caps or {}).get("usd", "0.1")), Decimal("0.1"))
            worst = {"usd": least, "sec": Decimal(0)}
            if all(self._fits(k, worst, at) for k in range(len(self._limits))):
                return f"{answer}, but every limit covers {worst}"
        return ""

    def follow(self, events: Sequence[Any], campaign: Campaign) -> None:
        """Take what has happened."""
        for event in events:
            if isinstance(event, journal.Asked) and event.arm is not None and event.arm >= 0:
                kept = self._decimals(campaign, event.reserved)
                entry = Entry(self._asked, event.at, kept, kept, dict.fromkeys(kept, Decimal(0)), used=event.at)
                self._forget(entry)
                self._entries[event.number] = entry
            elif isinstance(event, journal.Expired):
                for number in event.numbers:
                    entry = self._entries[number]
                    if any(entry.reserved.values()):
                        entry.reserved, entry.spent = dict.fromkeys(entry.kept, Decimal(0)), entry.kept
            elif isinstance(event, (journal.Told, journal.Cancelled, journal.Billed)):
                entry = self._entries[event.number]
                entry.reserved = dict.fromkeys(entry.kept, Decimal(0))
                costs = [Decimal(repr(cost)) for cost in event.costs]
                entry.spent = dict(zip(campaign.resources, costs, strict=True))
                if not isinstance(event, journal.Billed):
                    entry.is_open, entry.used = False, event.at
            elif isinstance(event, journal.Dropped):
                for number in event.numbers:
                    self._entries[number].is_open, self._entries[number].used = False, event.at

    def disagreement(self, campaign: Campaign, at: int) -> str:
        """Where the accounts of a campaign are not the sums of its decisions; empty if that is nowhere."""
        for by in ("user", "run"):
            for label in (f"{by}{k}" for k in range(3)):
                rows = label_accounts(campaign, by, label, at).accounts
                expected = [
                    (Decimal(amount), *self._sums(k, label, name, at))
                    for k, limit in enumerate(self._limits)
                    if limit.by == by
                    for name, amount in limit.amount.items()
                ]
                found = [tuple(Decimal(text) for text in (row.amount, row.spent, row.reserved)) for row in rows]
                if found != expected:
                    return f"{by}={label}: {found}, expected {expected}"
        return ""

    def _decimals(self, campaign: Campaign, units: list[int]) -> Amounts:
        pairs = zip(campaign.resources, units, campaign.exponents, strict=True)
        return {name: Decimal(amount).scaleb(-k) for name, amount, k in pairs}

    def _fits(self, number: int, amounts: Amounts, at: int) -> bool:
        limit = self._limits[number]
        label = self._asked.get(limit.by)
        if label is None:
            return True
        return all(
            sum(self._sums(number, label, name, at)) + amounts.get(name, Decimal(0)) <= Decimal(most)
            for name, most in limit.amount.items()
        )

    def _sums(self, number: int, label: str, name: str, at: int) -> tuple[Decimal, Decimal]:
        """What a label has spent and reserved."""
        counted = self._counted(number, label, at)
        zero = Decimal(0)
        return sum((e.spent[name] for e in counted), zero), sum((e.reserved[name] for e in counted), zero)

    def _counted(self, number: int, label: str, at: int) -> list[Entry]:
        """The decisions that count towards a limit at a time."""
        limit = self._limits[number]
        mine = [e for e in self._entries.values() if e.labels.get(limit.by) == label and number not in e.forgotten]
        if limit.every is not None:
            return [entry for entry in mine if period(entry.at, limit) == period(at, limit)]
        idle = 1000 * (limit.idle or 0)
        alive = any(entry.is_open or at < entry.used + idle for entry in mine)
        return mine if alive else []

    def _forget(self, new: Entry) -> None:
        """Let earlier decisions count no more towards limits that have forgotten the label of a new one."""
        for number, limit in enumerate(self._limits):
            label = new.labels.get(limit.by)
            if limit.every is None and label is not None and not self._counted(number, label, new.at):
                for entry in self._entries.values():
                    if entry.labels.get(limit.by) == label:
                        entry.forgotten.add(number)
