"""Admission: which arms the limits leave to a request, and which limit refuses it if they leave none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from driftsack.service.domain import messages as ms
from driftsack.service.domain import views
from driftsack.service.domain.accounts import HeldAccount
from driftsack.service.domain.state import CampaignState

Caps = list[float | None] | None


class RefusedByLimit(NamedTuple):
    """A request that a limit refuses.

    Attributes:
        answer: The answer to it.
        held: The account that refuses it.
        least: (d,) the smallest maximum cost of an arm that could serve it without limits, in grid units.
    """

    answer: ms.Decided
    held: HeldAccount
    least: list[int]


def offered_arms(state: CampaignState, offered: list[int] | None) -> list[int]:
    """Return the arms that a request may use, without retired ones."""
    arms = range(len(state.worst)) if offered is None else offered
    return [arm for arm in arms if arm not in state.book.retired]


def closed_by_limits(
    state: CampaignState, held: Sequence[HeldAccount], offered: list[int] | None, caps: Caps, at: int
) -> list[int]:
    """Return the arms whose maximum cost one of the accounts does not cover; usually they cover all."""
    covers = state.limits.covers
    if all(covers(each, state.largest_worst, at) for each in held):
        return []
    return [
        arm for arm in offered_arms(state, offered) if not all(covers(each, state.most(arm, caps), at) for each in held)
    ]


def refused_by_limit(
    state: CampaignState, held: Sequence[HeldAccount], offered: list[int] | None, caps: Caps, at: int
) -> RefusedByLimit:
    """Return the refusal of a request to which the limits leave no arm that the budgets cover.

    It names the first limit that closes all arms by itself, if there is one, and rather one that would do so even if
    nothing were reserved.
    """
    amounts = [state.most(arm, caps) for arm in offered_arms(state, offered)]

    def refuses(each: HeldAccount, how: Callable[[Iterable[object]], bool], only_spent: bool) -> bool:
        return how(not state.limits.covers(each, units, at, only_spent) for units in amounts)

    ways = ((all, True), (all, False), (any, True), (any, False))
    by, is_exhausted = next((each, spent) for how, spent in ways for each in held if refuses(each, how, spent))
    limit, answer = state.limits.rules[by.limit].limit, views.skipped("limit")
    resets = None if limit.every is None else by.until
    answer.limit = ms.LimitReached(limit.by, by.label, limit.every, resets, is_exhausted)
    return RefusedByLimit(answer, by, [min(column) for column in zip(*amounts, strict=True)])
