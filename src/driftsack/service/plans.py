"""Plans: what a command would do to a campaign. It is checked against the state, and nothing changes.

A plan is an event that is to happen, or an answer if nothing is to happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from driftsack.game.amounts import MOST_UNITS
from driftsack.service import journal, views
from driftsack.service import messages as ms
from driftsack.service.amounts import amount_of
from driftsack.service.book import Record
from driftsack.service.calendar import seconds_between
from driftsack.service.refusals import Refusal

if TYPE_CHECKING:
    from driftsack.service.campaign import Campaign

MOST_PENDING: Final = 100_000
MOST_OVERRUN: Final = MOST_UNITS // 8  # grid units in a season: with the largest budget, a sum that the database holds
SECOND: Final = 1000


def _ask(campaign: Campaign, command: ms.Ask, common: dict[str, Any], _: int) -> Any:
    book = campaign.book
    if book.state in ("paused", "watching"):
        return skipped(book.state)
    offered, caps = checked_terms(campaign, command)
    if not _any_fits(campaign, offered, caps):
        return skipped("budget")
    lease = command.lease or campaign.config.lease
    until = common["tick"] + lease * SECOND
    return journal.Asked(number=book.number + 1, until=until, open=offered, caps=caps, **common)


def checked_terms(
    campaign: Campaign, command: ms.Ask, more: int = 1
) -> tuple[list[int] | None, list[float | None] | None]:
    """Refuse what a campaign cannot decide; nothing is changed.

    Args:
        campaign: The campaign, neither paused nor watching.
        command: The request.
        more: The number of decisions that it adds to those that wait.

    Returns:
        The arms that it may use, by number, and (d,) its caps; None for no limit.

    Raises:
        Refusal: The campaign decides nothing more, too many decisions wait, or the request is not valid.
    """
    book = campaign.book
    if book.state != "active":
        raise Refusal("campaign-closed", f"the campaign is {book.state}; no more decisions are made.")
    if book.pending + more > MOST_PENDING:
        raise Refusal("too-many-pending", f"{MOST_PENDING:,} decisions wait for an outcome; tell them first.", 1)
    offered = None if command.open is None else [campaign.arm_number(name) for name in command.open]
    fallback = campaign.problem.fallback
    if offered is not None and fallback is not None and fallback not in offered:
        name = campaign.problem.arm_names[fallback]
        raise Refusal.invalid(f"open must include the fallback {name!r}, which answers every request.")
    return offered, None if command.caps is None else _caps(campaign, command.caps)


def _caps(campaign: Campaign, given: dict[str, Any]) -> list[float | None]:
    """(d,) the caps that matter: one of ``cost_max`` or more limits nothing, and the ledger may not hold it."""
    pairs = zip(_amounts(campaign, given, "caps", partial=True), campaign.problem.cost_max, strict=True)
    return [None if cap is None or cap >= most else cap for cap, most in pairs]


def _any_fits(campaign: Campaign, offered: list[int] | None, caps: list[float | None] | None) -> bool:
    """Whether the budgets cover the worst case of some arm that is offered; usually they cover all."""
    retired = campaign.book.retired
    if offered is None and len(retired) < len(campaign.worst) and campaign.covers(campaign.largest_worst):
        return True
    arms = range(len(campaign.worst)) if offered is None else offered
    return any(arm not in retired and campaign.fits(arm, caps) for arm in arms)


def _tell(campaign: Campaign, command: ms.Tell, common: dict[str, Any], number: int) -> Any:
    costs = _costs(campaign, command)
    record = campaign.book.open.get(number)
    if record is None:
        return again(campaign, command, number, campaign.record(number))
    _check_size(campaign, costs, record.reserved, record.season)
    return journal.Told(number=number, reward=command.reward, costs=costs, **common)


def _cancel(campaign: Campaign, command: ms.Cancel, common: dict[str, Any], number: int) -> Any:
    costs = _costs(campaign, command)
    record = campaign.book.open.get(number)
    if record is None:
        return again(campaign, command, number, campaign.record(number))
    _check_size(campaign, costs, record.reserved, record.season)
    return journal.Cancelled(number=number, costs=costs, **common)


def _extend(campaign: Campaign, command: ms.Extend, common: dict[str, Any], number: int) -> Any:
    _pending(campaign, number)
    return journal.Extended(number=number, until=common["tick"] + command.lease * SECOND, **common)


def _forfeit(campaign: Campaign, _: ms.Forfeit, common: dict[str, Any], number: int) -> Any:
    record = campaign.book.open.get(number)
    if record is not None and record.kind == "expired":
        return views.settled(campaign, number, record)
    _pending(campaign, number)
    return journal.Expired(numbers=[number], **common)


def _observe(campaign: Campaign, command: ms.Observe, common: dict[str, Any], _: int) -> Any:
    if campaign.book.state != "watching":
        raise Refusal(
            "not-watching",
            f"the campaign is {campaign.book.state}; observations are for campaigns that watch, ask for decisions.",
        )
    arm, costs = campaign.arm_number(command.arm), _amounts(campaign, command.costs, "costs")
    _check_size(campaign, costs, [0] * len(costs), campaign.book.season)
    return journal.Observed(arm=arm, reward=command.reward, costs=costs, probability=command.probability, **common)


def _grant(campaign: Campaign, command: ms.Grant, common: dict[str, Any], _: int) -> Any:
    given = _amounts(campaign, command.amounts, "amounts", partial=True)
    return journal.Granted(amounts=[amount or 0.0 for amount in given], **common)


def _arm(campaign: Campaign, command: ms.AddArm, common: dict[str, Any], _: int) -> Any:
    if command.name in campaign.arms:
        raise Refusal("name-taken", f"there is an arm {command.name!r}; slots are never reused, choose a new name.")
    own = list(campaign.problem.cost_max)
    costs = own if command.cost_max is None else _amounts(campaign, command.cost_max, "cost_max")
    return journal.ArmAdded(name=command.name, cost_max=costs, **common)


def _offer(_: Campaign, command: ms.OfferArm, common: dict[str, Any], number: int) -> Any:
    return journal.ArmOffered(arm=number, offered=command.offered, **common)


def _patch(campaign: Campaign, command: ms.Patch, common: dict[str, Any], _: int) -> Any:
    state = command.state
    if state is None and command.rounds_left is not None:
        return journal.Revised(rounds_left=command.rounds_left, **common)
    if state is None or command.rounds_left is not None:
        raise Refusal.invalid("give either state or rounds_left.")
    if campaign.book.state in ("draining", "closed") and state != "closed":
        raise Refusal("campaign-closed", f"the campaign is {campaign.book.state} and cannot be {state} again.")
    if campaign.book.state == "watching" and state == "paused":
        raise Refusal("still-watching", "the campaign makes no decisions yet; switch it on (active) or close it.")
    period = None
    if campaign.book.state == "watching" and state == "active" and campaign.config.period and campaign.book.following:
        period = seconds_between(common["at"], campaign.book.following)
    return journal.StateChanged(state=state, period=period, **common)


def again(campaign: Campaign, command: Any, number: int, record: Record) -> ms.Settled:
    """Answer a command about a decision that is settled: as the first time if it has the same content.

    Args:
        campaign: The campaign.
        command: The command.
        number: The number of the decision.
        record: The decision.

    Returns:
        The answer.

    Raises:
        Refusal: The decision was settled in another way.
    """
    told = isinstance(command, ms.Tell)
    if told or isinstance(command, ms.Cancel):
        found = (record.kind, record.reward, record.costs)
        if found == ("told" if told else "cancelled", command.reward if told else None, _costs(campaign, command)):
            return views.settled(campaign, number, record)
    raise Refusal(
        "already-settled", f"decision {number} is {record.kind} with another content; tell each decision once."
    )


def _costs(campaign: Campaign, command: ms.Tell | ms.Cancel) -> list[float]:
    """The costs of an outcome; 0 if nothing is said about those of a decision that is cancelled."""
    return [0.0] * len(campaign.exponents) if command.costs is None else _amounts(campaign, command.costs, "costs")


def _pending(campaign: Campaign, number: int) -> Record:
    record = campaign.book.open.get(number) or campaign.record(number)
    if record.kind != "pending":
        raise Refusal("already-settled", f"decision {number} is {record.kind}.")
    return record


def _amounts(campaign: Campaign, given: dict[str, Any], what: str, partial: bool = False) -> list[Any]:
    """Amounts in the order of the resources."""
    unknown = [name for name in given if name not in campaign.resources]
    missing = [] if partial else [name for name in campaign.resources if name not in given]
    if unknown or missing:
        raise Refusal.invalid(f"{what} must be for {list(campaign.resources)}, got {list(given)[:16]}.")
    return [amount_of(given[name], f"{what} of {name}") if name in given else None for name in campaign.resources]


def _check_size(campaign: Campaign, costs: list[float], reserved: list[int], season: int) -> None:
    """Refuse costs so far above what was reserved that the ledger and the database could not hold the excess."""
    overrun = campaign.book.accounts[season].overrun
    for cost, kept, beyond, (fine, coarse) in zip(costs, reserved, overrun, campaign.factors, strict=True):
        if cost * fine / coarse - kept + beyond > MOST_OVERRUN:
            raise Refusal.invalid("costs must be amounts that the ledger can hold; are they in other units?")


def skipped(reason: Any) -> ms.Decided:
    """The answer to a request for which nothing was decided, and nothing happened."""
    return ms.Decided(None, None, True, reason, 0.0, {}, 0)


PLANS: Final[dict[type, Any]] = {
    ms.Ask: _ask,
    ms.Tell: _tell,
    ms.TellOne: _tell,
    ms.Cancel: _cancel,
    ms.Extend: _extend,
    ms.Forfeit: _forfeit,
    ms.Observe: _observe,
    ms.Grant: _grant,
    ms.AddArm: _arm,
    ms.OfferArm: _offer,
    ms.Patch: _patch,
}
