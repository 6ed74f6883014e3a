"""``Config``: the settings of a campaign, as clients send them and as its first event keeps them."""

from __future__ import annotations

import zoneinfo
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import msgspec

from driftsack.core.errors import DriftsackError
from driftsack.core.problem import ABSURD, Problem
from driftsack.policies.policy import Policy, from_spec
from driftsack.policies.with_exploration import WithExploration
from driftsack.service.domain.amounts import Amount, amount_of, decimal_text
from driftsack.service.domain.calendar import next_midnight
from driftsack.service.domain.features import Features
from driftsack.service.domain.refusals import Refusal

MOST_ARMS: Final = 1000
MOST_RESOURCES: Final = 16
MOST_ROUNDS_KEPT: Final = 10**6  # of a policy with a window, or numbers of one with linear models
DEFAULT: Final = "Adaptive"
DEFAULT_WITH_FEATURES: Final = "LinearBwK"
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$(?!\n)"  # in Python, $ also matches before a last line break
CAMPAIGN_NAME: Final = NAME.replace("/", "")
Name = Annotated[str, msgspec.Meta(pattern=NAME)]
CampaignName = Annotated[str, msgspec.Meta(pattern=CAMPAIGN_NAME)]
MaximaByArm = dict[Name, Amount] | Amount
Seconds = Annotated[int, msgspec.Meta(ge=1, le=31 * 86400)]
MOST_LABELS: Final = 8  # of a request
MOST_LIMITS: Final = 16
MOST_THRESHOLDS: Final = 3
THRESHOLDS: Final = [50, 80, 100]  # percent
IDLE: Final = 30 * 86400  # seconds
LABEL_NAME: Final = r"^[A-Za-z][A-Za-z0-9._-]{0,39}$(?!\n)"
LABEL: Final = r"^[!-~]([ -~]{0,98}[!-~])?$(?!\n)"  # printable ASCII
LabelName = Annotated[str, msgspec.Meta(pattern=LABEL_NAME)]
Labels = Annotated[dict[LabelName, Annotated[str, msgspec.Meta(pattern=LABEL)]], msgspec.Meta(max_length=MOST_LABELS)]
Percent = Annotated[int, msgspec.Meta(ge=1, le=100)]


class Refill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the budgets are refilled.

    Attributes:
        every: Each calendar month, each week (on Monday) or each day.
        zone: The time zone of the midnight at which a season begins.
        rollover: The share of the unused budgets that is added to the new ones, as a decimal string.
    """

    every: Literal["month", "week", "day"] = "month"
    zone: str = "UTC"
    rollover: Annotated[str, msgspec.Meta(pattern=r"^(0(\.[0-9]{1,6})?|1(\.0{1,6})?)$(?!\n)")] = "0"


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A budget of its own for each label of one name, such as each user.

    Attributes:
        by: The name of the labels, such as ``user``.
        amount: The amount that the requests with one label may cost together, for some of the resources.
        every: The period after which each label has the amount again; None if it has it once.
        zone: The time zone of the midnight at which a period begins.
        idle: Seconds after its last use after which a label without a period is forgotten, and would have the amount
            again; 30 days if omitted.
        required: Whether requests without such a label are refused.
    """

    by: LabelName
    amount: Annotated[dict[Name, Amount], msgspec.Meta(min_length=1, max_length=MOST_RESOURCES)]
    every: Literal["month", "week", "day"] | None = None
    zone: str = "UTC"
    idle: Annotated[int, msgspec.Meta(ge=60, le=400 * 86400)] | None = None
    required: bool = False


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The settings of a campaign.

    Attributes:
        arms: The names of the arms.
        budget: The budget of each resource.
        cost_max: The maximum cost of a request by resource, for all arms or by arm.
        horizon: The number of requests that the budgets are for; an initial guess if there is a ``period``.
        period: The seconds that the budgets are for; the number of requests is then estimated. With a ``refill``, the
            budgets are for the time until the next refill instead.
        reward_max: The maximum reward of a request.
        fallback: The arm that is used where the policy would skip a request, or several in order of preference; None if
            requests may be skipped.
        slots: The maximum number of arms, for arms that are added later.
        policy: Name and settings of the policy, such as ``{"policy": "Adaptive"}``. If omitted, ``LinearBwK`` for
            campaigns with features, and ``Adaptive`` for others.
        explore: The probability with which a request is given to a uniformly random arm that the budgets cover, so that
            the journal can answer for other policies; 0 for never.
        seed: The seed of the policy's randomness.
        lease: Seconds within which an outcome must arrive, unless the request says otherwise.
        late: Seconds after the end of the lease during which an outcome is still accepted and refunds.
        pause_on_overrun: Whether a cost above its reservation pauses the campaign.
        refuse_above: The cost of a request by resource above which an outcome is refused as absurd; 1,000 times the
            largest maximum cost for resources that are left out.
        refill: When the budgets are refilled; None for never.
        watch: Whether the campaign first watches the user's own rule, until it is switched on.
        features: The features of requests, sent as their ``context``; None for no features.
        limits: The limits of requests with the same label, within the budgets.
        thresholds: The percentages of a budget or limit at which an alert is raised; if omitted, 50, 80 and 100 in a
            campaign with limits, and none in others.
        keep_raw: The days for which contexts are also stored as they were sent; None for not at all.
        safe: True, since a campaign reserves the maximum cost of each decision; other modes of learners are refused.
    """

    arms: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MOST_ARMS)]
    budget: Annotated[dict[Name, Amount], msgspec.Meta(min_length=1, max_length=MOST_RESOURCES)]
    cost_max: Annotated[dict[Name, MaximaByArm], msgspec.Meta(min_length=1, max_length=MOST_RESOURCES)]
    horizon: Annotated[int, msgspec.Meta(ge=1, le=10**12)] | None = None
    period: Annotated[int, msgspec.Meta(ge=60, le=400 * 86400)] | None = None
    reward_max: Annotated[float, msgspec.Meta(gt=0, le=1e12)] = 1.0
    fallback: Name | Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MOST_ARMS)] | None = None
    slots: Annotated[int, msgspec.Meta(ge=1, le=MOST_ARMS)] | None = None
    policy: dict[str, Any] | None = None
    explore: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    lease: Seconds = 600
    late: Seconds = 86400
    pause_on_overrun: bool = False
    refuse_above: Annotated[dict[Name, Amount], msgspec.Meta(max_length=MOST_RESOURCES)] = {}
    refill: Refill | None = None
    watch: bool = False
    features: Features | None = None
    limits: Annotated[list[Limit], msgspec.Meta(max_length=MOST_LIMITS)] = []
    thresholds: Annotated[list[Percent], msgspec.Meta(max_length=MOST_THRESHOLDS)] | None = None
    keep_raw: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None
    safe: bool | str = True

    @classmethod
    def from_bytes(cls, data: bytes) -> Config:
        """Read stored settings, whose integers are micro-units: releases since 0.2 store decimal strings only."""
        return msgspec.msgpack.decode(data, type=cls).completed(micros=True)

    def completed(self, micros: bool = False) -> Config:
        """Return the settings as the first event keeps them, with the policy and all amounts as decimal strings.

        Args:
            micros: Whether integers count millionths.
        """
        maxima: dict[str, MaximaByArm] = {
            name: {arm: decimal_text(amount, micros) for arm, amount in given.items()}
            if isinstance(given, dict)
            else decimal_text(given, micros)
            for name, given in self.cost_max.items()
        }
        budget: dict[str, Amount] = {name: decimal_text(amount, micros) for name, amount in self.budget.items()}
        absurd: dict[str, Amount] = {name: decimal_text(amount, micros) for name, amount in self.refuse_above.items()}
        amounts: dict[str, Any] = {"budget": budget, "cost_max": maxima, "refuse_above": absurd}
        amounts["limits"] = [
            msgspec.structs.replace(limit, amount={name: decimal_text(given) for name, given in limit.amount.items()})
            for limit in self.limits
        ]
        return msgspec.structs.replace(self, policy=self.policy_spec, **amounts)

    @property
    def policy_spec(self) -> dict[str, Any]:
        """Name and settings of the policy; the default one if none was given."""
        if self.policy is not None:
            return self.policy
        return {"policy": DEFAULT if self.features is None else DEFAULT_WITH_FEATURES}

    def problem(self) -> Problem:
        """Build the problem of the learner.

        Raises:
            Refusal: The settings contradict each other.
        """
        try:
            return Problem(
                horizon=self.horizon,
                arms=list(self.arms),
                budget={name: amount_of(amount, f"the budget of {name}") for name, amount in self.budget.items()},
                cost_max={name: _maxima(name, given) for name, given in self.cost_max.items()},
                reward_max=self.reward_max,
                fallback=self.fallback,
                period=None if self.period is None else timedelta(seconds=self.period),
                slots=self.slots,
                features=0 if self.features is None else self.features.encoder(),
            )
        except Refusal:
            raise
        except DriftsackError as error:
            raise Refusal.invalid(str(error)) from error

    def cost_limit(self, problem: Problem) -> list[float]:
        """(d,) the costs above which outcomes are refused; a limit below a maximum cost is raised to it.

        Args:
            problem: The problem with the arms that were added.

        Raises:
            Refusal: A limit is for no resource.
        """
        unknown = [name for name in self.refuse_above if name not in self.budget]
        if unknown:
            raise Refusal.invalid(f"refuse_above must be for some of {list(self.budget)}, got {unknown[0]!r:.60}.")
        most = problem.cost_max_by_arm.max(axis=1).tolist()
        limits = {name: amount_of(limit, f"refuse_above of {name}") for name, limit in self.refuse_above.items()}
        return [max(limits.get(name, ABSURD * worst), worst) for name, worst in zip(self.budget, most, strict=True)]

    def recipe(self, problem: Problem) -> Policy:
        """Build the policy.

        Raises:
            Refusal: There is no such policy, it needs features that are not declared, or it would use too much memory.
        """
        try:
            policy = from_spec(self.policy_spec)
            policy = WithExploration(policy, self.explore) if self.explore > 0.0 else policy
            kept = policy.rounds_kept(problem)
        except (DriftsackError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise Refusal.invalid(f"policy must be the name and the settings of a policy: {error}") from error
        if policy.needs_context and not problem.features:
            raise Refusal.invalid(
                f"{type(policy).__name__} decides by the features of requests; declare them as features, or use a "
                "policy without them, such as Adaptive."
            )
        if kept > MOST_ROUNDS_KEPT:
            what = f"numbers for {problem.features} features; project embeddings to fewer" if problem.features else ""
            raise Refusal.invalid(
                f"the policy would keep {kept:,} {what or 'rounds'}; at most {MOST_ROUNDS_KEPT:,} are allowed."
            )
        return policy

    def next_refill(self, at: int) -> int | None:
        """Return the time of the first refill after a time, both in milliseconds since 1970; None for never."""
        return None if self.refill is None else next_midnight(at, self.refill.every, self.zone())

    def zone(self) -> zoneinfo.ZoneInfo:
        """Return the time zone of the refill.

        Raises:
            Refusal: There is no such time zone.
        """
        return zone_of("UTC" if self.refill is None else self.refill.zone)

    @property
    def percents(self) -> list[int]:
        """The percentages at which alerts are raised, in ascending order."""
        given = (THRESHOLDS if self.limits else []) if self.thresholds is None else self.thresholds
        return sorted(set(given))


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """Return a time zone.

    Raises:
        Refusal: There is no such time zone.
    """
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Refusal.invalid(f"zone must be a time zone such as 'Europe/Berlin', got {name!r:.60}.") from error


def _maxima(name: str, given: Any) -> Any:
    if isinstance(given, dict):
        return {arm: amount_of(amount, f"cost_max of {name} for {arm}") for arm, amount in given.items()}
    return amount_of(given, f"cost_max of {name}")
