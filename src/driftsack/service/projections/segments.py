"""Requests by segment: how often each occurred, and which arms served it at what reward and cost.

The segments of a category are its values; those of a number are the quarters of its first values. Missing and unknown
values have segments of their own. A change of how often segments occur is a change of the *requests*, which is reported
apart from changes of the arms. Embeddings have no segments.
"""

from __future__ import annotations

import bisect
import statistics
from collections import deque
from typing import Final, NamedTuple

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.encoder import Encoder
from driftsack.service.domain.features import vector_of
from driftsack.service.projections.context_worth import ContextWorth, Worth
from driftsack.service.projections.drift import LEVEL, OutcomeStream, Sample

FIRST: Final = 200  # values that determine the quarters of a number
MOST_STREAMS: Final = 40  # segments and numbers in which changes are looked for
KEPT_CHANGES: Final = 20
UNKNOWN: Final = "unknown"
UNKNOWN_OR_MISSING: Final = "unknown or missing"
MISSING: Final = "missing"


class RequestChange(NamedTuple):
    """A change of the requests.

    Attributes:
        at: The time of the detection, in milliseconds since 1970.
        decision: The request at which it was detected.
        what: The segment whose share, or the number whose values, changed.
        before: The share or the values before the change.
        after: The share or the values after it.
    """

    at: int
    decision: int
    what: str
    before: Sample
    after: Sample


class SegmentTally:
    """The requests of one segment.

    Attributes:
        requests: The number of requests.
        chosen: (m,) how often each arm was chosen.
        told: The number of outcomes.
        reward: The sum of rewards.
        costs: (d,) the sums of costs.
    """

    def __init__(self, arms: int, resources: int) -> None:
        self.requests = self.told = 0
        self.chosen = [0] * arms
        self.reward = 0.0
        self.costs = [0.0] * resources


class FeatureSegments:
    """The segments of one feature.

    Args:
        name: The name of the feature.
        labels: The names of its segments; empty for a number, whose quarters are not known yet.
    """

    def __init__(self, name: str, labels: list[str], arms: int, resources: int) -> None:
        self.name, self.labels, self._sizes = name, labels, (arms, resources)
        self.tallies = [SegmentTally(arms, resources) for _ in labels]
        self._first: list[float] = []
        self._cuts: list[float] = []

    def add_arm(self) -> None:
        """Add an arm."""
        arms, resources = self._sizes
        self._sizes = (arms + 1, resources)
        for tally in self.tallies:
            tally.chosen.append(0)

    def quarter(self, value: float, is_missing: bool) -> int | None:
        """Return the segment of a number; None while the quarters are not known."""
        if not self.labels:
            self._first += [] if is_missing else [value]
            if len(self._first) < FIRST:
                return None
            self._cut()
        return len(self._cuts) + 1 if is_missing else bisect.bisect_right(self._cuts, value)

    def _cut(self) -> None:
        """Determine the quarters from the first values; equal cuts become one."""
        self._cuts = sorted(set(statistics.quantiles(self._first, n=4)))
        inner = [f"{low:.4g} to {high:.4g}" for low, high in zip(self._cuts, self._cuts[1:], strict=False)]
        self.labels = [f"below {self._cuts[0]:.4g}", *inner, f"{self._cuts[-1]:.4g} or more", MISSING]
        self.tallies = [SegmentTally(*self._sizes) for _ in self.labels]


class SegmentedRequest(NamedTuple):
    """A request without an outcome: its arm, its segments by feature, and its vector."""

    arm: int
    places: tuple[int | None, ...]
    vector: Floats


class ContextTrack:
    """What the pages show about the features of a campaign's requests.

    Args:
        encoder: The encoder of the campaign.
        arms: The number of arms.
        resources: The number of resources.

    Attributes:
        features: The segments of each feature.
        changes: The latest changes of the requests.
        worth: Estimates what the features earned.
    """

    def __init__(self, encoder: Encoder, arms: int, resources: int) -> None:
        self._encoder = encoder
        self.features = [FeatureSegments(name, [], arms, resources) for name in encoder.numbers]
        for name, values in dict(encoder.categories).items():
            unknown = UNKNOWN_OR_MISSING if name in encoder.optional else UNKNOWN
            labels = [*values, *([unknown] if encoder.spare else [])]
            self.features.append(FeatureSegments(name, labels, arms, resources))
        self.changes: deque[RequestChange] = deque(maxlen=KEPT_CHANGES)
        self.worth = ContextWorth(encoder.size, arms, resources)
        self._waiting: dict[int, SegmentedRequest] = {}
        watched = self._watched()
        self._streams = {what: OutcomeStream(most, LEVEL / len(watched)) for what, most in watched}

    def _watched(self) -> list[tuple[str, float | None]]:
        """The segments of categories, which occur or not, and the numbers, in which changes are looked for."""
        count = len(self._encoder.numbers)
        found: list[tuple[str, float | None]] = [(each.name, None) for each in self.features[:count]]
        found += [(f"{each.name}={label}", 1.0) for each in self.features[count:] for label in each.labels]
        return found[:MOST_STREAMS]

    def add_arm(self) -> None:
        """Add an arm."""
        self.worth.add_arm()
        for feature in self.features:
            feature.add_arm()

    def ask(self, number: int, at: int, arm: int, context: bytes) -> None:
        """Add a request; a skipped one has no outcome."""
        vector = vector_of(context)
        request = SegmentedRequest(arm, self._places(vector), vector)
        self._watch(number, at, request)
        self.worth.ask(vector, arm == SKIP)
        for feature, place in zip(self.features, request.places, strict=True):
            if place is not None and place < len(feature.tallies):
                feature.tallies[place].requests += 1
                if arm != SKIP:
                    feature.tallies[place].chosen[arm] += 1
        if arm != SKIP:
            self._waiting[number] = request

    def tell(self, number: int, reward: float, costs: list[float]) -> None:
        """Add the outcome of a request."""
        request = self._waiting.pop(number, None)
        if request is None:
            return
        self.worth.tell(request.arm, request.vector, [reward, *costs])
        for feature, place in zip(self.features, request.places, strict=True):
            if place is not None and place < len(feature.tallies):
                tally = feature.tallies[place]
                tally.told += 1
                tally.reward += reward
                tally.costs = [a + b for a, b in zip(tally.costs, costs, strict=True)]

    def drop(self, number: int) -> None:
        """Forget a request without an outcome."""
        self._waiting.pop(number, None)

    def _places(self, vector: Floats) -> tuple[int | None, ...]:
        """The segment of each feature; None where it is not known."""
        encoder, missing, found = self._encoder, self._missing(vector), list[int | None]()
        for k in range(len(encoder.numbers)):
            found.append(self.features[k].quarter(float(vector[k]), k in missing))
        for name, values in dict(encoder.categories).items():
            first, slots = encoder.slots(name)
            used = vector[first : first + slots].nonzero()[0]
            found.append(min(int(used[0]), len(values)) if used.size else None)
        return tuple(found)

    def _missing(self, vector: Floats) -> set[int]:
        """The positions of the missing numbers."""
        missable = self._encoder.missable
        return {k for at, k in enumerate(missable) if vector[vector.size - len(missable) + at] > 0.0}

    def _watch(self, number: int, at: int, request: SegmentedRequest) -> None:
        """Look for changes of the requests; a missing number is replaced by a mean, which is no value."""
        count, missing = len(self._encoder.numbers), self._missing(request.vector)
        for k, feature in enumerate(self.features):
            if k < count:
                if feature.name in self._streams and k not in missing:
                    self._observe(number, at, feature.name, float(request.vector[k]))
                continue
            for place, label in enumerate(feature.labels):
                if (what := f"{feature.name}={label}") in self._streams:
                    self._observe(number, at, what, float(request.places[k] == place))

    def _observe(self, number: int, at: int, what: str, value: float) -> None:
        change = self._streams[what].observe(value)
        if change is not None:
            self.changes.append(RequestChange(at, number, what, *change))

    def worth_so_far(self) -> Worth | None:
        """What the features have earned; None if that is not known yet."""
        return self.worth.estimate()
