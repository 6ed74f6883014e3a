"""``AdviseSettings``: the settings of the test for drift and of the comparison of candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from driftsack.advice.drift_detection import LEVEL, SHUFFLES
from driftsack.core.checks import flag, of_type, whole
from driftsack.logs import ReadOptions
from driftsack.logs.options import ReadKeywords, read_options


@dataclass(frozen=True)
class AdviseSettings:
    """Settings of the test for drift and of the comparison of candidates.

    ``ds.advise`` takes them as keyword arguments too, as in ``ds.advise(log, budget=500, worlds=50)``.

    Attributes:
        block: Rounds that are correlated without any drift, such as those of a day; they count as one outcome in the
            test for drift, and widen intervals.
        windows: Number of windows of time that drift is measured in. Default: chosen by the length of the log.
        plans: Whether to include policies that assume that the timing of the log repeats; they take part only if the
            log covers at least two horizons, so that its timing can be seen to recur.
        worlds: Number of instances resampled from the log and from later parts of it that candidates are simulated on.
        trials: Trials of each candidate on each instance.
        level: Level of the test for drift.
        shuffles: Number of shuffled orders of the test for drift.
        seed: Seed; the same seed gives the same advice.

    Raises:
        SettingError: If ``plans`` is not a bool.
        OutOfRangeError: If ``block`` or ``worlds`` is not an integer of 1 or more.
    """

    block: int = 1
    windows: int | None = None
    plans: bool = True
    worlds: int = 20
    trials: int = 4
    level: float = LEVEL
    shuffles: int = SHUFFLES
    seed: int = 0

    def __post_init__(self) -> None:
        flag(self.plans, "plans")
        whole(self.block, "block", at_least=1)
        whole(self.worlds, "worlds", at_least=1)


class AdviseKeywords(ReadKeywords, total=False):
    """The fields of :class:`AdviseSettings` and of :class:`~driftsack.logs.ReadOptions` as keyword arguments."""

    block: int
    windows: int | None
    plans: bool
    worlds: int
    trials: int
    level: float
    shuffles: int
    seed: int


def with_changes(
    options: ReadOptions | None, settings: AdviseSettings | None, changes: Mapping[str, Any]
) -> tuple[ReadOptions, AdviseSettings]:
    """Return the options and the settings, or their defaults, each with its part of the changes."""
    if settings is not None:
        of_type(settings, AdviseSettings, "settings")
    own = {field.name for field in fields(AdviseSettings)}
    changed = {name: value for name, value in changes.items() if name in own}
    others: Any = {name: value for name, value in changes.items() if name not in own}
    return read_options(options, **others), replace(settings or AdviseSettings(), **changed)
