"""``Limits``: budgets within the budgets of a campaign, one for each label of a request.

An account moves as the budgets of the campaign do: a decision reserves its maximum cost, an outcome replaces this by
the cost, and an expired lease charges it. What was reserved in a period that has ended stays with that period. An event
names the accounts of its decision and when they end, so a replay needs neither a calendar nor these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from driftsack.core.errors import DriftsackError
from driftsack.game.amounts import whole_units
from driftsack.service.domain.accounts import HeldAccount, LabelAccounts, Saved
from driftsack.service.domain.amounts import amount_of
from driftsack.service.domain.calendar import SECOND, next_midnight
from driftsack.service.domain.config import IDLE, Config, Limit, zone_of
from driftsack.service.domain.refusals import Refusal

MOST_ACCOUNTS: Final = 2 * 10**6  # of a campaign
LOOKED_AT: Final = 2  # rows that each request looks at, so that there are at most twice as many as live accounts
Units = Sequence[int]


class LimitRule(NamedTuple):
    """A limit in grid units.

    Attributes:
        limit: The settings.
        resources: The numbers of the limited resources.
        amounts: The amount of each of them.
    """

    limit: Limit
    resources: tuple[int, ...]
    amounts: tuple[int, ...]


class Limits:
    """The limits of a campaign, and their accounts.

    Args:
        config: The settings of the campaign.
        exponents: (d,) the exponent of the grid of each resource.

    Raises:
        Refusal: A limit is for no resource, or contradicts itself.

    Attributes:
        rules: The limits.
        accounts: The accounts of each limit.
    """

    def __init__(self, config: Config, exponents: Sequence[int]) -> None:
        names = {name: j for j, name in enumerate(config.budget)}
        self.rules = tuple(_rule(limit, names, exponents) for limit in config.limits)
        self.accounts = [
            LabelAccounts(len(rule.resources), 0 if rule.limit.every else SECOND * (rule.limit.idle or IDLE))
            for rule in self.rules
        ]
        self._ends = [0] * len(self.rules)  # of the present periods

    def held(self, labels: Mapping[str, str], at: int) -> list[HeldAccount]:
        """Return the accounts that the labels of a request name, in the order of the limits.

        Raises:
            Refusal: A label is missing, or there are too many labels.
        """
        found = []
        for number, rule in enumerate(self.rules):
            label = labels.get(rule.limit.by)
            if label is not None:
                found.append(HeldAccount(number, label, self._end(number, at)))
            elif rule.limit.required:
                raise Refusal.invalid(
                    f"requests need the label {rule.limit.by!r}, by which the campaign limits them; send labels, such "
                    f'as {{"{rule.limit.by}": "ann"}}, or use a key that fixes it.'
                )
        if found and self.size() + len(found) > MOST_ACCOUNTS:
            self._check_room(found, at)
        return found

    def _check_room(self, held: list[HeldAccount], at: int) -> None:
        """Raise a refusal if labels would be new and there are too many accounts."""
        if any(self.accounts[each.limit].find(each.label, at) < 0 for each in held):
            raise Refusal(
                "too-many-labels",
                f"the campaign keeps accounts for {MOST_ACCOUNTS:,} labels; use fewer, or let them end earlier.",
                1,
            )

    def _end(self, number: int, at: int) -> int:
        """The time at which an account ends that is used now."""
        limit = self.rules[number].limit
        if limit.every is None:
            return at + self.accounts[number].idle
        if at >= self._ends[number]:
            self._ends[number] = next_midnight(at, limit.every, zone_of(limit.zone))
        return self._ends[number]

    def covers(self, held: HeldAccount, units: Units, at: int, only_spent: bool = False) -> bool:
        """Whether an account covers amounts.

        Args:
            units: (d,) the amounts, in grid units.
            only_spent: Whether to count as if nothing were reserved.
        """
        rule, accounts = self.rules[held.limit], self.accounts[held.limit]
        row = accounts.find(held.label, at)
        for k, (j, amount) in enumerate(zip(rule.resources, rule.amounts, strict=True)):
            used = 0 if row < 0 else accounts.spent(row, k) + (0 if only_spent else accounts.reserved(row, k))
            if units[j] > amount - used:
                return False
        return True

    def reserve(self, held: Sequence[HeldAccount], units: Units, at: int) -> None:
        """Reserve amounts for a decision."""
        for each in held:
            rule, accounts = self.rules[each.limit], self.accounts[each.limit]
            row = accounts.use(each.label, at, each.until)
            accounts.count_open(row, 1)
            for k, j in enumerate(rule.resources):
                accounts.move(row, k, units[j], 0, 0)
            accounts.sweep(at, LOOKED_AT)

    def charge(self, held: Sequence[HeldAccount], kept: Units, units: Units, pending: bool) -> None:
        """Replace the reservation of a decision, or its charge if it expired, by its costs.

        Args:
            kept: (d,) the reservation.
            units: (d,) the costs.
            pending: Whether the decision has not expired.
        """
        for each in held:
            rule, accounts = self.rules[each.limit], self.accounts[each.limit]
            row = accounts.place(each)
            for k, j in enumerate(rule.resources if row >= 0 else ()):
                released, charged = (kept[j], 0) if pending else (0, kept[j])
                accounts.move(row, k, -released, units[j] - charged, max(units[j] - kept[j], 0))

    def forfeit(self, held: Sequence[HeldAccount], kept: Units) -> None:
        """Charge the reservation of a pending decision."""
        self.charge(held, kept, kept, pending=True)

    def close(self, held: Sequence[HeldAccount], at: int) -> None:
        """Note that a decision can no longer be told."""
        for each in held:
            accounts = self.accounts[each.limit]
            row = accounts.place(each)
            if row >= 0:
                accounts.count_open(row, -1)
                accounts.stay(row, at + accounts.idle if accounts.idle else each.until)

    def ends(self, at: int) -> list[int]:
        """Return the end of the present period of each limit; 0 for those without periods."""
        return [next_midnight(at, one.every, zone_of(one.zone)) if one.every else 0 for one, *_ in self.rules]

    def set_clock(
        self, before: int, ends: Sequence[int], decisions: Iterable[Sequence[HeldAccount]]
    ) -> list[list[HeldAccount]]:
        """Set the clock back: accounts that had ended are forgotten, and the others end with the present periods.

        Args:
            before: The time before.
            ends: The ends of the present periods.
            decisions: The accounts of each decision that may still be told.

        Returns:
            The accounts of each of these decisions from now on.
        """
        live = [[each for each in held if self._is_live(each, before)] for held in decisions]
        for accounts, end in zip(self.accounts, ends, strict=True):
            accounts.set_clock(before, end)
        self._ends = [0] * len(self.rules)
        return [[HeldAccount(each.limit, each.label, ends[each.limit] or each.until) for each in held] for held in live]

    def _is_live(self, held: HeldAccount, at: int) -> bool:
        """Whether the account of a decision has neither ended nor been replaced."""
        accounts = self.accounts[held.limit]
        return accounts.place(held) >= 0 and accounts.find(held.label, at) >= 0

    def largest_overruns(self, held: Sequence[HeldAccount], overruns: Units) -> list[int]:
        """(d,) the overruns of the campaign, or of an account of a decision where that is larger."""
        found = list(overruns)
        for each in held:
            rule, accounts = self.rules[each.limit], self.accounts[each.limit]
            row = accounts.place(each)
            for k, j in enumerate(rule.resources if row >= 0 else ()):
                found[j] = max(found[j], accounts.overrun(row, k))
        return found

    def size(self) -> int:
        """The number of accounts in memory."""
        return sum(map(len, self.accounts))

    def sweep(self, at: int, count: int) -> None:
        """Free some of the accounts that have ended, if there are any."""
        for accounts in self.accounts:
            if len(accounts):
                accounts.sweep(at, count)

    def live(self, at: int) -> list[dict[str, tuple[int, ...]]]:
        """Return the accounts at a time, by limit and label."""
        return [accounts.live(at) for accounts in self.accounts]

    def save(self) -> list[Saved]:
        """Return the accounts for a snapshot."""
        return [accounts.save() for accounts in self.accounts]

    def restore(self, saved: Sequence[Saved]) -> None:
        """Take the accounts of a snapshot.

        Raises:
            ValueError: They are those of other limits.
        """
        for accounts, one in zip(self.accounts, saved, strict=True):
            accounts.restore(one)


def _rule(limit: Limit, names: Mapping[str, int], exponents: Sequence[int]) -> LimitRule:
    """Return a limit in grid units.

    Raises:
        Refusal: It is for no resource, or contradicts itself.
    """
    unknown = [name for name in limit.amount if name not in names]
    if unknown:
        raise Refusal.invalid(f"the limit by {limit.by} must be for some of {list(names)}, got {unknown[0]!r:.60}.")
    if limit.every is not None and limit.idle is not None:
        raise Refusal.invalid(f"the limit by {limit.by} has a period; idle is for limits without one, omit it.")
    zone_of(limit.zone)
    resources = tuple(names[name] for name in limit.amount)
    given = [amount_of(amount, f"the limit of {name} by {limit.by}") for name, amount in limit.amount.items()]
    try:
        units = [whole_units(amount, exponents[j], up=False) for amount, j in zip(given, resources, strict=True)]
    except DriftsackError as error:
        raise Refusal.invalid(f"the limit by {limit.by}: {error}") from error
    return LimitRule(limit, resources, tuple(units))
