"""The messages of the API: what requests and answers consist of. The OpenAPI document is generated from them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from driftsack.service.amounts import Amount
from driftsack.service.config import MOST_ARMS, MOST_RESOURCES, CampaignName, Config, Name, Seconds

Number = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Probability = Annotated[float, msgspec.Meta(ge=1e-9, le=1)]
Reward = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
AmountsByName = Annotated[dict[Name, Amount], msgspec.Meta(max_length=MOST_RESOURCES)]
Texts = dict[str, str]
State = Literal["watching", "active", "paused", "draining", "closed"]
Reason = Literal["policy", "budget", "horizon", "paused", "watching"]
Kind = Literal["pending", "expired", "told", "cancelled", "dropped", "skipped"]
Scope = Literal["decide", "read", "operate", "admin"]


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request."""


class Answer(msgspec.Struct):
    """The body of an answer."""


class Ask(Request):
    """Ask which arm to use.

    Attributes:
        open: The arms that this request may use; all if omitted.
        caps: The most that this request may cost, by resource.
        lease: Seconds within which the outcome will be told.
    """

    open: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MOST_ARMS)] | None = None
    caps: AmountsByName | None = None
    lease: Seconds | None = None


class Tell(Request):
    """Tell the outcome of a decision.

    Attributes:
        reward: What it earned.
        costs: What it used of each resource.
    """

    reward: Reward
    costs: AmountsByName


class Cancel(Request):
    """Give up a decision whose costs are known; nothing is learnt.

    Attributes:
        costs: What it used of each resource; nothing if omitted.
    """

    costs: AmountsByName | None = None


class Extend(Request):
    """Let a decision wait longer.

    Attributes:
        lease: Seconds from now within which the outcome will be told.
    """

    lease: Seconds


class Forfeit(Request):
    """Give up a decision whose costs are not known: the worst case is charged."""


class TellOne(Tell):
    """An outcome within an exchange.

    Attributes:
        decision: The number of the decision.
    """

    decision: Number


class Exchange(Request):
    """Tell many outcomes and ask for many decisions at once.

    Attributes:
        tells: The outcomes.
        ask: The number of decisions to ask for.
        terms: What holds for each of these decisions.
    """

    tells: Annotated[list[TellOne], msgspec.Meta(max_length=1000)] = []
    ask: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    terms: Ask | None = None


class Observe(Request):
    """Say what the user's own rule did, while the campaign watches.

    Attributes:
        arm: The arm that the rule chose.
        reward: What it earned.
        costs: What it used of each resource.
        probability: The probability with which the rule chose the arm, 1 if it could not have chosen another one; leave
            it out if it is not known.
    """

    arm: Name
    reward: Reward
    costs: AmountsByName
    probability: Probability | None = None


class Grant(Request):
    """Add to the budgets of this season.

    Attributes:
        amounts: How much, by resource.
    """

    amounts: Annotated[dict[Name, Amount], msgspec.Meta(min_length=1, max_length=MOST_RESOURCES)]


class AddArm(Request):
    """Add an arm.

    Attributes:
        name: Its name.
        cost_max: The most that it may use of each resource; that of the campaign if omitted.
    """

    name: Name
    cost_max: AmountsByName | None = None


class OfferArm(Request):
    """Retire an arm, or offer it again.

    Attributes:
        offered: Whether it is offered.
    """

    offered: bool


class Patch(Request):
    """Change a campaign.

    Attributes:
        state: ``active``, ``paused`` or ``closed``. A campaign that watches is switched on by ``active``. A campaign
            that is closed waits for its pending decisions first.
        rounds_left: The number of requests that are expected from now on.
    """

    state: Literal["active", "paused", "closed"] | None = None
    rounds_left: Annotated[int, msgspec.Meta(ge=0, le=10**12)] | None = None


class NewCampaign(Request):
    """Open a campaign.

    Attributes:
        name: Its name.
        config: Its settings.
    """

    name: CampaignName
    config: Config


class NewKey(Request):
    """Create an API key.

    Attributes:
        scopes: What it allows.
        campaigns: The campaigns that it is limited to; all if omitted.
        days: Days after which it expires; never if omitted.
        note: What it is for.
    """

    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=4)]
    campaigns: Annotated[list[CampaignName], msgspec.Meta(max_length=100)] | None = None
    days: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None
    note: Annotated[str, msgspec.Meta(max_length=200)] = ""


class Decided(Answer):
    """A decision.

    Attributes:
        decision: Its number; None if the campaign could not decide.
        arm: The name of the arm; None if the request is skipped.
        skipped: Whether the request is skipped, which needs no outcome.
        reason: Why it is skipped.
        probability: The probability of the arm when it was drawn.
        reserved: What is reserved for it, by resource.
        lease: Seconds within which its outcome is expected.
    """

    decision: int | None
    arm: str | None
    skipped: bool
    reason: Reason | None
    probability: float
    reserved: Texts
    lease: int


class Settled(Answer):
    """What became of a decision.

    Attributes:
        decision: Its number.
        state: What it is now.
        charged: What it is charged with, by resource.
        overrun: What it cost beyond its reservation, by resource.
        late: Whether the outcome arrived after the lease had ended.
    """

    decision: int
    state: Kind
    charged: Texts
    overrun: Texts
    late: bool = False


class DecisionView(Answer):
    """A decision as it is now.

    Attributes:
        decision: Its number.
        state: What became of it.
        arm: The name of the arm.
        probability: The probability of the arm when it was drawn.
        reserved: What was reserved for it.
        reward: What it earned, if that was told.
        charged: What it is charged with.
        lease: Seconds that are left of its lease.
    """

    decision: int
    state: Kind
    arm: str | None
    probability: float
    reserved: Texts
    reward: float | None
    charged: Texts
    lease: int


class Problem(Answer):
    """Why a request was not carried out (RFC 9457).

    Attributes:
        type: A stable name of the problem.
        title: What it is.
        status: The status code.
        detail: What was expected, what came and what to do.
    """

    type: str
    title: str
    status: int
    detail: str


class ToldOne(Answer):
    """What became of one outcome of an exchange: one of the two.

    Attributes:
        settled: What became of its decision.
        problem: Why it was refused.
    """

    settled: Settled | None = None
    problem: Problem | None = None


class Exchanged(Answer):
    """The answers to an exchange, in its order.

    Attributes:
        told: What became of each outcome.
        decisions: The decisions that were asked for.
    """

    told: list[ToldOne]
    decisions: list[Decided]


class BudgetView(Answer):
    """The budget of one resource in one season.

    Attributes:
        season: The season, from 0.
        resource: The name of the resource.
        granted: The budget.
        reserved: What is reserved for pending decisions.
        spent: What was spent.
        overrun: What was spent beyond reservations.
        remaining: What is left to reserve.
        price: What one more unit would earn, by the latest decision; None for past seasons.
    """

    season: int
    resource: str
    granted: str
    reserved: str
    spent: str
    overrun: str
    remaining: str
    price: float | None


class Budgets(Answer):
    """The budgets of a campaign.

    Attributes:
        budgets: One entry for each resource and season.
        next_refill: When the budgets begin again, in milliseconds since 1970; None for never.
    """

    budgets: list[BudgetView]
    next_refill: int | None = None


class ArmView(Answer):
    """An arm.

    Attributes:
        name: Its name.
        offered: Whether it is offered.
        cost_max: The most that it may use of each resource.
    """

    name: str
    offered: bool
    cost_max: Texts


class Arms(Answer):
    """The arms of a campaign.

    Attributes:
        arms: In the order in which they were added.
    """

    arms: list[ArmView]


class CampaignView(Answer):
    """A campaign.

    Attributes:
        name: Its name.
        state: ``watching``, ``active``, ``paused``, ``draining`` or ``closed``.
        events: The number of events in its journal.
        decisions: The number of decisions that were made.
        pending: The number of decisions that wait for an outcome.
        told: The number of outcomes.
        expired: The number of decisions whose outcome did not arrive in time.
        overruns: The number of decisions that cost more than was reserved.
        reward: The sum of rewards.
        divergences: Decisions that a recovery would have made otherwise; 0 unless the library or the machine changed.
        observed: The number of observations of the user's own rule.
        config: Its settings.
        next_refill: When its budgets begin again, in milliseconds since 1970; None for never.
    """

    name: str
    state: State
    events: int
    decisions: int
    pending: int
    told: int
    expired: int
    overruns: int
    reward: float
    divergences: int
    observed: int
    config: Config
    next_refill: int | None = None


class Noted(Answer):
    """An observation was noted.

    Attributes:
        observation: Its number, from 1.
    """

    observation: int


class Interval(Answer):
    """A mean per request with its 95% interval.

    Attributes:
        mean: The mean.
        low: The lower end.
        high: The upper end.
    """

    mean: float
    low: float
    high: float


class Compared(Answer):
    """One quantity under the user's own rule and under the campaign's policy, in the same requests.

    Attributes:
        quantity: ``reward``, or the name of a resource.
        own: What the rule earned or used.
        would: What the campaign would have; None if that cannot be said.
        gain: The difference, whose interval is narrower than those of the two suggest: the outcomes are the same.
    """

    quantity: str
    own: Interval
    would: Interval | None
    gain: Interval | None


class ShareOf(Answer):
    """How often an arm was chosen.

    Attributes:
        arm: The arm.
        own: Its share of the rule's choices.
        would: Its share of the campaign's choices; None before the campaign has learnt anything.
    """

    arm: str
    own: float
    would: float | None


class Apprentice(Answer):
    """What a campaign would have chosen and earned while it watched.

    Attributes:
        state: The state of the campaign.
        observations: The number of observations.
        counted: Those that the comparison is made from.
        effective: How many choices of its own these are worth.
        shares: How often each arm was chosen; what is missing of 1 would have been skipped.
        compared: Reward first, then each resource; empty if no probability is known.
        refusal: Why nothing can be said about what it would have earned; None if something can.
    """

    state: State
    observations: int
    counted: int
    effective: float
    shares: list[ShareOf]
    compared: list[Compared]
    refusal: str | None


class Campaigns(Answer):
    """The campaigns that a key may see.

    Attributes:
        campaigns: Their names.
    """

    campaigns: list[str]


class Page(Answer):
    """Some decisions, oldest first.

    Attributes:
        decisions: The decisions: at most 100, and fewer if some outcomes came so late that they take long to find.
        cursor: Pass it to get the next ones; None at the end.
    """

    decisions: list[DecisionView]
    cursor: str | None


class KeyView(Answer):
    """An API key, without its secret.

    Attributes:
        prefix: How it begins.
        scopes: What it allows.
        campaigns: The campaigns that it is limited to; None for all.
        expires: When it expires, in milliseconds since 1970; None for never.
        note: What it is for.
    """

    prefix: str
    scopes: list[Scope]
    campaigns: list[str] | None
    expires: int | None
    note: str


class CreatedKey(KeyView):
    """A new API key.

    Attributes:
        key: The key; it is shown only once.
    """

    key: str = ""


class Keys(Answer):
    """The API keys.

    Attributes:
        keys: Without their secrets.
    """

    keys: list[KeyView]


class AuditEntry(Answer):
    """Who changed what.

    Attributes:
        at: When, in milliseconds since 1970.
        who: The prefix of the API key.
        action: What was done.
        campaign: The campaign, if it was one.
        detail: With which content.
    """

    at: int
    who: str
    action: str
    campaign: str | None
    detail: str


class Audit(Answer):
    """Some changes by operators and administrators.

    Attributes:
        entries: Newest first.
        cursor: Pass it to get older ones; None at the end.
    """

    entries: list[AuditEntry]
    cursor: str | None


class Done(Answer):
    """The request was carried out.

    Attributes:
        ok: True.
    """

    ok: bool = True
