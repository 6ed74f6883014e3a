"""``Track``: what the pages show about a campaign, computed from its journal.

Only the journal is read, never the memory of the owner, so everything that is shown is durable, and any replica can
show it. Decisions are grouped into buckets of equal size. When there are too many buckets, neighbours are merged, so
the memory does not grow with the journal.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from driftsack.core.decision import SKIP
from driftsack.game.amounts import cost_units, grid_factors
from driftsack.game.ledger import grid_exponents
from driftsack.numerics.compiled import source
from driftsack.service.domain import journal
from driftsack.service.domain.accounts import HeldAccount
from driftsack.service.domain.book import is_overrun
from driftsack.service.domain.config import Config
from driftsack.service.domain.journal import Segment
from driftsack.service.domain.limits import Limits
from driftsack.service.domain.rules import change_after
from driftsack.service.projections.drift import Alarm, ArmDetector, Sample, sample_of
from driftsack.service.projections.segments import ContextTrack
from driftsack.service.projections.shadow import Shadow

MOST_BUCKETS: Final = 240
LATEST: Final = 200  # outcomes of each arm from which its means are estimated
KEPT_ALARMS: Final = 50
KEPT_REFUSALS: Final = 20
KEPT_CROSSINGS: Final = 50
LISTED: Final = 50  # latest decisions that are listed
_units = source(cost_units)


class ArmTally:
    """The decisions and outcomes of one arm in one bucket.

    Attributes:
        chosen: The number of decisions.
        told: The number of outcomes.
        costs: (d,) the sums of costs.
    """

    __slots__ = ("chosen", "costs", "reward", "told")

    def __init__(self, resources: int) -> None:
        self.chosen = self.told = 0
        self.reward = 0.0
        self.costs = [0.0] * resources

    def add(self, other: ArmTally) -> None:
        """Add another tally of the same arm."""
        self.chosen += other.chosen
        self.told += other.told
        self.reward += other.reward
        self.costs = [a + b for a, b in zip(self.costs, other.costs, strict=True)]


class DecisionBucket:
    """Consecutive decisions, and the outcomes that arrived meanwhile.

    Attributes:
        number: The latest decision.
        at: The time of the latest event, in milliseconds since 1970.
        rounds: The number of decisions, including skipped requests.
        tallies: The tally of each arm.
        granted: (d,) the budgets at the end of the bucket, in grid units.
        spent: (d,) the spending of the season at the end of the bucket, in grid units.
        estimates: (m,) the estimates at the end of the bucket.
    """

    def __init__(self) -> None:
        self.number = self.at = self.rounds = 0
        self.tallies: dict[int, ArmTally] = {}
        self.granted: list[int] = []
        self.spent: list[int] = []
        self.estimates: list[Estimate] = []

    def tally(self, arm: int, resources: int) -> ArmTally:
        """Return the tally of an arm; an empty one if it is new."""
        found = self.tallies.get(arm)
        if found is None:
            found = self.tallies[arm] = ArmTally(resources)
        return found

    def absorb(self, later: DecisionBucket, resources: int) -> None:
        """Merge the next bucket into this one."""
        self.number, self.at, self.rounds = later.number, later.at, self.rounds + later.rounds
        self.granted, self.spent, self.estimates = later.granted, later.spent, later.estimates
        for arm, tally in later.tallies.items():
            self.tally(arm, resources).add(tally)

    @property
    def reward(self) -> float:
        """The sum of rewards."""
        return sum(tally.reward for tally in self.tallies.values())


class Waiting(NamedTuple):
    """A decision without an outcome."""

    arm: int
    probability: float
    reserved: list[int]
    at: int
    expired: bool = False
    billed: bool = False  # whether the costs were told before the reward
    held: Sequence[HeldAccount] = ()  # the accounts of limits


class Shown(NamedTuple):
    """One of the latest decisions, as it is listed.

    Attributes:
        at: The time of the decision, in milliseconds since 1970.
        arm: The number of the arm; SKIP if the request was skipped.
        state: The state of the decision, as displayed.
        reward: The reward, if it was told.
    """

    number: int
    at: int
    arm: int
    probability: float
    state: str
    reward: float | None


class RefusedOutcome(NamedTuple):
    """An outcome that was refused because its cost is absurd.

    Attributes:
        at: The time of the outcome, in milliseconds since 1970.
        costs: (d,) its costs.
    """

    number: int
    at: int
    costs: list[float]


class Estimate(NamedTuple):
    """Means over the latest outcomes of an arm.

    Attributes:
        costs: (d,) the samples of costs.
    """

    reward: Sample
    costs: list[Sample]


class SeasonBudgets:
    """The budgets of a season in grid units: granted, reserved, spent and overrun, each (d,)."""

    def __init__(self, resources: int) -> None:
        self.granted, self.reserved, self.spent, self.overrun = ([0] * resources for _ in range(4))


class Track:
    """What the pages show about a campaign.

    Args:
        config: The settings.
    """

    def __init__(self, name: str, config: Config) -> None:
        problem = config.problem()
        self.name, self.config = name, config
        self.opening = b""  # the hash of the opening segment, which tells campaigns with the same name apart
        self.arms, self.resources = list(problem.arm_names), list(problem.resource_names)
        self.exponents = grid_exponents(problem)
        self.state, self.retired = "watching" if config.watch else "active", set[int]()
        self.format = self.seq = self.first = self.at = self.opened_at = self.number = 0
        self.pending = self.told = self.expired = self.late = self.overruns = self.skipped = self.lost = 0
        self.refused = 0  # decisions with an outcome that was refused as absurd
        self.reward = 0.0
        self.season = self.season_at = self.season_number = 0
        self.following: int | None = None  # the time at which the next season begins
        self.seasons: dict[int, SeasonBudgets] = {}
        self.buckets: list[DecisionBucket] = []
        self.width = 1
        self.waiting: dict[int, Waiting] = {}
        self.alarms: deque[Alarm] = deque(maxlen=KEPT_ALARMS)
        self.alarm_count = 0
        self.refusals: deque[RefusedOutcome] = deque(maxlen=KEPT_REFUSALS)
        self.chosen = [0] * len(self.arms)  # decisions by arm
        self.limits = Limits(config, self.exponents)
        self.crossings: deque[journal.Crossed] = deque(maxlen=KEPT_CROSSINGS)
        self.crossed = Counter[tuple[int | None, int]]()  # thresholds crossed, by limit and percentage
        self.shown: dict[int, Shown] = {}
        self.rounds_left: tuple[int, int] | None = None  # as revised, and the decision after which it was
        self.shadow = Shadow(len(self.arms), len(self.resources))  # what was observed while the campaign was watching
        encoder = problem.encoder
        self.contexts = None if encoder is None else ContextTrack(encoder, len(self.arms), len(self.resources))
        self._unstudied: list[journal.Observed] = []  # of a campaign with features, whose mixes follow
        self._observed_requests = 0
        self._factors = [grid_factors(k) for k in self.exponents]
        self._detectors: dict[int, ArmDetector] = {}
        self._latest: dict[int, deque[list[float]]] = {}

    @property
    def account(self) -> SeasonBudgets:
        """The budgets of the current season."""
        return self.seasons.setdefault(self.season, SeasonBudgets(len(self.resources)))

    def feed(self, segment: Segment) -> None:
        """Add the next segment of the journal."""
        # Budgets come from the segment itself.
        for delta in segment.deltas:
            season = self.seasons.setdefault(delta.season, SeasonBudgets(len(self.resources)))
            season.granted[delta.resource] += delta.granted
            season.reserved[delta.resource] += delta.reserved
            season.spent[delta.resource] += delta.spent
            season.overrun[delta.resource] += delta.overrun

        # Everything else comes from its events.
        for event in journal.decode(segment.body):
            overruns = self.overruns
            self.at, self.format = event.at, event.format or self.format
            TAKE[type(event)](self, event)
            if self.format == 0:  # the journal does not have the changes that follow by rule
                change = change_after(self.config, self.state, self.overruns > overruns, self.pending)
                self.state = self.state if change is None else change.state
        self.seq, self.first = segment.last, segment.first

    def close_bucket(self) -> None:
        """Store the current budgets and estimates in the current bucket."""
        bucket, account = self._bucket(), self.account
        bucket.at, bucket.granted = self.at, [*account.granted]
        bucket.spent = [*account.spent]
        bucket.estimates = self.estimates()

    def estimates(self) -> list[Estimate]:
        """(m,) means over the latest outcomes of each arm."""
        found = []
        for arm in range(len(self.arms)):
            rows = self._latest.get(arm, ())
            columns = list(zip(*rows, strict=True)) or [()] * (1 + len(self.resources))
            samples = [sample_of(list(column)) for column in columns]
            found.append(Estimate(samples[0], samples[1:]))
        return found

    def _bucket(self) -> DecisionBucket:
        """The current bucket."""
        if not self.buckets:
            self.buckets.append(DecisionBucket())
        return self.buckets[-1]

    def _next_round(self, number: int) -> DecisionBucket:
        """Return the bucket of a new decision; a new one if the current one is full."""
        bucket = self._bucket()
        if bucket.rounds >= self.width:
            self.close_bucket()
            if len(self.buckets) >= MOST_BUCKETS:
                self._merge()
            self.buckets.append(DecisionBucket())
            bucket = self.buckets[-1]
        bucket.rounds += 1
        bucket.number = number
        return bucket

    def _merge(self) -> None:
        """Merge neighbouring buckets."""
        for first, second in zip(self.buckets[::2], self.buckets[1::2], strict=False):
            first.absorb(second, len(self.resources))
        self.buckets, self.width = self.buckets[::2], 2 * self.width

    # Events

    def _opened(self, event: journal.Opened) -> None:
        self.opened_at = self.season_at = event.at
        self.following = event.config.next_refill(event.at)

    def _asked(self, event: journal.Asked) -> None:
        arm = SKIP if event.arm is None else event.arm
        self.number = event.number
        bucket = self._next_round(event.number)
        if arm == SKIP:
            self.skipped += 1
        else:
            bucket.tally(arm, len(self.resources)).chosen += 1
            self.chosen[arm] += 1
            self.waiting[event.number] = Waiting(arm, event.probability, event.reserved, event.at, held=event.held)
            self.limits.reserve(event.held, event.reserved, event.at)
            self.pending += 1
        if self.contexts is not None:
            self.contexts.ask(event.number, event.at, arm, event.context or b"")
        state = "skipped" if arm == SKIP else "pending"
        self.shown[event.number] = Shown(event.number, event.at, arm, event.probability, state, None)
        if len(self.shown) > LISTED:
            del self.shown[next(iter(self.shown))]

    def _told(self, event: journal.Told) -> None:
        waited = self._settled(event)

        # Count the outcome.
        if self.contexts is not None:
            self.contexts.tell(event.number, event.reward, event.costs)
        tally = self._bucket().tally(waited.arm, len(self.resources))
        tally.told += 1
        tally.reward += event.reward
        tally.costs = [a + b for a, b in zip(tally.costs, event.costs, strict=True)]
        self.told += 1
        self.late += waited.expired
        self.reward += event.reward

        # Look for a change of the arm, after which older outcomes no longer count.
        outcomes = [event.reward, *event.costs]
        self._latest.setdefault(waited.arm, deque(maxlen=LATEST)).append(outcomes)
        detector = self._detectors.get(waited.arm)
        if detector is None:
            detector = self._detectors[waited.arm] = ArmDetector(
                waited.arm, self.config.reward_max, len(self.resources)
            )
        for alarm in detector.observe(event.at, event.number, outcomes):
            self.alarms.append(alarm)
            self.alarm_count += 1
            self._forget(waited.arm, alarm.after.size)
        self._show(event.number, "told late" if waited.expired else "told", event.reward)

    def _forget(self, arm: int, kept: int) -> None:
        """Keep only the latest outcomes of an arm, those after a change."""
        rows = self._latest[arm]
        while len(rows) > kept:
            rows.popleft()

    def _settled(self, event: journal.Told | journal.Cancelled) -> Waiting:
        """Remove a decision from those that wait, and count it as an overrun if it cost more than was reserved."""
        waited = self.waiting.pop(event.number)
        self.pending -= not waited.expired
        self.lost -= waited.expired
        if not waited.billed:
            self._charge(event, waited)
        self.limits.close(waited.held, event.at)
        return waited

    def _charge(self, event: journal.Told | journal.Cancelled | journal.Billed, waited: Waiting) -> None:
        """Charge the accounts of limits, and count an overrun; budgets come from the segment."""
        units = [_units(cost, *factors) for cost, factors in zip(event.costs, self._factors, strict=True)]
        self.overruns += is_overrun(waited.reserved, units)
        self.limits.charge(waited.held, waited.reserved, event.units or units, not waited.expired)

    def _billed(self, event: journal.Billed) -> None:
        waited = self.waiting[event.number]
        self._charge(event, waited)
        self.waiting[event.number] = waited._replace(billed=True)

    def _show(self, number: int, state: str, reward: float | None = None) -> None:
        if number in self.shown:
            self.shown[number] = self.shown[number]._replace(state=state, reward=reward)

    def _cancelled(self, event: journal.Cancelled) -> None:
        self._settled(event)
        if self.contexts is not None:
            self.contexts.drop(event.number)
        self._show(event.number, "cancelled")

    def _refused(self, event: journal.Refused) -> None:
        self.refused += 1
        self.refusals.append(RefusedOutcome(event.number, event.at, event.costs))

    def _expire(self, event: journal.Expired) -> None:
        for number in event.numbers:
            waited = self.waiting[number]
            if not waited.billed:
                self.limits.forfeit(waited.held, waited.reserved)
            self.waiting[number] = waited._replace(expired=True)
            self._show(number, "expired")
        self.pending -= len(event.numbers)
        self.expired += len(event.numbers)
        self.lost += len(event.numbers)
        self._drop(event.dropped or [], event.at)

    def _dropped(self, event: journal.Dropped) -> None:
        self._drop(event.numbers, event.at)

    def _drop(self, numbers: list[int], at: int) -> None:
        for number in numbers:
            waited = self.waiting.pop(number, None)
            self.limits.close(() if waited is None else waited.held, at)
            if self.contexts is not None:
                self.contexts.drop(number)
            self._show(number, "lost")

    def _renewed(self, event: journal.Renewed) -> None:
        self.season, self.following = event.season, event.following
        self.season_at, self.season_number = event.at, self.number

    def _arm_added(self, event: journal.ArmAdded) -> None:
        self.add_arm(event.name)

    def add_arm(self, name: str) -> None:
        """Add an arm."""
        self.arms.append(name)
        self.chosen.append(0)
        self.shadow.add_arm()
        if self.contexts is not None:
            self.contexts.add_arm()

    def _arm_offered(self, event: journal.ArmOffered) -> None:
        (self.retired.discard if event.offered else self.retired.add)(event.arm)

    def _observed(self, event: journal.Observed) -> None:
        outcomes = [event.reward, *event.costs]
        if self.contexts is None:
            self.shadow.observe(event.arm, event.probability, outcomes)
        else:
            self._unstudied.append(event)
            self._observed_context(event)
        self._latest.setdefault(event.arm, deque(maxlen=LATEST)).append(outcomes)

    def _observed_context(self, event: journal.Observed) -> None:
        """Add a request that the user's own rule served."""
        if self.contexts is not None:
            self._observed_requests += 1
            number = -self._observed_requests  # apart from the decisions
            self.contexts.ask(number, event.at, event.arm, event.context or b"")
            self.contexts.tell(number, event.reward, event.costs)

    def _studied(self, event: journal.Studied) -> None:
        if self.contexts is None:
            self.shadow.study(event.mix or [])
            return
        # The mixes at the contexts of these observations were computed before they were learnt from.
        waiting = self._unstudied
        mixes: list[Any] = event.mixes or [None] * len(waiting)
        count = min(len(waiting), len(mixes))  # the first ones may be in an archive
        for seen, mix in zip(waiting[len(waiting) - count :], mixes[len(mixes) - count :], strict=True):
            self.shadow.study(mix)
            self.shadow.observe(seen.arm, seen.probability, [seen.reward, *seen.costs])
        self._unstudied = []

    def _state_changed(self, event: journal.StateChanged) -> None:
        self.state = event.new_state

    def _clock_set(self, event: journal.ClockSet) -> None:
        if event.ends:
            moved = self.limits.set_clock(event.before, event.ends, [each.held for each in self.waiting.values()])
            pairs = zip(self.waiting.items(), moved, strict=True)
            self.waiting = {number: each._replace(held=held) for (number, each), held in pairs}
        self.following = event.following
        self.season_at, self.opened_at = min(self.season_at, event.at), min(self.opened_at, event.at)

    def _revised(self, event: journal.Revised) -> None:
        self.rounds_left = (event.rounds_left, self.number)

    def _crossed(self, event: journal.Crossed) -> None:
        self.crossings.append(event)
        self.crossed[event.limit, event.percent] += 1

    def _nothing(self, event: Any) -> None:
        """Ignore an event that changes budgets only, which are in the deltas of the segment, or nothing yet."""


TAKE: Final[dict[type, Any]] = {
    journal.Opened: Track._opened,
    journal.Asked: Track._asked,
    journal.Told: Track._told,
    journal.Billed: Track._billed,
    journal.Earned: Track._nothing,
    journal.Cancelled: Track._cancelled,
    journal.Refused: Track._refused,
    journal.Extended: Track._nothing,
    journal.Expired: Track._expire,
    journal.Dropped: Track._dropped,
    journal.Granted: Track._nothing,
    journal.Charged: Track._nothing,
    journal.Renewed: Track._renewed,
    journal.ArmAdded: Track._arm_added,
    journal.ArmOffered: Track._arm_offered,
    journal.Observed: Track._observed,
    journal.Studied: Track._studied,
    journal.StateChanged: Track._state_changed,
    journal.ClockSet: Track._clock_set,
    journal.Revised: Track._revised,
    journal.Crossed: Track._crossed,
}
