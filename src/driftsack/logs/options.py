"""``ReadOptions``: how a log is read, declared once for ``read``, ``check``, ``survey`` and ``advise``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypedDict, Unpack

from driftsack.core.checks import flag, of_type
from driftsack.core.encoder import Encoder
from driftsack.core.errors import SettingError
from driftsack.core.names import Amounts

CHOICES: Final = {"decimal": (".", ","), "dates": ("iso", "us", "eu"), "missing_costs": ("refuse", "mean", "drop")}


@dataclass(frozen=True, eq=False)
class ReadOptions:
    """How to read a log: its columns, its arms and its maxima.

    Every function that reads a log takes these options as keyword arguments, as in
    ``ds.logs.read("log.csv", resources=["usd"])``. Make an object of them to describe a log once and read it several
    times: ``ds.logs.check("log.csv", options)``, then ``ds.advise("log.csv", budget=500, options=options)``.

    Attributes:
        resources: Columns of the resources. Default: those whose names begin with ``cost``.
        arms: Names of all arms that may occur. Default: those that do.
        reward_max: Largest possible reward of a round. Default: the largest in the log.
        cost_max: Largest possible cost of a round, one number or one for each resource, in order or by name. Default:
            the largest in the log.
        separator: Character that separates the columns of a CSV file.
        columns: The log's own names of the columns ``time``, ``arm``, ``reward`` and ``propensity``, such as
            ``{"time": "ts", "arm": "model"}``.
        lost: Whether an empty reward means that the outcome was lost, as with ``Learner.cancel``: the round counts, and
            nothing is learnt from it. Otherwise an empty reward is an error.
        drop_duplicates: Whether to leave out rows that repeat an earlier row in every column.
        features: How the columns ``context_NAME`` are encoded; other such columns are left out. Default: all of them,
            those with strings as categories.
        merge_names: Whether names of arms that differ only by case and blanks, such as ``DHL`` and ``dhl``, are one
            arm.
        decimal: Decimal mark of numbers, ``"."`` or ``","``.
        dates: How dates are written: ``"iso"``, ``"us"`` (1/31/2024) or ``"eu"`` (31.1.2024). ISO dates are always
            accepted.
        missing_costs: What to do if an arm was played and a cost is empty: ``"refuse"`` the log, replace the cost by
            the ``"mean"`` of its arm (the log is then kept in memory), or ``"drop"`` the row.

    Raises:
        SettingError: If an option is not one of its values, or ``features`` cannot be columns.
    """

    resources: Sequence[str] | None = None
    arms: Sequence[str] | None = None
    reward_max: float | None = None
    cost_max: Amounts | None = None
    separator: str = ","
    columns: Mapping[str, str] | None = None
    lost: bool = False
    drop_duplicates: bool = False
    features: Encoder | None = None
    merge_names: bool = False
    decimal: str = "."
    dates: str = "iso"
    missing_costs: str = "refuse"

    def __post_init__(self) -> None:
        for name in ("lost", "drop_duplicates", "merge_names"):
            object.__setattr__(self, name, flag(getattr(self, name), name))
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                expected = " or ".join(map(repr, choices))
                raise SettingError(f"{name} must be {expected}, got {value!r:.40}.")
        _check_features(self.features)

    @property
    def given(self) -> list[str]:
        """The names of the options that say something about the log itself."""
        return [
            field.name
            for field in fields(self)
            if getattr(self, field.name) != field.default and field.name != "separator"
        ]


class ReadKeywords(TypedDict, total=False):
    """The fields of :class:`ReadOptions` as keyword arguments."""

    resources: Sequence[str] | None
    arms: Sequence[str] | None
    reward_max: float | None
    cost_max: Amounts | None
    separator: str
    columns: Mapping[str, str] | None
    lost: bool
    drop_duplicates: bool
    features: Encoder | None
    merge_names: bool
    decimal: str
    dates: str
    missing_costs: str


def read_options(options: ReadOptions | None, **changes: Unpack[ReadKeywords]) -> ReadOptions:
    """Return the options, or the defaults, with some of them changed."""
    if options is None:
        return ReadOptions(**changes)
    of_type(options, ReadOptions, "options")
    return replace(options, **changes)


def _check_features(features: Any) -> None:
    """Raise if the features cannot be columns of a log."""
    if features is None:
        return
    if not isinstance(features, Encoder):
        raise SettingError(f"features must be a ds.Encoder or None, got {features!r:.80}.")
    if dict(features.embeddings):
        raise SettingError(
            f"features must not have embeddings, because a column of a log holds one value, got "
            f"{', '.join(dict(features.embeddings))}; write each number into a column of its own, listed in numbers."
        )
