"""The request and response bodies of the API, from which the OpenAPI document is generated."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from driftsack.service.domain.amounts import Amount
from driftsack.service.domain.config import (
    MOST_ARMS,
    MOST_RESOURCES,
    CampaignName,
    Config,
    Labels,
    MaximaByArm,
    Name,
    Seconds,
)
from driftsack.service.domain.features import Context

Number = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Probability = Annotated[float, msgspec.Meta(ge=1e-9, le=1)]
Reward = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
AmountsByName = Annotated[dict[Name, Amount], msgspec.Meta(max_length=MOST_RESOURCES)]
Texts = dict[str, str]
Token = Annotated[str, msgspec.Meta(max_length=64)]
State = Literal["watching", "active", "paused", "draining", "closed"]
Reason = Literal["policy", "budget", "limit", "horizon", "paused", "watching"]
Kind = Literal["pending", "expired", "told", "cancelled", "dropped", "skipped"]
Scope = Literal["decide", "read", "operate", "admin"]


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request."""


class ResponseBody(msgspec.Struct):
    """The body of a response."""


class Ask(Request):
    """Ask which arm to use.

    Attributes:
        open: The arms that this request may use; all arms if omitted.
        caps: The maximum cost of this request, by resource.
        lease: Seconds within which the outcome will be reported.
        must: Whether the request must be served, even if that overspends a budget.
        costs: The price list of this request: costs by resource, for all arms or by arm; some may be left out.
        context: The features of the request, by name, if the campaign declares some.
        labels: The labels of the request, such as its user and its team, by which the campaign may limit it.
    """

    open: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MOST_ARMS)] | None = None
    caps: AmountsByName | None = None
    lease: Seconds | None = None
    must: bool = False
    costs: Annotated[dict[Name, MaximaByArm], msgspec.Meta(max_length=MOST_RESOURCES)] | None = None
    context: Context | None = None
    labels: Labels | None = None


class Settlement(Request, kw_only=True):
    """A request about one decision.

    Attributes:
        token: The token in the answer to the request for the decision. Keys with the scope ``operate`` may omit it.
    """

    token: Token | None = None


class Tell(Settlement):
    """Report the outcome of a decision, or one part of it.

    Attributes:
        reward: The reward; omit it if it is not known yet.
        costs: The costs, by resource; omit them if they are not known yet.
    """

    reward: Reward | None = None
    costs: AmountsByName | None = None


class Cancel(Settlement):
    """Cancel a decision whose costs are known; the policy does not learn from it.

    Attributes:
        costs: The costs, by resource; if omitted, those that were told before, or 0.
    """

    costs: AmountsByName | None = None


class Extend(Settlement):
    """Extend the lease of a decision.

    Attributes:
        lease: Seconds from now within which the outcome will be reported.
    """

    lease: Seconds


class Forfeit(Settlement):
    """Give up a decision whose costs are not known; its reservation is charged."""


class TellOne(Tell, kw_only=True):
    """An outcome in an exchange.

    Attributes:
        decision: The number of the decision.
    """

    decision: Number


class Exchange(Request):
    """Report many outcomes and ask for many decisions in one request.

    Attributes:
        tells: The outcomes.
        ask: The number of decisions to make.
        terms: The terms of each of these decisions.
        contexts: The features of each of these requests; omit them if ``terms`` has features for all of them.
        labels: The labels of each of these requests; omit them if ``terms`` has labels for all of them.
    """

    tells: Annotated[list[TellOne], msgspec.Meta(max_length=1000)] = []
    ask: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    terms: Ask | None = None
    contexts: Annotated[list[Context], msgspec.Meta(max_length=1000)] | None = None
    labels: Annotated[list[Labels], msgspec.Meta(max_length=1000)] | None = None


class Observe(Request):
    """Report a choice of the user's own rule while the campaign is watching.

    Attributes:
        arm: The arm that the rule chose.
        reward: The reward.
        costs: The costs, by resource.
        probability: The probability with which the rule chose the arm, 1 if it could not have chosen another; omit it
            if it is not known.
        context: The features of the request, by name, if the campaign declares some.
    """

    arm: Name
    reward: Reward
    costs: AmountsByName
    probability: Probability | None = None
    context: Context | None = None


class Grant(Request):
    """Increase the budgets of the current season.

    Attributes:
        amounts: The amounts to add, by resource.
    """

    amounts: Annotated[dict[Name, Amount], msgspec.Meta(min_length=1, max_length=MOST_RESOURCES)]


class Charge(Request):
    """Add spending outside the campaign to that of the current season.

    Attributes:
        amounts: The amounts that were spent, by resource.
    """

    amounts: Annotated[dict[Name, Amount], msgspec.Meta(min_length=1, max_length=MOST_RESOURCES)]


class AddArm(Request):
    """Add an arm.

    Attributes:
        name: The name of the arm.
        cost_max: The arm's maximum cost, by resource; the campaign's if omitted.
    """

    name: Name
    cost_max: AmountsByName | None = None


class OfferArm(Request):
    """Retire an arm, or offer it again.

    Attributes:
        offered: Whether the arm is offered.
    """

    offered: bool


class Patch(Request):
    """Change a campaign.

    Attributes:
        state: ``active``, ``paused`` or ``closed``. A watching campaign is switched on by ``active``. A campaign that
            is being closed first waits for its pending decisions.
        rounds_left: The expected number of remaining requests.
    """

    state: Literal["active", "paused", "closed"] | None = None
    rounds_left: Annotated[int, msgspec.Meta(ge=0, le=10**12)] | None = None


class NewCampaign(Request):
    """Open a campaign.

    Attributes:
        name: The name of the campaign.
        config: The settings.
    """

    name: CampaignName
    config: Config


class NewKey(Request):
    """Create an API key.

    Attributes:
        scopes: The scopes of the key.
        campaigns: The campaigns that the key is limited to; all if omitted.
        days: Days after which the key expires; never if omitted.
        note: A note for operators.
        labels: The labels of all requests with the key; a request with another label of the same name is refused.
    """

    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=4)]
    campaigns: Annotated[list[CampaignName], msgspec.Meta(max_length=100)] | None = None
    days: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None
    note: Annotated[str, msgspec.Meta(max_length=200)] = ""
    labels: Labels = {}


class LimitReached(ResponseBody):
    """The limit that refuses a request.

    Attributes:
        by: The name of the labels that the limit is by.
        label: The label of the request.
        every: The period of the limit; null for none.
        resets: The time at which the next period begins, in milliseconds since 1970; null for never.
        exhausted: Whether too much was spent; otherwise what is left is reserved for pending decisions.
    """

    by: str
    label: str
    every: str | None
    resets: int | None
    exhausted: bool


class Decided(ResponseBody):
    """A decision.

    Attributes:
        decision: The number of the decision; null if the campaign could not decide.
        arm: The name of the arm; null if the request is skipped.
        skipped: Whether the request is skipped; a skipped request has no outcome to report.
        reason: Why the request is skipped.
        probability: The probability with which the arm was drawn.
        reserved: The reservation, by resource.
        lease: Seconds within which the outcome is expected.
        token: A secret of the decision, to be sent with its outcome; empty for a skipped request.
        limit: The limit that refuses the request, if that is the reason.
    """

    decision: int | None
    arm: str | None
    skipped: bool
    reason: Reason | None
    probability: float
    reserved: Texts
    lease: int
    token: str = ""
    limit: LimitReached | None = None


class Settled(ResponseBody):
    """The state of a decision after an outcome, a cancellation, an extension or a forfeit.

    Attributes:
        decision: The number of the decision.
        state: The state of the decision.
        charged: The charge, by resource.
        overrun: The costs above the reservation, by resource.
        late: Whether the outcome arrived after the lease had ended.
    """

    decision: int
    state: Kind
    charged: Texts
    overrun: Texts
    late: bool = False


class DecisionView(ResponseBody):
    """The current state of a decision.

    Attributes:
        decision: The number of the decision.
        state: The state of the decision.
        arm: The name of the arm; null if the request was skipped.
        probability: The probability with which the arm was drawn.
        reserved: The reservation, by resource.
        reward: The reward, if it was reported.
        charged: The charge, by resource.
        seconds_left: Seconds until the lease ends; 0 unless the decision is pending.
        at: The time of the decision, in milliseconds since 1970; null for one that was pending or had just been settled
            when a release that did not keep it was upgraded.
    """

    decision: int
    state: Kind
    arm: str | None
    probability: float
    reserved: Texts
    reward: float | None
    charged: Texts
    seconds_left: int
    at: int | None


class ProblemDetails(ResponseBody):
    """Why a request was not carried out (RFC 9457).

    Attributes:
        type: A stable identifier of the type of problem.
        title: A summary of the type of problem.
        status: The status code.
        detail: What was expected, what was received and what to do.
        instance: The path of the request.
        pointer: A JSON pointer to the field of the body that is not valid, if there is one.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    pointer: str | None = None


class ToldOne(ResponseBody):
    """The result of one outcome of an exchange; exactly one of the two fields is set.

    Attributes:
        settled: The state of the decision.
        problem: Why the outcome was refused.
    """

    settled: Settled | None = None
    problem: ProblemDetails | None = None


class Exchanged(ResponseBody):
    """The results of an exchange, in the order of the request.

    Attributes:
        told: The result of each outcome.
        decisions: The decisions.
    """

    told: list[ToldOne]
    decisions: list[Decided]


class BudgetView(ResponseBody):
    """The budget of one resource in one season.

    Attributes:
        season: The season, from 0.
        resource: The name of the resource.
        granted: The budget.
        reserved: The reservations of pending decisions.
        spent: The spending.
        overrun: The spending above reservations.
        remaining: The budget that is neither spent nor reserved.
        price: The shadow price: the reward that one more unit would earn, according to the latest decision; null for
            past seasons.
    """

    season: int
    resource: str
    granted: str
    reserved: str
    spent: str
    overrun: str
    remaining: str
    price: float | None


class Budgets(ResponseBody):
    """The budgets of a campaign.

    Attributes:
        budgets: One entry for each resource and season.
        next_refill: The time of the next refill, in milliseconds since 1970; null for never.
    """

    budgets: list[BudgetView]
    next_refill: int | None = None


class LabelAccount(ResponseBody):
    """The account of a label: one resource of one limit.

    Attributes:
        by: The name of the labels that the limit is by.
        label: The label.
        every: The period of the limit; null for none.
        resource: The name of the resource.
        amount: The amount that the limit allows.
        spent: The spending.
        reserved: The reservations of pending decisions.
        left: The amount that is neither spent nor reserved.
        overrun: The spending above reservations.
        resets: The time at which the label has the amount again, in milliseconds since 1970; null for never.
    """

    by: str
    label: str
    every: str | None
    resource: str
    amount: str
    spent: str
    reserved: str
    left: str
    overrun: str
    resets: int | None


class Alert(ResponseBody):
    """A threshold that was crossed, as a webhook gets it.

    Attributes:
        type: Always ``threshold.crossed``.
        id: An identifier of the alert, the same in repeated messages.
        campaign: The name of the campaign.
        at: The time in milliseconds since 1970.
        percent: The percentage of the amount that was reached; 100 also if a request was refused because of what was
            spent.
        resource: The name of the resource.
        spent: The spending.
        amount: The budget or the limit.
        by: The name of the labels that the limit is by; null for a budget of the campaign.
        label: The label; null for a budget of the campaign.
        every: The period of the limit; null for none.
        resets: The time at which the label has the amount again, in milliseconds since 1970; null for never.
    """

    type: str
    id: str
    campaign: str
    at: int
    percent: int
    resource: str
    spent: str
    amount: str
    by: str | None = None
    label: str | None = None
    every: str | None = None
    resets: int | None = None


class AccountsOfLabel(ResponseBody):
    """The accounts of a label.

    Attributes:
        accounts: One entry for each resource of each limit by labels of this name.
    """

    accounts: list[LabelAccount]


class ArmView(ResponseBody):
    """An arm.

    Attributes:
        name: The name of the arm.
        offered: Whether the arm is offered.
        cost_max: The arm's maximum cost, by resource.
    """

    name: str
    offered: bool
    cost_max: Texts


class Arms(ResponseBody):
    """The arms of a campaign.

    Attributes:
        arms: The arms, in the order in which they were added.
    """

    arms: list[ArmView]


class CampaignView(ResponseBody):
    """A campaign.

    Attributes:
        name: The name of the campaign.
        state: ``watching``, ``active``, ``paused``, ``draining`` or ``closed``.
        events: The number of events in the journal.
        decisions: The number of decisions.
        pending: The number of decisions that wait for an outcome.
        told: The number of outcomes.
        expired: The number of decisions whose outcome did not arrive in time.
        overruns: The number of decisions that cost more than was reserved.
        refused: The number of decisions with an outcome that was refused because its cost is absurd.
        reward: The sum of rewards.
        divergences: The number of decisions that a recovery would have made differently; 0 unless the library or the
            machine changed.
        observed: The number of observations of the user's own rule.
        config: The settings.
        next_refill: The time of the next refill, in milliseconds since 1970; null for never.
    """

    name: str
    state: State
    events: int
    decisions: int
    pending: int
    told: int
    expired: int
    overruns: int
    refused: int
    reward: float
    divergences: int
    observed: int
    config: Config
    next_refill: int | None = None


class Noted(ResponseBody):
    """The receipt of an observation.

    Attributes:
        observation: The number of the observation, from 1.
    """

    observation: int


class Interval(ResponseBody):
    """A mean per request with its 95% confidence interval.

    Attributes:
        mean: The mean.
        low: The lower end of the interval.
        high: The upper end of the interval.
    """

    mean: float
    low: float
    high: float


class Compared(ResponseBody):
    """One quantity under the user's own rule and under the campaign's policy, for the same requests.

    Attributes:
        quantity: ``reward``, or the name of a resource.
        own: The mean under the user's own rule.
        would: The estimated mean under the campaign's policy; null if it cannot be estimated.
        gain: The difference. Both means are computed from the same outcomes, so its interval is narrower than the other
            two suggest.
    """

    quantity: str
    own: Interval
    would: Interval | None
    gain: Interval | None


class ShareOf(ResponseBody):
    """How often an arm was chosen.

    Attributes:
        arm: The name of the arm.
        own: The arm's share of the choices of the user's own rule.
        would: The arm's share of the campaign's choices; null before the campaign has learnt anything.
    """

    arm: str
    own: float
    would: float | None


class Apprentice(ResponseBody):
    """What a watching campaign would have chosen and earned.

    Attributes:
        state: The state of the campaign.
        observations: The number of observations.
        counted: The number of observations in the comparison.
        effective: The effective sample size of the comparison.
        shares: How often each arm was chosen; the remaining share of the campaign's choices would have been skipped.
        compared: The reward, then each resource; empty if no probabilities are known.
        refusal: Why the campaign's earnings cannot be estimated; null if they can.
    """

    state: State
    observations: int
    counted: int
    effective: float
    shares: list[ShareOf]
    compared: list[Compared]
    refusal: str | None


class Campaigns(ResponseBody):
    """The campaigns that a key may read.

    Attributes:
        campaigns: Up to 1,000 names, sorted.
        after: The last of them if there are more: pass it as ``after`` for the next page.
    """

    campaigns: list[str]
    after: str | None = None


class Page(ResponseBody):
    """A page of decisions, oldest first.

    Attributes:
        decisions: At most ``limit`` decisions; fewer if some outcomes arrived so late that finding them takes long, and
            if few of the decisions that were looked at pass the filters.
        cursor: The cursor of the next page; null at the end.
    """

    decisions: list[DecisionView]
    cursor: str | None


class KeyView(ResponseBody):
    """An API key, without its secret.

    Attributes:
        prefix: The first characters of the key.
        scopes: The scopes of the key.
        campaigns: The campaigns that the key is limited to; null for all.
        expires: The time at which the key expires, in milliseconds since 1970; null for never.
        note: A note for operators.
        labels: The labels of all requests with the key.
    """

    prefix: str
    scopes: list[Scope]
    campaigns: list[str] | None
    expires: int | None
    note: str
    labels: Labels


class CreatedKey(KeyView):
    """A new API key.

    Attributes:
        key: The secret key, which is shown only once.
    """

    key: str = ""


class Keys(ResponseBody):
    """The API keys.

    Attributes:
        keys: The keys, without their secrets.
    """

    keys: list[KeyView]


class AuditEntry(ResponseBody):
    """A change by an operator or administrator.

    Attributes:
        at: The time in milliseconds since 1970.
        who: The prefix of the API key.
        action: The action.
        campaign: The campaign, if the action concerned one.
        detail: The body of the request.
    """

    at: int
    who: str
    action: str
    campaign: str | None
    detail: str


class AuditPage(ResponseBody):
    """A page of changes by operators and administrators.

    Attributes:
        entries: The changes, newest first.
        cursor: The cursor of the next, older page; null at the end.
    """

    entries: list[AuditEntry]
    cursor: str | None


class Done(ResponseBody):
    """The request was carried out.

    Attributes:
        ok: Always true.
    """

    ok: bool = True
