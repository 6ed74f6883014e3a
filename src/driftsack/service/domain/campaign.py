"""``Campaign``: commands become events, and events change the state. No clock, no store, no server.

A command is first *planned* (:mod:`driftsack.service.domain.plans`): it is checked against the state, which yields an
event, or an answer if there is nothing to change. Only :meth:`Campaign.apply` changes the state, both when an event
happens and when it is replayed. The state is thus a function of the events, and a campaign that is rebuilt from its
journal continues bit for bit as the original one would have.
"""

from __future__ import annotations

import warnings
from typing import Any, Final, NamedTuple

import msgspec

from driftsack.core.errors import DriftsackError
from driftsack.game.amounts import MOST_UNITS, whole_units
from driftsack.game.ledger import grid_exponents
from driftsack.policies.learner import Learner
from driftsack.service.domain import apprentice, journal, views
from driftsack.service.domain import messages as ms
from driftsack.service.domain.admission import RefusedByLimit
from driftsack.service.domain.book import Account, Book, Write
from driftsack.service.domain.calendar import DAY_MS, seconds_between
from driftsack.service.domain.config import Config, Refill
from driftsack.service.domain.effects import EFFECTS
from driftsack.service.domain.plans import PLANS, is_blocked
from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.rules import change_after
from driftsack.service.domain.state import CampaignState
from driftsack.service.domain.thresholds import crossed_by, exhausted_for

ENDED_AT_ONCE: Final = 500  # leases and late windows in one event
FINEST_SHARE: Final = 10**6  # shares in a configuration have at most six digits


class Now(NamedTuple):
    """The time of a command.

    Attributes:
        at: Milliseconds since 1970; never decreases.
        tick: Milliseconds on the clock of leases.
    """

    at: int
    tick: int


class Caller(NamedTuple):
    """The sender of a command.

    Attributes:
        key: A digest of the idempotency key of the request.
        digest: A digest of the whole request, which is compared if the key is used again.
        who: The prefix of the API key.
    """

    key: str = ""
    digest: bytes = b""
    who: str = ""


NOBODY: Final = Caller()


class Campaign(CampaignState):
    """A campaign in memory.

    Args:
        config: The settings.
        book: Everything that the campaign remembers besides its learner.

    Attributes:
        events: The events that have happened since :meth:`take` was last called.
        contexts: Their contexts as they were sent, if the campaign keeps them.
    """

    def __init__(self, config: Config, book: Book, learner: Learner) -> None:
        super().__init__(config, book, learner)
        self.events: list[Any] = []
        self.contexts: list[journal.RawContext] = []

    @classmethod
    def open(cls, config: Config, now: Now, caller: Caller = NOBODY) -> Campaign:
        """Begin a campaign; its first event holds the settings, with amounts as decimal strings.

        Raises:
            Refusal: The settings are not valid.
        """
        config = config.completed()
        campaign = cls.new(config)
        period, following = None, config.next_refill(now.at)
        if following is not None and config.period is not None and not config.watch:
            period = seconds_between(now.at, following)
        campaign.happen(journal.Opened(config=config, period=period, **common(now, caller)))
        return campaign

    @classmethod
    def new(cls, config: Config) -> Campaign:
        """Create a campaign before its first event.

        Raises:
            Refusal: The settings are not valid.
        """
        if config.safe is not True:
            raise Refusal.invalid(
                f"safe must be true, got {config.safe!r:.40}: a campaign reserves the maximum cost of each decision. "
                'safe="statistical" is for learners in your own process; in a campaign, pass caps and tell the costs '
                "as soon as they are known."
            )
        # Check what a problem and a policy cannot check by themselves.
        problem = config.problem()
        policy = config.recipe(problem)
        config.zone()
        if config.keep_raw is not None and config.features is None:
            raise Refusal.invalid("keep_raw is for campaigns with features; declare them, or omit keep_raw.")
        if config.refill is not None and not policy.open_ended:
            raise Refusal.invalid(f"{type(policy).__name__} follows a plan for one horizon and cannot be refilled.")
        if config.watch and not policy.teachable:
            raise Refusal.invalid(f"{type(policy).__name__} follows a forecast and cannot learn by watching.")

        # Start the learner.
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about settings, which the caller cannot see
                learner = policy.start(problem, seed=config.seed, safe=True)
        except (DriftsackError, TypeError, ValueError, OverflowError) as error:
            raise Refusal.invalid(str(error)) from error

        # Open the budgets of the first season.
        pairs = zip(problem.budget, grid_exponents(problem), strict=True)
        zeros = [0] * problem.resources
        granted = [whole_units(amount, k, up=False) for amount, k in pairs]
        return cls(config, Book({0: Account(granted, [*zeros], [*zeros], [*zeros])}), learner)

    def take(self) -> list[Any]:
        """Return the events that have happened since the last call."""
        taken, self.events = self.events, []
        return taken

    def take_contexts(self) -> tuple[journal.RawContext, ...]:
        """Return the contexts of the events that have happened since the last call, as they were sent."""
        taken, self.contexts = tuple(self.contexts), []
        return taken

    # Commands

    def handle(self, command: Any, now: Now, caller: Caller = NOBODY, number: int = 0) -> Any:
        """Carry out a command.

        Args:
            command: One of the requests in :mod:`driftsack.service.domain.messages`.
            now: The time.
            caller: The sender.
            number: The number of the decision or arm that the command is about.

        Returns:
            The answer; the original one if the idempotency key was used before.

        Raises:
            Refusal: The command is not carried out.
        """
        self.pass_time(now)
        seen = self.seen(caller)
        if seen is not None:
            return self._original_answer(seen, command)
        answer = PLANS[type(command)](self, command, common(now, caller), number)
        if isinstance(answer, journal.Event):
            event, answer = answer, self.happen(answer)
            if self.config.keep_raw is not None:
                self._keep_context(command, event)
        elif isinstance(answer, RefusedByLimit):
            answer = self._refused_by_limit(answer, now)
        elif isinstance(answer, ms.Decided) and answer.reason == "budget":
            self.blocked += is_blocked(self, command)
        if isinstance(answer, Refusal):  # that is an event
            raise answer
        return answer

    def _refused_by_limit(self, refusal: RefusedByLimit, now: Now) -> ms.Decided:
        """Count a request that a limit refuses; the first one in a period raises an alert."""
        self.limited[refusal.held.limit] += 1
        for crossed in exhausted_for(self, journal.Event(**common(now, NOBODY)), refusal.held, refusal.least):
            self.happen(crossed)
        return refusal.answer

    def seen(self, caller: Caller) -> Write | None:
        """Return the entry of a caller's key in the idempotency cache; None if the key is new.

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

    def _original_answer(self, seen: Write, command: Any) -> Any:
        """The answer to the first request with a key."""
        if seen.told:
            return views.settled(self, seen.number, self.record(seen.number))
        if seen.number:
            return views.decided(self, seen.number, self.record(seen.number))
        return msgspec.msgpack.decode(seen.answer, type=ANSWERS[type(command)])

    def _keep_context(self, command: Any, event: journal.Event) -> None:
        """Keep the context of a request as it was sent."""
        if isinstance(event, journal.Observed):
            number = -self.book.observed
        elif isinstance(event, journal.Asked) and event.arm is not None:
            number = event.number
        else:
            return
        until = event.at + (self.config.keep_raw or 0) * DAY_MS
        self.contexts.append(journal.RawContext(number, until, msgspec.json.encode(command.context or {})))

    # Time

    def pass_time(self, now: Now) -> None:
        """Process everything due by now: observations to learn, refills, ends of late windows and of leases."""
        book, leases = self.book, self.leases
        if len(book.unlearnt) >= apprentice.BATCH:
            self.happen(journal.Studied(**common(now, NOBODY)))
        if book.following is not None and now.at >= book.following:
            self._refill(now)
        while (end := leases.next_end()) is not None and end <= now.tick:
            expired, dropped = leases.take_ended(now.tick, ENDED_AT_ONCE)
            try:
                self._end(expired, dropped, now)
            except BaseException:
                leases.rebuild()  # or those that were taken would never end
                raise

    def _end(self, expired: list[int], dropped: list[int], now: Now) -> None:
        """Drop and expire decisions."""
        if dropped:  # first: when others expire, the oldest may be dropped to keep to the limit
            self.happen(journal.Dropped(numbers=dropped, **common(now, NOBODY)))
        if expired:
            self.happen(journal.Expired(numbers=expired, **common(now, NOBODY)))

    def _refill(self, now: Now) -> None:
        """Begin the season of the present time; seasons without requests are skipped."""
        if self.book.state in ("draining", "closed"):
            return
        refill, following = self.config.refill, self.config.next_refill(now.at)
        if refill is None or following is None:
            return
        season = self.book.season + 1
        rollover = 0.0 if self.book.state == "watching" else self._rollover(refill)  # nothing could be spent
        paced = self.config.period is not None and self.book.state != "watching"
        period = seconds_between(now.at, following) if paced else None
        times: dict[str, Any] = {"following": following, "period": period}
        self.happen(journal.Renewed(season=season, rollover=rollover, **times, **common(now, NOBODY)))

    def set_clock(self, now: Now) -> None:
        """Let the campaign continue at a time before its latest event, whose time was wrong.

        The season stays the same, and ends at the first refill after this time.
        """
        following = self.config.next_refill(now.at)
        paced = self.config.period is not None and following is not None and self.book.state != "watching"
        period = seconds_between(now.at, following) if paced and following is not None else None
        times: dict[str, Any] = {"following": following, "period": period, "before": self.book.at}
        self.happen(journal.ClockSet(ends=self.limits.ends(now.at), **times, **common(now, NOBODY)))

    def _rollover(self, refill: Refill) -> float:
        """The share of the free budgets that the next season gets, limited by what a ledger can hold."""
        shares = [float(refill.rollover)]
        for j, budget in enumerate(self.budget_units()):
            room, free = MOST_UNITS - budget, self.book.account.free(j)
            if free > room:
                shares.append(room * FINEST_SHARE // free / FINEST_SHARE)
        return min(shares)

    # Events

    def happen(self, event: journal.Event) -> Any:
        """Apply an event that happens now and keep it for the journal, with the events that follow from it by rule.

        Raises:
            Refusal: The learner refused it; nothing was changed.
        """
        book, overruns = self.book, self.book.overruns
        if book.format < journal.FORMAT:
            event.format = journal.FORMAT
        try:
            answer = self.apply(event)
        except DriftsackError as error:  # of the learner, before anything was changed
            raise error if isinstance(error, Refusal) else Refusal.invalid(str(error)) from error
        if isinstance(answer, ms.Decided) and answer.decision is None:
            return answer
        self.events.append(event)
        change = change_after(self.config, book.state, book.overruns > overruns, book.pending)
        if change is not None:
            self.happen(journal.StateChanged(**change._asdict(), at=event.at, tick=event.tick))
        for crossed in crossed_by(self, event) if self.percents else ():
            self.happen(crossed)
        return answer

    def apply(self, event: Any) -> Any:
        """Apply an event, when it happens or when the campaign is rebuilt.

        Args:
            event: The event; a decision that is made for the first time is written into it.

        Returns:
            The answer to its request.
        """
        book, overruns = self.book, self.book.overruns
        answer = EFFECTS[type(event)](self, event)
        if not (type(event) is journal.Asked and event.arm is None):
            book.seq += 1
            book.at, book.tick = event.at, event.tick
            book.format = event.format or book.format
        if event.key and type(event) is not journal.Asked:  # which has its own entry
            self._remember(event, answer)
        if book.format == 0:  # the journal does not have the changes that follow by rule
            change = change_after(self.config, book.state, book.overruns > overruns, book.pending)
            book.state = book.state if change is None else change.state
        return answer

    def _remember(self, event: Any, answer: Any) -> None:
        """Add the answer to a write to the idempotency cache."""
        if type(event) in (journal.Told, journal.Cancelled):
            self.book.remember(event.key, Write(event.digest, number=event.number, told=True))
        else:
            frequent = isinstance(event, FREQUENT)
            self.book.remember(event.key, Write(event.digest, msgspec.msgpack.encode(answer)), frequent)


def common(now: Now, caller: Caller) -> dict[str, Any]:
    """The fields that all events have: time and sender."""
    return {"at": now.at, "tick": now.tick, "key": caller.key, "digest": caller.digest, "who": caller.who}


FREQUENT: Final = (journal.Extended, journal.Expired, journal.Observed, journal.Billed, journal.Earned)
"""Writes, other than decisions and outcomes, that do not evict rare ones from the idempotency cache."""
ANSWERS: Final[dict[type, Any]] = {
    ms.Tell: ms.Settled,
    ms.TellOne: ms.Settled,
    ms.Charge: ms.Budgets,
    ms.Observe: ms.Noted,
    ms.Grant: ms.Budgets,
    ms.AddArm: ms.Arms,
    ms.OfferArm: ms.Arms,
    ms.Patch: ms.Done,
    ms.Extend: ms.Settled,
    ms.Forfeit: ms.Settled,
}
"""The types of the answers that are kept in the idempotency cache, by command."""
