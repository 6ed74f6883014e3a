"""A slow reference implementation of the belief of ``Adaptive`` and of its draws, from lists of all outcomes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

import driftsack as ds
from driftsack.core.arrays import Floats

RUNS = 6


@dataclass
class Run:
    """A hypothesis: the outcomes since the arm last changed, all of them."""

    weight: float
    predicted: Floats
    outcomes: list[Floats] = field(default_factory=list)


@dataclass
class Pair:
    """Two errors of an arm, in standard deviations: of the outcome before, and of one in the next round."""

    before: Floats
    after: Floats


class SlowBelief:
    """The run-length belief from lists of outcomes, in the order in which they arrived."""

    def __init__(self, problem: ds.Problem, hazard_rounds: float = 2000.0, tolerated: float = 0.1) -> None:
        self.unit, self.arms, self.hazard_rounds = problem.rate, problem.arms, hazard_rounds
        self.tolerated, self.kinds = tolerated, 1 + problem.resources
        self.runs: list[list[Run]] = [[] for _ in range(self.arms)]
        self.bills: list[Floats] = []  # outcomes as they were told
        self.seen: list[Floats] = []  # limited to M
        self.errors: list[tuple[Floats, Floats]] = []  # squared errors, and q (1 - q/M) at that time
        self.pairs: list[Pair] = []
        self.together: list[Floats] = []  # the errors of all outcomes but the first of each arm
        self.error = [np.zeros(self.kinds) for _ in range(self.arms)]  # of the outcome that arrived last
        self.last, self.trust, self.changes = [-1] * self.arms, [1.0] * self.arms, 0
        self.mean, self.sd = np.zeros((self.arms, self.kinds)), np.zeros((self.arms, self.kinds))
        self.deviation = np.zeros((self.arms, self.kinds))
        self.largest = np.full(self.kinds, 1e-100)
        self.update_shared()

    def scale(self, values: list[float]) -> float:
        """M: the largest outcome, but at most 4, 16 and 64 times the second, third and fourth largest positive ones."""
        largest = sorted((value for value in values if value > 0), reverse=True)[:4]
        return min((4.0**r * value for r, value in enumerate(largest)), default=1e-100)

    def update_shared(self) -> None:
        total = np.sum(self.seen, axis=0) if self.seen else np.zeros(self.kinds)
        self.overall = (total + 0.5 * self.largest) / (len(self.seen) + 1)
        ratio = self.largest.copy()
        if self.errors:
            squares, spread = (np.sum([pair[k] for pair in self.errors], axis=0) for k in (0, 1))
            ratio = np.where(spread > 0, squares / np.where(spread > 0, spread, 1.0), self.largest)
        self.dispersion = np.where(ratio > 0.9 * self.largest, self.largest, np.maximum(ratio, 0.05 * self.largest))
        relative = np.maximum(1 / self.overall - 1 / self.largest, 1 / self.largest)
        self.prior = np.maximum(3 * self.dispersion * relative - 1, 0.5)

    def changed_since(self, arm: int, t: int, last: int) -> float:
        hazard = (1 + self.changes) / (self.hazard_rounds + self.arms * (t + 1))
        return 1.0 if self.last[arm] < 0 else 1 - self.trust[arm] * math.exp(-hazard * max(t - last, 0))

    def start(self, arm: int) -> Floats:
        return self.overall if self.last[arm] < 0 else 0.7 * self.mean[arm] + 0.3 * self.overall

    def persistence(self) -> Floats:
        """(p,) a, from all pairs of outcomes of one arm in successive rounds."""
        if not self.pairs:
            return np.zeros(self.kinds)
        before, after = (np.array([getattr(pair, side) for pair in self.pairs]) for side in ("before", "after"))
        power = 0.5 * (before**2 + after**2).sum(axis=0) + 20
        doubt = 2 / math.sqrt(len(self.pairs)) + self.tolerated
        return np.asarray(np.maximum((before * after).sum(axis=0) / power - doubt, 0.0))

    def correlation(self) -> Floats:
        """(p,) between the reward and each cost, if it is more than three standard errors; 0 for the reward."""
        if not self.together:
            return np.zeros(self.kinds)
        errors = np.array(self.together)
        power = (errors**2).sum(axis=0)
        found = (errors[:, :1] * errors).sum(axis=0) / (np.sqrt(power[0] * power) + 5)
        # The outcome that was observed last counts after its correlation has been computed.
        found[np.abs(found) <= 3 / math.sqrt(len(self.seen) - 1)] = 0.0
        found[0] = 0.0
        return np.asarray(found)

    def expected(self, arm: int, t: int) -> Floats:
        """(p,) the mean and what is left in round ``t`` of the latest deviation."""
        left = self.persistence() ** max(t - self.last[arm], 1)
        return np.asarray(self.mean[arm] + np.where(self.persistence() > 0, left, 0.0) * self.deviation[arm])

    def age(self, arm: int) -> float:
        return sum(run.weight * len(run.outcomes) for run in self.runs[arm])

    def limit(self, k: int, scale: float) -> None:
        """Limit what was learnt about outcome k to a scale below the present one."""
        shrink = scale / self.largest[k]
        lists = [run.outcomes for runs in self.runs for run in runs]
        for outcomes in [*lists, self.seen]:
            if sum(outcome[k] for outcome in outcomes) > scale * len(outcomes):
                for n, outcome in enumerate(outcomes):
                    outcomes[n] = outcome.copy()
                    outcomes[n][k] = scale
        for run in (run for runs in self.runs for run in runs):
            run.predicted = run.predicted.copy()
            run.predicted[k] = min(run.predicted[k], scale)
        for squares, spread in self.errors:
            squares[k] *= shrink**2
            spread[k] *= shrink
        for estimate in (self.mean, self.sd):
            estimate[:, k] = np.minimum(estimate[:, k], scale)
        for shared in (self.overall, self.dispersion):
            shared[k] = min(shared[k], scale)

    def make_room(self, runs: list[Run]) -> None:
        if len(runs) == RUNS:
            ages = [len(run.outcomes) for run in runs]
            at = min(range(RUNS - 1), key=lambda r: ages[r] / ages[r + 1])
            heavier = max(runs[at : at + 2], key=lambda run: run.weight)
            runs[at : at + 2] = [Run(runs[at].weight + runs[at + 1].weight, heavier.predicted, heavier.outcomes)]

    def note_error(self, arm: int, t: int, outcome: Floats) -> None:
        spread = np.sqrt(self.dispersion * np.maximum(self.mean[arm] * (1 - self.mean[arm] / self.largest), 0))
        error = np.where(spread > 0, (outcome - self.mean[arm]) / np.where(spread > 0, spread, 1.0), 0.0)
        error = np.clip(error, -5, 5)
        if t == self.last[arm] + 1:
            self.pairs.append(Pair(self.error[arm], error))
        self.error[arm] = error
        self.together.append(error)

    def limited(self, bill: Floats) -> Floats:
        """Update the scale with an outcome; return what is learnt of it."""
        self.bills.append(bill)
        largest = np.array([self.scale([one[k] for one in self.bills]) for k in range(self.kinds)])
        for k in range(self.kinds):
            if largest[k] < self.largest[k]:
                self.limit(k, largest[k])
        self.largest = largest
        return np.asarray(np.minimum(bill, largest))

    def reweigh(self, runs: list[Run], changed: float, start: Floats, outcome: Floats) -> float:
        """Add a run, weigh all by the likelihood of the outcome and add it to them; return the mean age before."""
        self.make_room(runs)
        age = sum(run.weight * len(run.outcomes) for run in runs)
        for run in runs:
            run.weight *= 1 - changed
        runs.append(Run(changed, start))
        share, logs, a = outcome / self.largest, [], self.persistence()
        evidence = self.largest / self.dispersion * (1 - a) / (1 + a)
        for run in runs:
            p = np.clip(run.predicted / self.largest, 1e-6, 1 - 1e-6)
            logs.append((evidence * (share * np.log(p) + (1 - share) * np.log(1 - p))).sum())
        most = max(log for run, log in zip(runs, logs, strict=True) if run.weight > 0)
        for run, log in zip(runs, logs, strict=True):
            run.weight *= math.exp(min(log - most, 0.0))
        total = sum(run.weight for run in runs)
        for run in runs:
            run.weight /= total
            run.outcomes = [*run.outcomes, outcome]
        while len(runs) > 1 and runs[0].weight < 0.02:
            dropped = runs.pop(0)
            for run in runs:
                run.weight /= 1 - dropped.weight
        return age

    def observe(self, t: int, arm: int, reward: float, costs: Floats) -> None:
        bill = np.concatenate([[reward], costs / self.unit])
        first, changed = self.last[arm] < 0, self.changed_since(arm, max(t, self.last[arm] + 1), self.last[arm])
        outcome = self.limited(bill)
        if not self.seen:
            self.overall, self.dispersion, self.prior = (
                0.5 * self.largest,
                self.largest.copy(),
                np.full(self.kinds, 2.0),
            )
        self.dispersion = np.maximum(self.dispersion, 0.05 * self.largest)
        start, runs = self.start(arm).copy(), self.runs[arm]
        if not first:
            self.note_error(arm, t, outcome)
        age = self.reweigh(runs, changed, start, outcome)
        if not first and self.age(arm) < 0.5 * age:
            self.changes += 1
            self.trust = [0.9 * trust for trust in self.trust]
        # Shared quantities and estimates.
        self.trust[arm], self.last[arm] = 1.0, max(self.last[arm], t)
        mean = self.overall if first else self.mean[arm].copy()
        self.errors.append(((outcome - mean) ** 2, np.maximum(mean * (1 - mean / self.largest), 0)))
        self.seen.append(outcome)
        self.update_shared()
        self.estimate(arm, start)
        self.deviation[arm] = outcome - self.mean[arm]

    def estimate(self, arm: int, start: Floats) -> None:
        """The mean and the standard deviation of the mixture."""
        runs = self.runs[arm]
        for run in runs:
            run.predicted = (np.sum(run.outcomes, axis=0) + self.prior * start) / (len(run.outcomes) + self.prior)
        means = np.array([run.predicted for run in runs])
        counts = np.array([len(run.outcomes) for run in runs])[:, None]
        within = self.dispersion * np.maximum(means * (1 - means / self.largest), 0) / (counts + self.prior + 1)
        weights = np.array([run.weight for run in runs])
        self.mean[arm] = weights @ means
        self.sd[arm] = np.sqrt(np.maximum(weights @ (means**2 + within) - self.mean[arm] ** 2, 0))

    def draw(self, arm: int, t: int, asked: int, to_come: float, rng: np.random.Generator) -> Floats:
        """(p,) the draws for an arm that was last chosen in round ``asked``, with outcomes that are to come."""
        last = max(self.last[arm], asked) if to_come > 0 else self.last[arm]
        if rng.random() < self.changed_since(arm, t, last):
            mean, age = self.start(arm), 0.0
            sd = np.sqrt(self.dispersion * np.maximum(mean * (1 - mean / self.largest), 0) / (self.prior + 1))
        else:
            mean, sd, age = self.expected(arm, t), 0.7 * self.sd[arm], self.age(arm)
        weight = age + self.prior + 1
        sd = sd * np.sqrt(weight / (weight + to_come))
        normal, r = np.array([rng.standard_normal() for _ in range(mean.size)]), self.correlation()
        normal[1:] = r[1:] * normal[0] + np.sqrt(1 - r[1:] ** 2) * normal[1:]
        return np.asarray(np.clip(mean + sd * normal, 0, self.largest))
