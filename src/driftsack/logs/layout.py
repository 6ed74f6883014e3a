"""The columns of a log: their names and roles, checked before the first row is read.

A log has one row per round, with the columns ``time``, ``arm`` (empty if the round was skipped), ``reward``, one column
for each resource (those whose names begin with ``cost``, or those that the caller names) and, optionally,
``propensity``: the probability with which the arm was chosen, and ``context_NAME``: a feature of the request. Columns
with other names are mapped to these roles. A full-information table has the outcomes of *every* arm in the columns
``reward:ARM`` and ``RESOURCE:ARM``. A file may contain both.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, vector
from driftsack.core.encoder import Encoder
from driftsack.core.errors import LogError, OutOfRangeError, SettingError
from driftsack.core.names import by_name, checked_names
from driftsack.logs.options import ReadOptions

TIME: Final = "time"
ARM: Final = "arm"
REWARD: Final = "reward"
PROPENSITY: Final = "propensity"
COST: Final = "cost"
CONTEXT: Final = "context_"  # begins the columns of the features of a request
ARM_SEPARATOR: Final = ":"  # between a quantity and an arm in the columns of a full-information table
ROLES: Final = (TIME, ARM, REWARD, PROPENSITY)
SIMILAR: Final = 0.75  # share of common letters from which a column is suggested for a missing one
SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class Layout(NamedTuple):
    """The columns of one file and the largest values that they may hold."""

    resources: tuple[str, ...]  # columns of the resources
    arms: tuple[str, ...] | None  # names of the arms; None if they are collected while reading
    played: bool  # whether the columns ``arm`` and ``reward`` exist, so that each row records a choice
    propensity: bool  # whether the column ``propensity`` exists
    table: bool  # whether the outcomes of every arm are given (full information)
    maxima: Floats  # (1 + d,) largest possible reward and costs; infinite where they are taken from the log
    names: dict[str, str]  # the file's own names of the columns that were mapped, by role
    options: ReadOptions  # how values are read, and which rows are accepted
    contexts: tuple[str, ...] = ()  # names of the features of a request, without the prefix of their columns

    @property
    def columns(self) -> list[str]:
        """All columns that are read, time first."""
        names = [TIME]
        if self.played:
            names += [ARM, REWARD, *self.resources]
        if self.propensity:
            names.append(PROPENSITY)
        names += [CONTEXT + name for name in self.contexts]
        if self.table and self.arms is not None:
            names += [f"{part}{ARM_SEPARATOR}{arm}" for arm in self.arms for part in (REWARD, *self.resources)]
        return names


def find_layout(header: Sequence[str], options: ReadOptions, name: str) -> Layout:
    """Assign a role to each column, or raise an error that names the missing ones.

    >>> find_layout(["time", "arm", "reward", "cost_money"], ReadOptions(), "log.csv").resources
    ('cost_money',)
    """
    # Find the roles of the columns, the resources and the arms.
    check_separator(header, name, one_character(options.separator))
    own = _checked_mapping(header, options.columns, name)
    columns = _with_roles(header, own)
    resources = _resource_columns(columns, own, options, name)
    parts = [column.split(ARM_SEPARATOR, 1) for column in columns if ARM_SEPARATOR in column]
    tabled = tuple(dict.fromkeys(arm for part, arm in parts if part in (REWARD, *resources)))
    arms = _checked_names(options.arms, "arms") or tabled or None
    played = ARM in columns or not tabled
    # Build the layout, and check that the log has the columns that it needs.
    layout = Layout(
        resources=resources,
        arms=arms,
        played=played,
        propensity=PROPENSITY in columns and played,
        table=bool(tabled),
        maxima=_maxima(options, resources),
        names=own,
        options=options,
        contexts=_context_names(columns, resources, options.features),
    )
    _check_present(layout.columns, columns, own, name)
    return layout


def _context_names(columns: Sequence[str], resources: Sequence[str], features: Encoder | None) -> tuple[str, ...]:
    """Return the features: those that were declared, or those with a column."""
    if features is not None:
        return features.inputs
    prefixed = [column for column in columns if column.startswith(CONTEXT) and column not in resources]
    return tuple(column.removeprefix(CONTEXT) for column in prefixed if column != CONTEXT)


def _checked_mapping(header: Sequence[str], given: Mapping[str, str] | None, name: str) -> dict[str, str]:
    """Return the file's own names of the columns whose names differ, by role."""
    own = {str(role): str(column) for role, column in (given or {}).items() if str(role) != str(column)}
    unknown = [role for role in own if role not in ROLES]
    if unknown:
        raise SettingError(
            f"columns must map {', '.join(ROLES)} to columns of the log, got {', '.join(unknown)}; name the columns of "
            "costs as resources=[...] (--cost)."
        )
    absent = [column for column in own.values() if column not in header]
    if absent:
        raise LogError(
            f"{name} lacks the column{'s' * (len(absent) > 1)} {', '.join(absent)}; it has {', '.join(header)}."
            f"{_did_you_mean(absent, header)}"
        )
    return own


def _with_roles(header: Sequence[str], own: Mapping[str, str]) -> list[str]:
    """Return the header with the names of the roles; another column with the name of a mapped role is left out."""
    roles = {column: role for role, column in own.items()}
    return [roles.get(column, column) for column in header if column in roles or column not in own]


def _maxima(options: ReadOptions, resources: Sequence[str]) -> Floats:
    """(1 + d,) The largest possible reward and costs; infinite where they are taken from the log."""
    most = np.full(1 + len(resources), np.inf)
    if options.reward_max is not None:
        most[0] = above_zero(options.reward_max, "reward_max")
    if options.cost_max is not None:
        most[1:] = vector(one_per_resource(options.cost_max, "cost_max", resources), "cost_max", len(resources))
        if (most[1:] <= 0).any():
            raise OutOfRangeError(f"cost_max must be above 0, got {most[1:].min():g}.")
    return most


def one_character(separator: str) -> str:
    """Check the separator; a tab may be written as a backslash and a t, as shells pass it."""
    character = "\t" if separator == r"\t" else str(separator)
    if len(character) != 1 or not character.isascii() or character in '"\r\n':
        raise SettingError(f"separator must be one character, such as ',' or ';' or a tab, got {separator!r}.")
    return character


def check_separator(columns: Sequence[str], name: str, separator: str) -> None:
    """Raise if the header is a single field because the columns are separated by another character."""
    if len(columns) != 1:
        return
    expected = SEPARATORS.get(separator, repr(separator))
    for other, spelling in SEPARATORS.items():
        if other in columns[0] and other != separator:
            raise LogError(
                f"{name} must be separated by {expected}, but its header {columns[0]!r:.60} is separated by {spelling};"
                f" pass separator={other!r} (--separator) or save it with {expected}."
            )


def _check_present(needed: Sequence[str], columns: Sequence[str], own: Mapping[str, str], name: str) -> None:
    """Raise if a column is missing; the message suggests the columns whose names are similar."""
    missing = [column for column in needed if column not in columns]
    if not missing:
        return
    listed = ", ".join(own.get(column, column) for column in columns)
    roles = {role: _similar(role, columns) or f"MY_{role.upper()}" for role in missing if role in ROLES}
    options = " ".join(f"--{role} {shlex.quote(column)}" for role, column in roles.items())
    named = f" Add them, or say which columns they are: columns={roles} ({options})." if roles else ""
    raise LogError(
        f"{name} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}; it has {listed}."
        f"{_did_you_mean(missing, columns)}{named}"
    )


def _did_you_mean(missing: Sequence[str], columns: Sequence[str]) -> str:
    """Suggest a column for each missing one; empty if none is similar.

    >>> _did_you_mean(["price"], ["ts", "Price"])
    ' Did you mean `Price` instead of `price`?'
    """
    found = {column: _similar(column, columns) for column in missing}
    return "".join(f" Did you mean `{near}` instead of `{column}`?" for column, near in found.items() if near)


def _similar(missing: str, columns: Sequence[str]) -> str:
    """Return the column whose name is most similar, without regard to case and blanks; empty if none is."""
    alike = {column.strip().lower(): column for column in reversed(columns)}
    near = difflib.get_close_matches(missing.strip().lower(), alike, n=1, cutoff=SIMILAR)
    return alike[near[0]] if near else ""


def one_per_resource(values: Any, setting: str, resources: Sequence[str]) -> Any:
    """Return ``values`` if they are one number for all resources or one for each, in their order or by name.

    A resource of the column ``cost_usd`` may be called ``usd``, as in the campaign that exported the log.
    """
    if isinstance(values, Mapping):
        full = {name: name if name in resources else f"{COST}_{name}" for name in values}
        known = {name: one if one in resources and one not in values else name for name, one in full.items()}
        values = {known[name]: value for name, value in values.items()}
    values = by_name(values, resources, setting)
    if np.ndim(values) == 1 and len(values) != len(resources):
        count = f"{len(resources)} resource{'s' * (len(resources) > 1)} ({', '.join(resources)})"
        raise SettingError(f"{setting} must be given once for each of the log's {count}, got {len(values)}.")
    return values


def _checked_names(given: Sequence[str] | None, setting: str) -> tuple[str, ...]:
    """Check names that the caller passed; empty if there are none."""
    if given is None:
        return ()
    return checked_names(given if isinstance(given, str) else [str(one) for one in given], setting)


def _resource_columns(
    columns: Sequence[str], own: Mapping[str, str], options: ReadOptions, name: str
) -> tuple[str, ...]:
    """Return the columns of the resources: those that the caller names, or those whose names begin with ``cost``."""
    named = _checked_names(options.resources, "resources")
    quantities = dict.fromkeys(column.split(ARM_SEPARATOR, 1)[0] for column in columns)
    resources = named or tuple(column for column in quantities if column.strip().lower().startswith(COST))
    taken = [column for column in resources if column in (TIME, ARM, REWARD, PROPENSITY)]
    if taken:
        raise SettingError(f"resources must not be {', '.join(taken)}, which have another meaning in every log.")
    if not resources:
        _check_present(
            [TIME, *([] if any(ARM_SEPARATOR in column for column in columns) else [ARM, REWARD])], columns, own, name
        )
        raise LogError(
            f"{name} lacks a column for each resource: their names begin with {COST!r}, such as cost_money, or are "
            f"passed as resources=[...] (--cost); it has {', '.join(own.get(column, column) for column in columns)}."
        )
    return resources
