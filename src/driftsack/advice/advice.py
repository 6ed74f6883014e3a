"""``Advice``: what a log says about drift, the recommended policy and the value of the budget."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from driftsack.advice import answer as report_answer
from driftsack.advice import report_text
from driftsack.advice.budget_value import BudgetValue
from driftsack.advice.context_advice import ContextAdvice
from driftsack.advice.drift_detection import Drift
from driftsack.advice.fit import Fit
from driftsack.advice.intervals import BudgetIntervals, WindowMeans
from driftsack.advice.noise import NoiseFloor
from driftsack.advice.own_rule import OwnRule
from driftsack.advice.standings import PresentShares, Standing
from driftsack.advice.warm_start import CONTEXTS, half_life, taught
from driftsack.core.arrays import Floats
from driftsack.core.checks import Safe
from driftsack.core.errors import FileFormatError, SettingError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed
from driftsack.logs import Survey
from driftsack.measures.drift_kind import DriftKind
from driftsack.policies import Policy
from driftsack.policies.learner import Learner


@dataclass(frozen=True, eq=False)
class Advice:
    """Advice from a log: ``print`` it, ``write`` it as one HTML page, ``save`` the recommended policy, ready to use.

    Attributes:
        name: Name of the log.
        survey: Summary of the log.
        drift: Result of the test for drift, with the measures V and W and their noise floors.
        fit: Change points, means between them and the kind of noise.
        world: The instance fitted to the log, with the requested budget and horizon.
        windows: Means in windows of time, with 95% intervals.
        kind: What drift changes: ``stationary``, ``harmless``, ``which`` (V-type) or ``when`` (W-type).
        floor: Apparent gains of planning and tracking that come from noise alone; smaller gains are not reported.
        worth: Optima of the fitted instance, prices, and the value of 10% more or less budget.
        ranges: 95% intervals of the optimum and of the value of budget.
        standings: Simulated performance of every candidate: Adaptive, then from simple to involved.
        present: What a policy would earn that knew the present means but not the future, as shares of the optimum. The
            rest needs foresight, and what a candidate earns less is the cost of learning and of random outcomes.
        recommended: The recommended candidate.
        steady: The best candidate that does not assume that the timing of the log repeats.
        shifted: Shares of the optimum that ``recommended`` and ``steady`` earn if changes come earlier or later.
        periods: The number of whole horizons that the log covers; plans take part if there are at least two.
        overshoots: Whether single costs are so large that policies earn more than LP-Dynamic; the optimum is then that
            of a budget that is larger by the largest cost.
        context: The value of the contexts of the log; None without contexts. If they pay, :attr:`policy` decides by
            them, and ``recommended`` is the best candidate without them.
        own_rule: What the rule that made the log earns and spends; None if the log does not say which arms were played.
        reward_name: The log's own name of the reward.
    """

    name: str
    survey: Survey
    drift: Drift
    fit: Fit
    world: Instance
    windows: WindowMeans
    kind: DriftKind
    floor: NoiseFloor
    worth: BudgetValue
    ranges: BudgetIntervals
    standings: tuple[Standing, ...]
    present: PresentShares
    recommended: Standing
    steady: Standing
    shifted: tuple[float, float]
    periods: int
    overshoots: bool
    context: ContextAdvice | None = None
    own_rule: OwnRule | None = None
    reward_name: str = "reward"

    @property
    def by_context(self) -> ContextAdvice | None:
        """The contextual advice if the recommended policy decides by the context; otherwise None."""
        return self.context if self.context is not None and self.context.pays else None

    @property
    def policy(self) -> Policy:
        """The recommended policy, ready to ``start``."""
        return self.recommended.candidate.policy if self.by_context is None else self.by_context.policy

    @property
    def problem(self) -> Problem:
        """The problem that the advice is about: the names of the log, the budget and the horizon."""
        return self.world.problem if self.by_context is None else self.by_context.problem

    @property
    def policy_name(self) -> str:
        """The name of the recommended policy."""
        return self.recommended.candidate.name if self.by_context is None else type(self.policy).__name__

    @property
    def expected(self) -> float:
        """The expected reward of the recommended policy over the horizon."""
        return self.reward(self.recommended) * (1.0 if self.by_context is None else self.by_context.ratio)

    @cached_property
    def first_mix(self) -> dict[str, float]:
        """The probability of each arm in the learner's first decision; an average over contexts, if it uses them."""
        learner, log = self.start(safe=False), self.survey.recent
        if self.by_context is None or log is None or log.contexts is None:
            mix = learner.ask().mix
        else:
            mix = np.mean(
                [learner.ask(context=row).mix for row in log.contexts[-min(CONTEXTS, self.world.horizon) :]], axis=0
            )
        return dict(zip(self.problem.arm_names, mix.tolist(), strict=True))

    @property
    def rounds_taught(self) -> int:
        """The number of rounds of the log from which the learner has learnt; old ones may count less."""
        if self.survey.recent is None or not self.policy.teachable:
            return 0
        return len(taught(self.survey.recent).arm)

    def start(self, seed: Seed = 0, safe: Safe | None = None) -> Learner:
        """Start the recommended policy, which has learnt the last rounds of the log; old ones count less if it drifts.

        Args:
            seed: Seed of the learner's own randomness.
            safe: Whether no budget may be overspent, which relies on ``cost_max``, or ``"statistical"``. Default:
                whether all maxima of costs were given, not taken from the log.

        Returns:
            The learner, before its first round. The candidates were judged without experience.
        """
        known = not set(self.survey.inferred) & set(self.survey.resources)
        learner = self.policy.start(self.problem, seed, known if safe is None else safe)
        if self.survey.recent is not None and self.policy.teachable:
            learner.teach(taught(self.survey.recent), half_life(self.fit, self.survey.rows))
        return learner

    def save(self, path: str | os.PathLike[str], seed: Seed = 0, safe: Safe | None = None) -> None:
        """Start the recommended policy and save it: ``ds.Learner.load(path)`` is ready to ``ask``.

        Args:
            path: The file to write.
            seed: As in :meth:`start`.
            safe: As in :meth:`start`.

        Raises:
            SettingError: The file holds a learner that has begun, whose budget would be spent again.
        """
        check_not_begun(path)
        self.start(seed, safe).save(path)

    @property
    def answer(self) -> str:
        """What the present rule earns, and what the recommended policy would earn with the budget."""
        return report_answer.answer(self)

    @property
    def actions(self) -> list[str]:
        """What to do, in three sentences."""
        return report_answer.actions(self)

    @property
    def summary(self) -> str:
        """The findings and the recommendation in one paragraph."""
        return " ".join(report_text.findings(self))

    @property
    def notes(self) -> str:
        """The maxima taken from the log, lost outcomes and repeated rows; empty if there are none."""
        return report_text.log_notes(self)

    @property
    def caution(self) -> str:
        """The assumptions behind the recommendation that may not hold, and what to do then; empty if there are none."""
        return report_text.caution(self)

    def __str__(self) -> str:
        texts = (self.answer, "\n".join(self.actions), self.summary, self.notes, self.caution)
        return "\n\n".join(text for text in texts if text)

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as plain data.

        Returns:
            A dictionary that ``json.dumps`` accepts.
        """
        intervals = {name: np.asarray(part).tolist() for name, part in self.ranges._asdict().items()}
        return {
            "answer": self.answer,
            "actions": self.actions,
            "own_rule": None
            if self.own_rule is None
            else {**self.own_rule._asdict(), "costs": self.own_rule.costs.tolist()},
            "first_mix": self.first_mix,
            "summary": self.summary,
            "notes": self.notes,
            "caution": self.caution,
            "log": {
                "name": self.name,
                "rows": self.survey.rows,
                "skipped": self.survey.skipped,
                "lost": self.survey.lost,
                "repeated": self.survey.repeated,
                "inferred": list(self.survey.inferred),
                "lenient": list(self.survey.lenient),
                "arms": dict(zip(self.survey.arms, self.survey.pulls.tolist(), strict=True)),
                "resources": list(self.survey.resources),
                "table": self.survey.table,
            },
            "problem": self.problem.to_dict(),
            "context": None if self.context is None else self.context.to_dict(),
            "drift": self.drift.to_dict(),
            "kind": self.kind.value,
            "noise_floor": self.floor._asdict(),
            "changes": (self.fit.changes + 1).tolist(),
            "worth": {**self.worth.to_dict(), "intervals": intervals},
            "recommended": self._standing_as_dict(self.recommended),
            "without_plans": self._standing_as_dict(self.steady),
            "periods": self.periods,
            "if_timing_is_off": dict(zip(("recommended", "without_plans"), self.shifted, strict=True)),
            "present_means_known": self.present._asdict(),
            "candidates": [self._standing_as_dict(standing) for standing in self.standings],
            "windows": {name: _nan_as_none(part) for name, part in self.windows._asdict().items()},
        }

    def reward(self, standing: Standing) -> float:
        """Return the mean reward of a candidate: its share of the optimum that the advice states.

        Args:
            standing: One of ``standings``.

        Returns:
            The reward, in the problem's units.
        """
        return standing.share * self.ranges.expected

    def _standing_as_dict(self, standing: Standing) -> dict[str, Any]:
        return {**standing.to_dict(), "reward": self.reward(standing)}

    def html(self, learner: str | os.PathLike[str] = "advice.learner") -> str:
        """Return the advice as one self-contained HTML page with figures.

        Args:
            learner: The file that :meth:`save` wrote or will write, which the page shows how to use.
        """
        from driftsack.advice.html_report import html_report

        return html_report(self, os.fspath(learner))

    def write(self, path: str | os.PathLike[str], learner: str | os.PathLike[str] = "advice.learner") -> None:
        """Write the advice to a file.

        Args:
            path: The file; plain data if it ends in .json, else the HTML page.
            learner: As in :meth:`html`.
        """
        target = Path(path)
        text = json.dumps(self.to_dict(), indent=2) if target.suffix == ".json" else self.html(learner)
        target.write_text(text, encoding="utf-8")


def check_not_begun(path: str | os.PathLike[str]) -> None:
    """Raise if a file holds a learner that has begun."""
    try:
        begun = Learner.load(path, read_only=True).round if Path(path).exists() else 0
    except FileFormatError:
        return
    if begun:
        raise SettingError(
            f"{path} must not hold a learner that has begun, because its budget would be spent again, got one after "
            f"{begun:,} rounds; name another file (--learner), or remove this one."
        )


def _nan_as_none(values: Floats) -> Any:
    """Nested lists with None for NaN, which JSON does not have."""
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    return plain.tolist()
