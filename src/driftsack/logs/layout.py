"""Which column of a log is what; and what is wrong with a file before its first row.

A log has one row a round: ``time``, ``arm`` (empty: the round was skipped), ``reward``, one column for each resource
(those that begin with ``cost``, or those that are named), and, if it is known, ``propensity``: the probability with
which the arm was chosen. A full-information table says what *every* arm would have given: ``reward:ARM`` and
``RESOURCE:ARM`` for each arm. A file may be both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from driftsack.core.checks import Floats, above_zero, vector
from driftsack.core.errors import LogError, OutOfRangeError, SettingError

TIME: Final = "time"
ARM: Final = "arm"
REWARD: Final = "reward"
PROPENSITY: Final = "propensity"
COST: Final = "cost"
OF_ARM: Final = ":"
OTHER_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}


class Wanted(NamedTuple):
    """What the reader was told about a log."""

    resources: Sequence[str] | None = None  # their columns; None: those that begin with "cost"
    arms: Sequence[str] | None = None  # None: those that occur
    reward_max: float = 1.0
    cost_max: Sequence[float] | float = 1.0


class Layout(NamedTuple):
    """The columns of one file, and the most that a value may be."""

    resources: tuple[str, ...]
    arms: tuple[str, ...] | None  # None: those that occur, found while reading
    played: bool  # there are arm and reward: somebody chose
    propensity: bool
    table: bool  # there is what every arm would have given
    reward_max: float
    cost_max: Floats  # (d,)

    @property
    def columns(self) -> list[str]:
        """Every column that is read, time first."""
        names = [TIME]
        if self.played:
            names += [ARM, REWARD, *self.resources]
        if self.propensity:
            names.append(PROPENSITY)
        if self.table and self.arms is not None:
            names += [f"{part}{OF_ARM}{arm}" for arm in self.arms for part in (REWARD, *self.resources)]
        return names


def find_layout(columns: Sequence[str], wanted: Wanted, name: str) -> Layout:
    """Settle what each column is, or say what is missing.

    >>> find_layout(["time", "arm", "reward", "cost_money"], Wanted(), "log.csv").resources
    ('cost_money',)
    """
    check_separator(columns, name)
    in_table = [column for column in columns if OF_ARM in column]
    tabled = tuple(dict.fromkeys(c.split(OF_ARM, 1)[1] for c in in_table if c.split(OF_ARM, 1)[0] == REWARD))
    resources = _resources(columns, wanted, name)
    arms = tuple(str(arm) for arm in wanted.arms) if wanted.arms is not None else tabled or None
    if arms is not None and len(set(arms)) != len(arms):
        raise SettingError(f"arms must differ from each other, got {', '.join(arms)}.")
    table, played = bool(tabled), ARM in columns or not tabled
    amounts = vector(wanted.cost_max, "cost_max", len(resources))
    if (amounts <= 0).any():
        raise OutOfRangeError(f"cost_max must be above 0, got {amounts.min():g}.")
    layout = Layout(
        resources=resources,
        arms=arms,
        played=played,
        propensity=PROPENSITY in columns and played,
        table=table,
        reward_max=above_zero(wanted.reward_max, "reward_max"),
        cost_max=amounts,
    )
    missing = [column for column in layout.columns if column not in columns]
    if missing:
        raise LogError(
            f"{name} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}; "
            f"it has {', '.join(columns)}. Rename or add what is missing."
        )
    return layout


def check_separator(columns: Sequence[str], name: str) -> None:
    """Raise if the header was not cut at the commas because there are none."""
    if len(columns) != 1:
        return
    for separator, spelled in OTHER_SEPARATORS.items():
        if separator in columns[0]:
            raise LogError(
                f"{name} must be separated by commas, but its header {columns[0]!r:.60} is separated by {spelled}; "
                f"pass separator={separator!r} or save it with commas."
            )


def _resources(columns: Sequence[str], wanted: Wanted, name: str) -> tuple[str, ...]:
    """The resources' columns: those that were named, or those whose names begin with ``cost``."""
    if wanted.resources is not None:
        return tuple(wanted.resources)
    plain = dict.fromkeys(column.split(OF_ARM, 1)[0] for column in columns)
    found = tuple(column for column in plain if column.startswith(COST))
    if not found:
        raise LogError(
            f"{name} lacks a column for each resource: their names begin with {COST!r}, such as cost_money, or are "
            f"passed as resources=[...]; it has {', '.join(columns)}."
        )
    return found
