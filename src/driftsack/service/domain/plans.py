"""Plans: the event that a command leads to, or the answer if nothing is to change.

A command is checked against the state of the campaign, which stays as it is.
"""

from __future__ import annotations

import hmac
from typing import Any, Final

from driftsack.game.amounts import MOST_UNITS
from driftsack.service.domain import journal, views
from driftsack.service.domain import messages as ms
from driftsack.service.domain.admission import Caps, closed_by_limits, offered_arms, refused_by_limit
from driftsack.service.domain.amounts import amount_of
from driftsack.service.domain.book import Record
from driftsack.service.domain.calendar import SECOND, seconds_between
from driftsack.service.domain.contexts import encoded
from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.state import CampaignState
from driftsack.service.domain.views import skipped

MOST_PENDING: Final = 100_000
MOST_OVERRUN: Final = MOST_UNITS // 8  # grid units in a season: added to the largest budget, it fits into the database


def _ask(state: CampaignState, command: ms.Ask, common: dict[str, Any], _: int) -> Any:
    book = state.book
    if book.state in ("paused", "watching"):
        return skipped(book.state)
    offered, caps = checked_terms(state, command)
    context = encoded(state, command.context)
    # Close the arms that a limit does not cover; a must may overspend the budgets, but no limit.
    held = state.limits.held(command.labels or {}, common["at"]) if state.limits.rules else []
    limited = closed_by_limits(state, held, offered, caps, common["at"]) if held else []
    left = [arm for arm in offered_arms(state, offered) if arm not in limited] if limited else offered
    if not _may_serve(state, left, caps, command.must):
        if limited and _may_serve(state, offered, caps, command.must):
            return refused_by_limit(state, held, offered, caps, common["at"])
        return skipped("budget")
    lease = command.lease or state.config.lease
    until = common["tick"] + lease * SECOND
    costs = None if command.costs is None else listed_costs(state, command.costs)
    terms: dict[str, Any] = {"open": offered, "caps": caps, "must": command.must, "costs": costs, "context": context}
    return journal.Asked(number=book.number + 1, until=until, held=held, limited=limited, **terms, **common)


def checked_terms(
    state: CampaignState, command: ms.Ask, more: int = 1
) -> tuple[list[int] | None, list[float | None] | None]:
    """Check a request for decisions against a campaign that is neither paused nor watching.

    Args:
        state: The campaign.
        command: The request.
        more: The number of pending decisions that it adds.

    Returns:
        The numbers of the arms that it may use, and (d,) its caps; None for no limit.

    Raises:
        Refusal: The campaign is closed, too many decisions are pending, or the request is not valid.
    """
    book = state.book
    if book.state != "active":
        raise Refusal("campaign-closed", f"the campaign is {book.state}; no more decisions are made.")
    if book.pending + more > MOST_PENDING:
        raise Refusal("too-many-pending", f"{MOST_PENDING:,} decisions wait for an outcome; tell them first.", 1)
    offered = None if command.open is None else [state.arm_number(name) for name in command.open]
    left = set(range(state.problem.arms) if offered is None else offered) - set(book.retired)
    if (command.must or state.problem.fallbacks) and not left:
        raise Refusal.invalid("a request that must be served needs an arm that may serve it; open lists retired ones.")
    if command.costs is not None:
        listed_costs(state, command.costs)
    return offered, None if command.caps is None else _caps(state, command.caps)


def _caps(state: CampaignState, given: dict[str, Any]) -> list[float | None]:
    """(d,) the effective caps: one of ``cost_max`` or more limits nothing, and may be too large for the ledger."""
    pairs = zip(_amounts(state, given, "caps", partial=True), state.problem.cost_max, strict=True)
    return [None if cap is None or cap >= most else cap for cap, most in pairs]


def listed_costs(state: CampaignState, given: dict[str, Any]) -> list[list[float | None] | None]:
    """(d, m) the price list of a request; None where a resource or an arm is left out.

    Raises:
        Refusal: The policy cannot use it, or it is for other resources or arms.
    """
    policy = state.learner.policy
    if not policy.known_costs:
        raise Refusal.invalid(f"{type(policy).__name__} cannot use listed costs; omit costs, or use Adaptive.")
    unknown = [name for name in given if name not in state.resources]
    if unknown:
        raise Refusal.invalid(f"costs must be for some of {list(state.resources)}, got {list(given)[:16]}.")
    return [_listed_row(state, name, given[name]) if name in given else None for name in state.resources]


def _listed_row(state: CampaignState, name: str, given: Any) -> list[float | None]:
    """(m,) the listed costs of a resource, which are given for all arms or by arm."""
    what = f"costs of {name}"
    if not isinstance(given, dict):
        return [amount_of(given, what)] * state.problem.arms
    row: list[float | None] = [None] * state.problem.arms
    for arm, amount in given.items():
        row[state.arm_number(arm)] = amount_of(amount, what)
    return row


def _may_serve(state: CampaignState, offered: list[int] | None, caps: Caps, must: bool) -> bool:
    """Whether the budgets cover one of the arms or, for a request that must be served, the ledger can hold one."""
    return _any_fits(state, offered, caps) or (must and _any_holds(state, offered, caps))


def _any_holds(state: CampaignState, offered: list[int] | None, caps: Caps) -> bool:
    """Whether the ledger can hold the reservation of an offered arm, whatever the budgets."""
    account, retired = state.book.account, state.book.retired
    for arm in range(len(state.worst)) if offered is None else offered:
        rows = zip(account.spent, account.reserved, account.granted, state.most(arm, caps), strict=True)
        if arm not in retired and all(s + r + most - g <= MOST_OVERRUN for s, r, g, most in rows):
            return True
    return False


def _any_fits(state: CampaignState, offered: list[int] | None, caps: Caps) -> bool:
    """Whether the budgets cover the maximum cost of at least one offered arm; usually they cover all."""
    retired = state.book.retired
    if offered is None and len(retired) < len(state.worst) and state.covers(state.largest_worst):
        return True
    return any(state.fits(arm, caps) for arm in offered_arms(state, offered))


def is_blocked(state: CampaignState, command: ms.Ask) -> bool:
    """Whether a request that no budget covers would be covered if nothing were reserved for pending decisions."""
    offered, caps = checked_terms(state, command)
    return any(state.owns(state.most(arm, caps)) for arm in offered_arms(state, offered))


def _tell(state: CampaignState, command: ms.Tell, common: dict[str, Any], number: int) -> Any:
    reward, costs = command.reward, None if command.costs is None else _costs(state, command)
    if reward is None and costs is None:
        raise Refusal.invalid("tell needs the reward, the costs, or both; cancel the decision if neither will arrive.")
    record = state.book.open.get(number)
    if record is None:
        return again(state, command, number, state.record(number))
    check_token(record, command, number)
    if costs is not None and not record.billed:
        if is_absurd(state, costs):
            return _refuse(state, number, record, costs, common)
        _check_size(state, costs, record)
    # Complete the outcome with the part that was told before, which must not differ.
    before = (record.reward, record.costs if record.billed else None)
    for earlier, now in zip(before, (reward, costs), strict=True):
        if earlier is not None and now not in (None, earlier):
            raise _told_before(number)
    reward, costs = before[0] if reward is None else reward, before[1] if costs is None else costs
    if reward is not None and costs is not None:
        return journal.Told(number=number, reward=reward, costs=costs, **common)
    if before != (None, None):  # the same part again
        return views.settled(state, number, record)
    if reward is not None:
        return journal.Earned(number=number, reward=reward, **common)
    return journal.Billed(number=number, costs=costs or [], **common)


def _told_before(number: int) -> Refusal:
    return Refusal(
        "already-settled", f"a part of the outcome of decision {number} was told before, with another value."
    )


def _cancel(state: CampaignState, command: ms.Cancel, common: dict[str, Any], number: int) -> Any:
    costs = _costs(state, command)
    record = state.book.open.get(number)
    if record is None:
        return again(state, command, number, state.record(number))
    check_token(record, command, number)
    if record.billed:
        if command.costs is not None and costs != record.costs:
            raise _told_before(number)
        return journal.Cancelled(number=number, costs=record.costs, **common)
    if is_absurd(state, costs):
        return _refuse(state, number, record, costs, common)
    _check_size(state, costs, record)
    return journal.Cancelled(number=number, costs=costs, **common)


def is_absurd(state: CampaignState, costs: list[float]) -> bool:
    """Whether an outcome costs more than the campaign accepts."""
    return any(cost > limit for cost, limit in zip(costs, state.cost_limit, strict=True))


def _refuse(state: CampaignState, number: int, record: Record, costs: list[float], common: dict[str, Any]) -> Any:
    """Refuse an absurd outcome; the first one of a decision is an event, so that it is counted and raises an alarm."""
    if record.refused:
        raise views.absurd(state, number, costs)
    return journal.Refused(number=number, costs=costs, **{**common, "key": "", "digest": b""})


def _extend(state: CampaignState, command: ms.Extend, common: dict[str, Any], number: int) -> Any:
    check_token(_pending(state, number), command, number)
    return journal.Extended(number=number, until=common["tick"] + command.lease * SECOND, **common)


def _forfeit(state: CampaignState, command: ms.Forfeit, common: dict[str, Any], number: int) -> Any:
    record = state.book.open.get(number)
    if record is not None and record.kind == "expired":
        check_token(record, command, number)
        return views.settled(state, number, record)
    check_token(_pending(state, number), command, number)
    return journal.Expired(numbers=[number], **common)


def _observe(state: CampaignState, command: ms.Observe, common: dict[str, Any], _: int) -> Any:
    if state.book.state != "watching":
        raise Refusal(
            "not-watching",
            f"the campaign is {state.book.state}; observations are for campaigns that watch, ask for decisions.",
        )
    arm, costs = state.arm_number(command.arm), _amounts(state, command.costs, "costs")
    if is_absurd(state, costs):
        raise views.absurd(state, state.book.observed + 1, costs)
    _check_size(state, costs)
    seen: dict[str, Any] = {"reward": command.reward, "costs": costs, "probability": command.probability}
    return journal.Observed(arm=arm, context=encoded(state, command.context), **seen, **common)


def _grant(state: CampaignState, command: ms.Grant, common: dict[str, Any], _: int) -> Any:
    given = _amounts(state, command.amounts, "amounts", partial=True)
    return journal.Granted(amounts=[amount or 0.0 for amount in given], **common)


def _charge(state: CampaignState, command: ms.Charge, common: dict[str, Any], _: int) -> Any:
    given = [amount or 0.0 for amount in _amounts(state, command.amounts, "amounts", partial=True)]
    _check_size(state, given)
    return journal.Charged(amounts=given, **common)


def _arm(state: CampaignState, command: ms.AddArm, common: dict[str, Any], _: int) -> Any:
    if command.name in state.arms:
        raise Refusal("name-taken", f"there is an arm {command.name!r}; slots are never reused, choose a new name.")
    own = list(state.problem.cost_max)
    costs = own if command.cost_max is None else _amounts(state, command.cost_max, "cost_max")
    return journal.ArmAdded(name=command.name, cost_max=costs, **common)


def _offer(_: CampaignState, command: ms.OfferArm, common: dict[str, Any], number: int) -> Any:
    return journal.ArmOffered(arm=number, offered=command.offered, **common)


def _patch(state: CampaignState, command: ms.Patch, common: dict[str, Any], _: int) -> Any:
    book, wanted = state.book, command.state
    if wanted is None and command.rounds_left is not None:
        return journal.Revised(rounds_left=command.rounds_left, **common)
    if wanted is None or command.rounds_left is not None:
        raise Refusal.invalid("give either state or rounds_left.")
    if book.state in ("draining", "closed") and wanted != "closed":
        raise Refusal("campaign-closed", f"the campaign is {book.state} and cannot be {wanted} again.")
    if book.state == "watching" and wanted == "paused":
        raise Refusal("still-watching", "the campaign makes no decisions yet; switch it on (active) or close it.")
    period = None
    if book.state == "watching" and wanted == "active" and state.config.period and book.following:
        period = seconds_between(common["at"], book.following)
    return journal.StateChanged(state=wanted, period=period, **common)


def again(state: CampaignState, command: Any, number: int, record: Record) -> ms.Settled:
    """Return the original answer to a command about a settled decision.

    Raises:
        Refusal: The decision was settled in another way, or the token is not its token.
    """
    check_token(record, command, number)
    told = isinstance(command, ms.Tell)
    if (told or isinstance(command, ms.Cancel)) and record.kind == ("told" if told else "cancelled"):
        any_costs = command.costs is None and (told or record.billed)
        same = not told or command.reward is None or command.reward == record.reward
        if same and (any_costs or _costs(state, command) == record.costs):
            return views.settled(state, number, record)
    raise Refusal(
        "already-settled", f"decision {number} is {record.kind} with another content; tell each decision once."
    )


def check_token(record: Record, command: ms.Settlement, number: int) -> None:
    """Check that a command has the token of its decision, if it has one; callers decide who may omit it.

    A decision that was made before the store was restored from a backup has another token than the decision that now
    has its number.

    Raises:
        Refusal: The token is that of another decision.
    """
    given = command.token
    if given is not None and record.token and not hmac.compare_digest(given.encode(), record.token.encode()):
        raise Refusal(
            "wrong-token",
            f"the token is not that of decision {number}; send the token in the answer to the request for the "
            "decision. If the store was restored from a backup, the decision that the token belongs to is lost.",
        )


def _costs(state: CampaignState, command: ms.Tell | ms.Cancel) -> list[float]:
    """(d,) the costs of an outcome or a cancellation; 0 if a cancellation has none."""
    return [0.0] * len(state.exponents) if command.costs is None else _amounts(state, command.costs, "costs")


def _pending(state: CampaignState, number: int) -> Record:
    record = state.book.open.get(number) or state.record(number)
    if record.kind != "pending":
        raise Refusal("already-settled", f"decision {number} is {record.kind}.")
    return record


def _amounts(state: CampaignState, given: dict[str, Any], what: str, partial: bool = False) -> list[Any]:
    """Amounts in the order of the resources; None for those that are missing from ``partial`` ones."""
    unknown = [name for name in given if name not in state.resources]
    missing = [] if partial else [name for name in state.resources if name not in given]
    if unknown or missing:
        raise Refusal.invalid(f"{what} must be for {list(state.resources)}, got {list(given)[:16]}.")
    return [amount_of(given[name], f"{what} of {name}") if name in given else None for name in state.resources]


def _check_size(state: CampaignState, costs: list[float], record: Record | None = None) -> None:
    """Refuse costs that exceed the reservation, if there is one, by more than the ledger and the database can hold."""
    reserved = [0] * len(costs) if record is None else record.reserved
    overrun = state.book.accounts[state.book.season if record is None else record.season].overrun
    if record is not None and record.held:
        overrun = state.limits.largest_overruns(record.held, overrun)
    for cost, kept, beyond, (fine, coarse) in zip(costs, reserved, overrun, state.factors, strict=True):
        if cost * fine / coarse - kept + beyond > MOST_OVERRUN:
            raise Refusal.invalid("costs must be amounts that the ledger can hold; are they in other units?")


PLANS: Final[dict[type, Any]] = {
    ms.Ask: _ask,
    ms.Tell: _tell,
    ms.TellOne: _tell,
    ms.Cancel: _cancel,
    ms.Extend: _extend,
    ms.Forfeit: _forfeit,
    ms.Observe: _observe,
    ms.Grant: _grant,
    ms.Charge: _charge,
    ms.AddArm: _arm,
    ms.OfferArm: _offer,
    ms.Patch: _patch,
}
"""The plan of each command."""
