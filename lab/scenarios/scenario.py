"""The common interface of the scenarios: what a rule is told, what a request shows, and how outcomes are looked up.

A scenario is made from a seed. All outcomes of all arms are drawn when it is made, so ``outcome(request, arm)`` depends
on the seed, the request and the arm only, and every rule meets the same outcomes (common random numbers). A rule gets
a `Brief` and one `Request` after the other; it never gets the `Scenario`, which also knows the true means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

import driftsack as ds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Context = dict[str, float | str]

NEVER: Final = -1
"""The delay of an outcome that never arrives."""
SKIP: Final = -1
"""The choice of no arm."""
UNITS: Final = 1_000_000
"""Costs and budgets are multiples of a millionth, so that the account is exact."""
FIRST_FINAL_SEED: Final = 1000
DEVELOPMENT_SEEDS: Final = 100


@dataclass(frozen=True, slots=True)
class Request:
    """What is known when a decision is needed."""

    index: int
    time: float  # hours since the start
    context: Context | None
    open: tuple[int, ...]  # the arms that this request may use
    must: bool  # an unserved request costs the scenario's penalty
    prices: Floats | None  # (m, d): costs by the present price list
    caps: Floats | None  # (m, d): upper bounds of this request's costs


class Outcome(NamedTuple):
    """The result of serving a request."""

    reward: float
    costs: Floats  # (d,)
    delay: int  # in requests, or NEVER


class Brief(NamedTuple):
    """What a rule is told before the first request: the same as a learner of driftsack."""

    arms: int  # slots, including arms that open later
    names: tuple[str, ...]
    resources: tuple[str, ...]
    budget: Floats  # (d,)
    cost_max: Floats  # (m, d): expected maximum costs of one request
    reward_max: float
    horizon: int  # expected requests
    hours: float  # length of the season
    patience: int  # requests after which a missing outcome counts as lost
    penalty: float  # for each unserved request that had to be served
    fallback: int | None  # the arm that serves requests when the budget is short, if all must be served


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A season of requests with the outcomes of every arm. Arrays have n requests, m arms and d resources."""

    name: str
    arms: tuple[str, ...]
    budget: dict[str, float]
    cost_max: Floats  # (m, d)
    reward_max: float
    rewards: Floats  # (n, m)
    costs: Floats  # (n, m, d)
    mean_rewards: Floats  # (n, m)
    mean_costs: Floats  # (n, m, d)
    times: Floats  # (n,) hours
    delays: Ints | None = None  # (n, m), none if outcomes are known at once
    open: Bools | None = None  # (n, m)
    must: Bools | None = None  # (n,)
    penalty: float = 0.0
    contexts: Sequence[Context] | None = None
    encoder: ds.Encoder | None = None
    prices: Floats | None = None  # (n, m, d)
    caps: Floats | None = None  # (n, m, d)
    fallback: str | None = None
    added: dict[int, int] = field(default_factory=dict)  # arm -> its first request
    expected: int | None = None  # a forecast of the number of requests, if it is not known
    patience: int = 0
    bills_at_once: bool = False  # the trade knows the costs at once, and only the reward is late

    def __post_init__(self) -> None:
        """Round costs to the account's grid."""
        object.__setattr__(self, "costs", np.rint(self.costs * UNITS) / UNITS)
        object.__setattr__(self, "budget", {name: round(amount, 6) for name, amount in self.budget.items()})

    def __len__(self) -> int:
        return len(self.times)

    @property
    def first_arms(self) -> tuple[int, ...]:
        """The arms that exist from the start; arms that are added later come after them."""
        return tuple(arm for arm in range(len(self.arms)) if arm not in self.added)

    @property
    def problem(self) -> ds.Problem:
        """The problem as a user of driftsack would describe it."""
        first = [self.arms[arm] for arm in self.first_arms]
        cost_max = {
            resource: {name: float(self.cost_max[arm, i]) for arm, name in enumerate(first)}
            for i, resource in enumerate(self.budget)
        }
        return ds.Problem(
            horizon=self.expected or len(self),
            period=None if self.expected is None else timedelta(hours=self.hours),
            arms=first,
            budget=self.budget,
            cost_max=cost_max,
            reward_max=self.reward_max,
            fallback=self.fallback,
            slots=len(self.arms),
            features=0 if self.encoder is None else self.encoder,
        )

    @property
    def late_bills(self) -> bool:
        """Whether costs become known only with the late outcome."""
        return self.delays is not None and not self.bills_at_once

    @property
    def hours(self) -> float:
        """Length of the season in whole days, in hours."""
        return 24.0 * float(np.ceil(self.times[-1] / 24.0))

    @property
    def brief(self) -> Brief:
        """What hand-written rules are told."""
        fallback = None if self.fallback is None else self.arms.index(self.fallback)
        names = tuple(self.arms[arm] for arm in self.first_arms)
        budget = np.array(list(self.budget.values()))
        cost_max = self.cost_max.copy()
        cost_max[list(self.added)] = self.cost_max[list(self.first_arms)].max(axis=0)  # not known before they open
        return Brief(
            len(self.arms),
            names,
            tuple(self.budget),
            budget,
            cost_max,
            self.reward_max,
            self.expected or len(self),
            self.hours,
            self.patience,
            self.penalty,
            fallback,
        )

    def is_open(self, index: int) -> Bools:
        """The arms that a request may use."""
        opened = np.ones(len(self.arms), dtype=np.bool_) if self.open is None else self.open[index].copy()
        for arm, first in self.added.items():
            opened[arm] &= index >= first
        return opened

    def requests(self) -> Iterator[Request]:
        """The requests in time order."""
        for index in range(len(self)):
            yield Request(
                index,
                float(self.times[index]),
                None if self.contexts is None else self.contexts[index],
                tuple(int(arm) for arm in np.flatnonzero(self.is_open(index))),
                self.fallback is not None or (self.must is not None and bool(self.must[index])),
                None if self.prices is None else self.prices[index].copy(),
                None if self.caps is None else self.caps[index].copy(),
            )

    def outcome(self, index: int, arm: int) -> Outcome:
        """The outcome of a request with an arm, the same for every rule."""
        delay = 0 if self.delays is None else int(self.delays[index, arm])
        return Outcome(float(self.rewards[index, arm]), self.costs[index, arm].copy(), delay)

    def prefix(self, length: int) -> Scenario:
        """The first requests, with a proportional budget; for quick checks."""
        share = length / len(self)
        cut: dict[str, Any] = {
            name: None if value is None else value[:length]
            for name in ("delays", "open", "must", "contexts", "prices", "caps")
            for value in [getattr(self, name)]
        }
        return replace(
            self,
            budget={name: amount * share for name, amount in self.budget.items()},
            rewards=self.rewards[:length],
            costs=self.costs[:length],
            mean_rewards=self.mean_rewards[:length],
            mean_costs=self.mean_costs[:length],
            times=self.times[:length],
            added={arm: int(first * share) for arm, first in self.added.items()},
            expected=None if self.expected is None else int(self.expected * share),
            **cut,
        )


class Rule:
    """A rule. A hand-written one has a learner's information: the brief, the requests and told outcomes."""

    def __init__(self, brief: Brief) -> None:
        self.brief = brief

    def choose(self, request: Request) -> int:
        """The arm for a request, or SKIP."""
        raise NotImplementedError

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        """An outcome has arrived, possibly late."""

    def billed(self, request: Request, arm: int, costs: Floats) -> None:
        """A request was served, and the trade knows its costs at once; the outcome follows."""

    def lost(self, request: Request, arm: int) -> None:
        """An outcome has been missing for longer than the brief's patience."""

    def refused(self, request: Request, arm: int) -> None:
        """The account refused a choice, because its cost would have exceeded a budget. Nothing was charged."""

    def add(self, arm: int, name: str, cost_max: Floats) -> None:
        """A new arm exists from now on."""


class CatalogueEntry(NamedTuple):
    """A scenario's maker and its hand-written rules by name."""

    make: Callable[[int], Scenario]
    rules: dict[str, Callable[[Brief], Rule]]


def check_seed(seed: int, final: bool = False) -> int:
    """Return a seed that may be used now: 0 to 99 in development, 1000 and above for the final look.

    >>> check_seed(3)
    3
    >>> check_seed(1003)
    Traceback (most recent call last):
    ...
    ValueError: seed 1003 is for the final look; pass final=True, or use a development seed from 0 to 99.
    """
    if final and seed < FIRST_FINAL_SEED:
        raise ValueError(f"a final seed is at least {FIRST_FINAL_SEED}, got {seed}.")
    if not final and seed >= FIRST_FINAL_SEED:
        raise ValueError(
            f"seed {seed} is for the final look; pass final=True, or use a development seed from 0 to "
            f"{DEVELOPMENT_SEEDS - 1}."
        )
    if not final and not 0 <= seed < DEVELOPMENT_SEEDS:
        raise ValueError(f"a development seed lies in 0 to {DEVELOPMENT_SEEDS - 1}, got {seed}.")
    return seed
