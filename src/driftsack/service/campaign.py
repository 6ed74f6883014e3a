"""``Campaign``: a learner, its book, and what commands and events do to them. No clock, no store, no server.

A command is first *planned*: it is checked against the state, and either an answer or an event comes out, and nothing
changes. Only :meth:`Campaign.apply` changes the state, when an event happens for the first time and when it is
replayed. So the state is a function of the events, and a campaign that is rebuilt from its journal goes on, bit for
bit, as the first one would have.
"""

from __future__ import annotations

import heapq
import warnings
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from driftsack.core.decision import SKIP, Decision
from driftsack.core.errors import BudgetExhaustedError, DriftsackError, HorizonReachedError, OverrunWarning
from driftsack.core.problem import Problem
from driftsack.game.amounts import MOST_UNITS, cost_units, grid_factors, whole_units
from driftsack.game.ledger import grid_exponents
from driftsack.numerics.compiled import source
from driftsack.policies.learner import Learner
from driftsack.service import apprentice, journal, plans, views
from driftsack.service import messages as ms
from driftsack.service.book import Account, Book, Record, Seen, Write
from driftsack.service.calendar import next_refill, seconds_between
from driftsack.service.config import Config, Refill
from driftsack.service.plans import SECOND
from driftsack.service.refusals import Refusal

MOST_EXPIRED: Final = 5_000  # a learner keeps 10,000 decisions that it was told to forfeit
DROPPED_AT_ONCE: Final = 500
KEPT_DUE: Final = 1_000  # ends of settled decisions that may be kept
FINEST_SHARE: Final = 10**6  # as the shares in a configuration have at most six digits

_exact_units = lru_cache(maxsize=4096)(source(cost_units))


class Now(NamedTuple):
    """The time of a command.

    Attributes:
        at: Milliseconds since 1970, never earlier than before.
        tick: Milliseconds on the clock of leases.
    """

    at: int
    tick: int


class Caller(NamedTuple):
    """Who sent a command.

    Attributes:
        key: Its idempotency key.
        digest: A digest of the whole request, compared if the key is used again.
        who: The prefix of the API key.
    """

    key: str = ""
    digest: bytes = b""
    who: str = ""


NOBODY: Final = Caller()


class Campaign:
    """The state of a campaign.

    Args:
        config: Its settings.
        book: What it remembers.
        learner: Its learner.

    Attributes:
        config: Its settings.
        book: What it remembers.
        learner: Its learner.
        exponents: The exponent of the grid of each resource.
        events: What has happened since :meth:`take` was last called.
        prices: (d,) what one more unit of each budget would earn, by the latest decision.
    """

    def __init__(self, config: Config, book: Book, learner: Learner) -> None:
        self.config, self.book, self.learner = config, book, learner
        self.exponents = grid_exponents(config.problem())
        self.events: list[Any] = []
        self.prices: list[float] | None = None
        self.factors = [grid_factors(k) for k in self.exponents]
        self._decisions: dict[int, Decision] = {d.round: d for d in (*learner.pending, *learner.forfeited)}
        self._due = [(self._end(record), number) for number, record in book.open.items()]
        heapq.heapify(self._due)
        self._expired = sum(record.kind == "expired" for record in book.open.values())
        self._set_arms()

    @classmethod
    def open(cls, config: Config, now: Now, caller: Caller = NOBODY) -> Campaign:
        """Begin a campaign; its first event holds the settings.

        Args:
            config: The settings.
            now: The time.
            caller: Who opens it.

        Returns:
            The campaign.

        Raises:
            Refusal: The settings are not valid.
        """
        campaign = cls.new(config)
        period = None
        if config.refill is not None and config.period is not None and not config.watch:
            period = seconds_between(now.at, next_refill(now.at, config.refill.every, config.zone()))
        campaign.happen(journal.Opened(config=config, period=period, **common(now, caller)))
        return campaign

    @classmethod
    def new(cls, config: Config) -> Campaign:
        """A campaign before its first event."""
        problem = config.problem()
        policy = config.recipe(problem)
        config.zone()
        if config.refill is not None and not policy.open_ended:
            raise Refusal.invalid(f"{type(policy).__name__} follows a plan for one horizon and cannot be refilled.")
        if config.watch and not policy.teachable:
            raise Refusal.invalid(f"{type(policy).__name__} follows a forecast and cannot learn by watching.")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about settings, which the caller cannot see
                learner = policy.start(problem, seed=config.seed, safe=True)
        except (DriftsackError, TypeError, ValueError, OverflowError) as error:
            raise Refusal.invalid(str(error)) from error
        pairs = zip(problem.budget, grid_exponents(problem), strict=True)
        zeros = [0] * problem.resources
        granted = [whole_units(amount, k, up=False) for amount, k in pairs]
        return cls(config, Book({0: Account(granted, [*zeros], [*zeros], [*zeros])}), learner)

    def _set_arms(self) -> None:
        """Derive what is looked up by arm and resource."""
        problem = self.problem
        self.arms: dict[str, int] = {name: k for k, name in enumerate(problem.arm_names)}
        self.resources: dict[str, int] = {name: j for j, name in enumerate(problem.resource_names)}
        self.worst: list[list[int]] = [
            [whole_units(most, k, up=True) for most, k in zip(column, self.exponents, strict=True)]
            for column in problem.cost_max_by_arm.T.tolist()
        ]
        self.largest_worst = [max(row) for row in zip(*self.worst, strict=True)]

    @property
    def problem(self) -> Problem:
        """The problem, with the arms that were added."""
        return self.learner.problem

    def take(self) -> list[Any]:
        """Return the events that have happened since the last call."""
        taken, self.events = self.events, []
        return taken

    # Commands

    def handle(self, command: Any, now: Now, caller: Caller = NOBODY, number: int = 0) -> Any:
        """Carry out a command.

        Args:
            command: One of the requests in :mod:`driftsack.service.messages`.
            now: The time.
            caller: Who sent it.
            number: The decision that it is about, or the number of the arm.

        Returns:
            The answer.

        Raises:
            Refusal: The command is not carried out.
        """
        self.pass_time(now)
        seen = self.seen(caller)
        if seen is not None:
            if seen.told:
                return views.settled(self, seen.number, self.record(seen.number))
            if seen.number:
                return self._decided(seen.number)
            return msgspec.msgpack.decode(seen.answer, type=ANSWERS[type(command)])
        planned = plans.PLANS[type(command)](self, command, common(now, caller), number)
        return self.happen(planned) if isinstance(planned, journal.Event) else planned

    def seen(self, caller: Caller) -> Write | None:
        """What is remembered of the request with a key; None if there was none.

        Args:
            caller: Who sends it, perhaps again.

        Returns:
            What is remembered.

        Raises:
            Refusal: The key was used for another request.
        """
        if not caller.key:
            return None
        keys = self.book.keys
        found = keys.get(caller.key) or keys.get(f"{caller.key}#0")  # the first decision of an exchange
        if found is not None and found.digest != caller.digest:
            raise Refusal("key-reused", "use a new Idempotency-Key for each request, and the same body with each.")
        return found

    def happen(self, event: journal.Event) -> Any:
        """Apply an event that happens now, and keep it for the journal."""
        try:
            answer = self.apply(event)
        except DriftsackError as error:  # of the learner, before anything was changed
            raise error if isinstance(error, Refusal) else Refusal.invalid(str(error)) from error
        if isinstance(answer, ms.Decided) and answer.decision is None:
            return answer
        self.events.append(event)
        return answer

    def pass_time(self, now: Now) -> None:
        """Let everything happen that is due: expiry of leases, the end of late windows, refills, lessons."""
        book = self.book
        if len(book.unlearnt) >= apprentice.BATCH:
            self.happen(journal.Studied(**common(now, NOBODY)))
        if book.following is not None and now.at >= book.following:
            self._refill(now)
        while self._due and self._due[0][0] <= now.tick:
            expired: list[int] = []
            dropped: list[int] = []
            while self._due and self._due[0][0] <= now.tick and len(expired) + len(dropped) < DROPPED_AT_ONCE:
                end, number = heapq.heappop(self._due)
                if self._due and self._due[0] == (end, number):  # extended to the same end again
                    continue
                record = book.open.get(number)
                if record is not None and self._end(record) == end:
                    (expired if record.kind == "pending" else dropped).append(number)
            if dropped:  # first: when others expire, the oldest may be dropped to keep to the limit
                self.happen(journal.Dropped(numbers=dropped, **common(now, NOBODY)))
            if expired:
                self.happen(journal.Expired(numbers=expired, **common(now, NOBODY)))

    def _refill(self, now: Now) -> None:
        """Begin the season that the present time belongs to; seasons without requests are left out."""
        refill = self.config.refill
        if refill is None or self.book.state in ("draining", "closed"):
            return
        following = next_refill(now.at, refill.every, self.config.zone())
        season = self.book.season + 1
        rollover = 0.0 if self.book.state == "watching" else self._rollover(refill)  # nothing could be spent
        paced = self.config.period is not None and self.book.state != "watching"
        period = seconds_between(now.at, following) if paced else None
        times: dict[str, Any] = {"following": following, "period": period}
        self.happen(journal.Renewed(season=season, rollover=rollover, **times, **common(now, NOBODY)))

    def _rollover(self, refill: Refill) -> float:
        """The share of what is left that is added to the new budgets: no more than a ledger can hold."""
        shares = [float(refill.rollover)]
        for j, budget in enumerate(self._budget_units()):
            room, free = MOST_UNITS - budget, self.book.account.free(j)
            if free > room:
                shares.append(room * FINEST_SHARE // free / FINEST_SHARE)
        return min(shares)

    def _budget_units(self) -> list[int]:
        """(d,) the budgets of a new season, in grid units."""
        return [whole_units(amount, k, up=False) for amount, k in zip(self.problem.budget, self.exponents, strict=True)]

    def next_due(self) -> int | None:
        """The tick at which the next lease or late window ends."""
        return self._due[0][0] if self._due else None

    def _will_end(self, number: int, record: Record) -> None:
        """Note when a decision expires; what was noted for settled ones is dropped now and then."""
        heapq.heappush(self._due, (self._end(record), number))
        if len(self._due) > 2 * len(self.book.open) + KEPT_DUE:
            self._due = [(self._end(open_record), k) for k, open_record in self.book.open.items()]
            heapq.heapify(self._due)

    def _end(self, record: Record) -> int:
        """The tick at which a decision expires, or can no longer be told."""
        return record.until if record.kind == "pending" else record.until + self.config.late * SECOND

    def fits(self, arm: int, caps: list[float | None] | None) -> bool:
        """Whether the budgets cover the worst case of an arm."""
        return self.covers(self.most(arm, caps))

    def covers(self, units: list[int]) -> bool:
        """Whether the budgets cover amounts in grid units."""
        account = self.book.account
        for granted, spent, reserved, most in zip(account.granted, account.spent, account.reserved, units, strict=True):
            if most > granted - spent - reserved:
                return False
        return True

    def most(self, arm: int, caps: list[float | None] | None) -> list[int]:
        """(d,) the most that an arm may cost, in grid units."""
        if caps is None:
            return self.worst[arm]
        rows = zip(self.worst[arm], caps, self.exponents, strict=True)
        return [most if cap is None else min(most, whole_units(cap, k, up=True)) for most, cap, k in rows]

    def record(self, number: int) -> Record:
        """A decision that is remembered."""
        found = self.book.open.get(number) or self.book.settled.get(number)
        if found is not None:
            return found
        if 1 <= number <= self.book.number:
            raise Refusal("forgotten", f"decision {number} was settled too long ago to compare.")
        raise Refusal("unknown-decision", f"the campaign has made decisions 1 to {self.book.number}, got {number}.")

    def arm_number(self, name: str) -> int:
        """The number of an arm."""
        number = self.arms.get(name)
        if number is None:
            raise Refusal.invalid(f"the arms are {list(self.arms)[:10]}, got {name!r:.60}.")
        return number

    def units(self, costs: list[float]) -> list[int]:
        """(d,) costs in grid units, as the learner charges them."""
        return [_exact_units(cost, *factors) for cost, factors in zip(costs, self.factors, strict=True)]

    # Events

    def apply(self, event: Any) -> Any:
        """Let an event happen: for the first time, or again when the campaign is rebuilt.

        Args:
            event: The event; a decision that is made for the first time is written into it.

        Returns:
            The answer to its request.
        """
        answer = APPLY[type(event)](self, event)
        book = self.book
        if not (type(event) is journal.Asked and event.arm is None):
            book.seq += 1
            book.at, book.tick = event.at, event.tick
        if event.key and type(event) is not journal.Asked:  # which remembers itself
            self._remember(event, answer)
        if book.state == "draining" and book.pending == 0:
            book.state = "closed"
        return answer

    def _remember(self, event: Any, answer: Any) -> None:
        """Remember the answer to a write, so that a repetition gets it too."""
        if type(event) in (journal.Told, journal.Cancelled):
            self.book.remember(event.key, Write(event.digest, number=event.number, told=True))
        else:
            frequent = isinstance(event, (journal.Extended, journal.Expired, journal.Observed))
            self.book.remember(event.key, Write(event.digest, msgspec.msgpack.encode(answer)), frequent)

    def _opened(self, event: journal.Opened) -> ms.Done:
        refill = event.config.refill
        if event.config.watch:
            self.book.state = "watching"
        if refill is not None:
            self.book.following = next_refill(event.at, refill.every, event.config.zone())
        self._begin_period(event)
        return ms.Done()

    def _begin_period(self, event: journal.Opened | journal.StateChanged) -> None:
        """Let the period end with the next refill, whenever the first request comes; budgets stay as they are."""
        if event.period is not None:
            length = timedelta(seconds=event.period)
            self.learner.renew(self.learner.budget, at=event.at / SECOND, period=length)

    def _asked(self, event: journal.Asked) -> ms.Decided:
        try:
            decision = self._choose(event)
        except HorizonReachedError:
            return plans.skipped("horizon")
        except BudgetExhaustedError:
            return plans.skipped("budget")
        book = self.book
        if event.arm is None:
            event.arm = decision.arm
            event.reserved = [] if decision.skipped else self.most(decision.arm, event.caps)
            event.probability = (
                float(max(0.0, 1.0 - decision.mix.sum())) if decision.skipped else float(decision.mix[decision.arm])
            )
        self.prices = decision.prices.tolist()
        book.number = event.number
        record = Record(
            arm=event.arm,
            probability=event.probability,
            reserved=event.reserved,
            until=event.until,
            lease=(event.until - event.tick) // SECOND,
            season=book.season,
            round=decision.round,
            key=event.key,
        )
        if event.key:
            book.remember(event.key, Write(event.digest, number=event.number))
        if event.arm == SKIP:
            record.kind = "skipped"
            book.settle(event.number, record)
        else:
            book.open[event.number] = record
            book.pending += 1
            book.reserve(event.reserved)
            self._decisions[decision.round] = decision
            self._will_end(event.number, record)
        return self._decided(event.number)

    def _choose(self, event: journal.Asked) -> Decision:
        """The learner's decision; the recorded one if a replay comes to another."""
        caps = self.named_caps(event.caps)
        at = event.at / SECOND if self.problem.period is not None else None
        decision = self.learner.ask(open=event.open, caps=caps, at=at)
        if event.arm is None or decision.arm == event.arm:
            return decision
        self.book.divergences += 1
        if not decision.skipped:
            self.learner.cancel(decision)
        only = [] if event.arm == SKIP else [event.arm]
        closed = [k in only for k in range(self.problem.arms)]
        return self.learner.ask(open=closed, caps=caps, at=at)

    def named_caps(self, caps: list[float | None] | None) -> dict[str, float] | None:
        """Caps by resource, as a learner takes them."""
        if caps is None:
            return None
        return {name: cap for name, cap in zip(self.resources, caps, strict=True) if cap is not None} or None

    def _decided(self, number: int) -> ms.Decided:
        return views.decided(self, number, self.record(number))

    def _told(self, event: journal.Told) -> ms.Settled:
        record = self.book.open[event.number]
        decision = self._decisions[record.round]
        units = self.units(event.costs)
        overran = any(cost > kept for cost, kept in zip(units, record.reserved, strict=True))
        if overran or not 0.0 <= event.reward <= self.problem.reward_max:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OverrunWarning)  # counted, answered and shown instead
                self.learner.tell(decision, event.reward, event.costs)
        else:
            self.learner.tell(decision, event.reward, event.costs)
        self.book.told += 1
        self.book.reward += event.reward
        return self._settle(event.number, record, "told", event.costs, units, event.reward)

    def _cancelled(self, event: journal.Cancelled) -> ms.Settled:
        record = self.book.open[event.number]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverrunWarning)
            self.learner.cancel(self._decisions[record.round], event.costs)
        return self._settle(event.number, record, "cancelled", event.costs, self.units(event.costs), None)

    def _settle(
        self, number: int, record: Record, kind: str, costs: list[float], units: list[int], reward: float | None
    ) -> ms.Settled:
        """Charge a decision and move it to those that are settled."""
        book = self.book
        overran = book.charge(record, units)
        if record.kind == "pending":
            book.pending -= 1
        else:
            self._expired -= 1
            record.late = True
        record.kind, record.costs, record.reward = kind, costs, reward
        book.settle(number, record)
        self._decisions.pop(record.round, None)
        if overran:
            book.overruns += 1
            if self.config.pause_on_overrun and book.state == "active":
                book.state = "paused"
        return views.settled(self, number, record)

    def _extended(self, event: journal.Extended) -> ms.Settled:
        record = self.book.open[event.number]
        record.until = event.until
        self._will_end(event.number, record)
        return views.settled(self, event.number, record)

    def _expire(self, event: journal.Expired) -> ms.Settled | None:
        record = None
        for number in event.numbers:
            record = self.book.open[number]
            self.learner.forfeit(self._decisions[record.round])
            self.book.forfeit(record)
            record.kind = "expired"
            record.until = min(record.until, event.tick)
            self.book.pending -= 1
            self.book.expired += 1
            self._expired += 1
            self._will_end(number, record)
        self._limit_expired()
        return None if record is None else views.settled(self, event.numbers[-1], record)

    def _limit_expired(self) -> None:
        """Drop the oldest expired decisions if there are more than a learner keeps."""
        if self._expired > MOST_EXPIRED:
            oldest = [number for number, record in self.book.open.items() if record.kind == "expired"]
            for number in oldest[: self._expired - MOST_EXPIRED]:
                self._drop(number)

    def _drop(self, number: int) -> None:
        """Forget an expired decision; what it was charged with stays."""
        record = self.book.open[number]
        decision = self._decisions.pop(record.round)
        self.learner.cancel(decision, decision.reserved)
        record.kind = "dropped"
        self._expired -= 1
        self.book.settle(number, record)

    def _dropped(self, event: journal.Dropped) -> None:
        for number in event.numbers:
            self._drop(number)

    def _granted(self, event: journal.Granted) -> ms.Budgets:
        self.learner.grant(event.amounts)
        granted = self.book.account.granted
        for j, (amount, k) in enumerate(zip(event.amounts, self.exponents, strict=True)):
            granted[j] += whole_units(amount, k, up=False)
        return views.budgets(self)

    def _renewed(self, event: journal.Renewed) -> None:
        at = event.at / SECOND if self.problem.period is not None else None
        period = None if event.period is None else timedelta(seconds=event.period)
        self.learner.renew(rollover=event.rollover, at=at, period=period)
        self.book.begin_season(self._budget_units(), event.rollover)
        self.book.following = event.following

    def _arm_added(self, event: journal.ArmAdded) -> ms.Arms:
        self.learner.add_arm(event.name, event.cost_max)
        self._set_arms()
        return views.arms(self)

    def _arm_offered(self, event: journal.ArmOffered) -> ms.Arms:
        change = self.learner.reopen_arm if event.offered else self.learner.retire_arm
        change(event.arm)
        retired = set(self.book.retired) - {event.arm}
        self.book.retired = sorted(retired if event.offered else retired | {event.arm})
        return views.arms(self)

    def _observed(self, event: journal.Observed) -> ms.Noted:
        self.book.observed += 1
        self.book.unlearnt.append(Seen(event.arm, event.reward, event.costs, event.probability, event.at))
        return ms.Noted(self.book.observed)

    def _studied(self, event: journal.Studied) -> None:
        seen = self.book.unlearnt
        self._learn_observations()
        if event.mix is None:
            event.mix = apprentice.choices(self.learner, [event.at + each.at - seen[0].at for each in seen])

    def _learn_observations(self) -> None:
        apprentice.teach(self.learner, self.book.unlearnt)
        self.book.unlearnt = []

    def _state_changed(self, event: journal.StateChanged) -> ms.Done:
        self._learn_observations()
        self._begin_period(event)
        self.book.state = "draining" if event.state == "closed" else event.state
        return ms.Done()

    def _revised(self, event: journal.Revised) -> ms.Done:
        self.learner.revise(event.rounds_left)
        return ms.Done()


def common(now: Now, caller: Caller) -> dict[str, Any]:
    """What all events have: when they happened, and who sent the request."""
    return {"at": now.at, "tick": now.tick, "key": caller.key, "digest": caller.digest, "who": caller.who}


ANSWERS: Final[dict[type, Any]] = {
    ms.Observe: ms.Noted,
    ms.Grant: ms.Budgets,
    ms.AddArm: ms.Arms,
    ms.OfferArm: ms.Arms,
    ms.Patch: ms.Done,
    ms.Extend: ms.Settled,
    ms.Forfeit: ms.Settled,
}

APPLY: Final[dict[type, Any]] = {
    journal.Opened: Campaign._opened,
    journal.Asked: Campaign._asked,
    journal.Told: Campaign._told,
    journal.Cancelled: Campaign._cancelled,
    journal.Extended: Campaign._extended,
    journal.Expired: Campaign._expire,
    journal.Dropped: Campaign._dropped,
    journal.Granted: Campaign._granted,
    journal.Renewed: Campaign._renewed,
    journal.ArmAdded: Campaign._arm_added,
    journal.ArmOffered: Campaign._arm_offered,
    journal.Observed: Campaign._observed,
    journal.Studied: Campaign._studied,
    journal.StateChanged: Campaign._state_changed,
    journal.Revised: Campaign._revised,
}
