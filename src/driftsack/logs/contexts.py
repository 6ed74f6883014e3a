"""The features of the requests of a log: the columns ``context_NAME``, numbers or categories.

Without a declaration, a column is numeric if all its values are numbers, and a category otherwise. This is known only
after the last row, so both readings are kept until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from driftsack.core.arrays import Bools, Floats
from driftsack.core.encoder import LARGEST_FEATURE, Encoder
from driftsack.logs import columns
from driftsack.logs.layout import CONTEXT
from driftsack.logs.options import ReadOptions

if TYPE_CHECKING:
    import polars as pl

MOST_VALUES: Final = 100  # of a category that was not declared
NO_SLOT: Final = -1  # the code of an unknown value of a category without spare slots
Reject = Callable[[Bools, str, str, str, Any], None]


@dataclass
class FeatureColumn:
    """One column of features while the log is being read."""

    name: str  # the name of the feature, without the prefix
    # The values of the category and its spare slots; None if it is a number or was not declared.
    declared: Encoder | None = None
    numeric: bool | None = None  # whether the column was declared as a number; None if nothing was declared
    # Code of each string that was seen: its slot if the category was declared, else in order of appearance.
    codes: dict[str, int] = field(default_factory=dict)
    strings: int = 0  # number of values that are not numbers
    rows: int = 0  # number of values
    example: tuple[int, str] = (0, "")  # the first value that is not a number
    optional: bool = False  # whether values may be missing
    decimal: str = "."  # the decimal mark of numbers

    @property
    def column(self) -> str:
        """The name of the column."""
        return CONTEXT + self.name

    @property
    def is_number(self) -> bool:
        """Whether the column is numeric, by its declaration or by the values read so far."""
        return self.strings == 0 if self.numeric is None else self.numeric

    def convert(self, values: pl.Series, line: int, reject: Reject) -> Floats:
        """Return (n, 2) the numbers, NaN where there are none, and the codes of the values as strings."""
        # Reject empty and infinite values.
        numbers, empty = columns.to_numbers(values, self.decimal), columns.is_empty(values)
        if not self.optional:
            advice = "fill it in, with 0 or a name for unknown ones, or declare it optional with features=ds.Encoder()"
            reject(empty, self.column, "empty", f"{self.column} is empty; {advice}", None)
        not_finite = (np.isinf(numbers) | columns.is_nan(values)) & ~empty
        finite = f"{self.column} must be finite, got {{}}; replace the value or remove the row"
        reject(not_finite, self.column, "not finite", finite, values)
        # Count the strings; a column with a string is a category, unless it was declared as a number.
        strings = np.isnan(numbers) & ~empty & ~not_finite
        self.rows += len(values)
        if strings.any() and not self.strings:
            first = int(np.flatnonzero(strings)[0])
            self.example = (line + first, str(values[first]))
        self.strings += int(strings.sum())
        if self.numeric:
            reject(strings, self.column, "not a number", f"{self.column} must be a number, got {{}}", values)
        # Reject numbers that are too large.
        if self.is_number:
            large = np.abs(numbers) > LARGEST_FEATURE
            unit = (
                f"{self.column} must lie within {LARGEST_FEATURE:g} of 0, got {{}}; use another unit or its logarithm"
            )
            reject(large & ~not_finite, self.column, "out of range", unit, values)
        return np.column_stack([numbers, self._codes(values)])

    def _codes(self, values: pl.Series) -> Floats:
        """(n,) The codes of the values as strings."""
        import polars as pl

        if self.numeric:
            return np.zeros(len(values))
        names = columns.arm_names(values).fill_null("")
        seen = {name: self._code(name) for name in names.unique(maintain_order=True).to_list()}
        return names.replace_strict(list(seen), list(seen.values()), return_dtype=pl.Float64).to_numpy()

    def _code(self, text: str) -> int:
        """The code of one string; a category that was not declared keeps a bounded number of them."""
        if self.declared is not None:
            slots = np.flatnonzero(self.declared.encode({self.name: text}))  # "" is a missing value
            return int(slots[0]) if slots.size else NO_SLOT
        if len(self.codes) <= MOST_VALUES:
            return self.codes.setdefault(text, len(self.codes))
        return self.codes.get(text, MOST_VALUES)

    def problem(self) -> str:
        """Say why the column can be neither a number nor a category; empty if it can."""
        if self.is_number or self.declared is not None or len(self.codes) <= MOST_VALUES:
            return ""
        if 2 * self.strings < self.rows:
            return f"{self.column} must be a number, as in most rows, got {self.example[1]!r:.80}; correct it"
        return (
            f"{self.column} has more than {MOST_VALUES} different values, such as {self.example[1]!r:.80}, too many "
            "for a category; pass features=ds.Encoder(...) with the values that matter, or without this column"
        )

    def one_hot(self, codes: Floats, encoder: Encoder) -> Floats:
        """(n, slots) The category in the slots of the encoder."""
        first, slots = encoder.slots(self.name)
        places = codes.astype(np.int64)
        if self.declared is None:
            known = [name.removeprefix(f"{self.name}=") for name in encoder.names[first : first + slots]]
            index = np.array([known.index(text) for text in self.codes])
            places = index[places]
        found = np.zeros((len(codes), slots))
        rows = np.flatnonzero(places != NO_SLOT)
        found[rows, places[rows]] = 1.0
        return found


def feature_columns(names: Sequence[str], options: ReadOptions) -> list[FeatureColumn]:
    """Return the columns of features, named without the prefix, before the first row."""
    features, mark = options.features, options.decimal
    if features is None:
        return [FeatureColumn(name, decimal=mark) for name in names]
    optional = features.optional
    found = [FeatureColumn(name, numeric=True, optional=name in optional, decimal=mark) for name in features.numbers]
    for name, values in dict(features.categories).items():
        own = Encoder(categories={name: values}, spare=features.spare)
        found.append(FeatureColumn(name, own, numeric=False, optional=name in optional))
    return found


def encoder_of(found: Sequence[FeatureColumn], features: Encoder | None) -> Encoder:
    """Return the declared encoder, or one of the columns as they were read, the values of categories in order."""
    if features is not None:
        return features
    numbers = [one.name for one in found if one.is_number]
    return Encoder(numbers, {one.name: sorted(one.codes) for one in found if not one.is_number})


def encoded(found: Sequence[FeatureColumn], raw: Floats, encoder: Encoder) -> Floats:
    """Encode the values (n, columns, 2) of ``FeatureColumn.convert`` as contexts (n, features), numbers first.

    Missing numbers are replaced by the mean of their column, and marked by an indicator.
    """
    by_name = {one.name: (one, raw[:, k]) for k, one in enumerate(found)}
    missing = np.isnan(raw[:, [k for k, one in enumerate(found) if one.name in encoder.numbers], 0])
    parts = [_imputed(by_name[name][1][:, :1]) for name in encoder.numbers]
    for name in dict(encoder.categories):
        one, values = by_name[name]
        parts.append(one.one_hot(values[:, 1], encoder))
    parts.append(missing[:, list(encoder.missable)].astype(np.float64))
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _imputed(column: Floats) -> Floats:
    """(n, 1) The values of a number, with their mean where they are missing."""
    known = column[~np.isnan(column)]
    return np.where(np.isnan(column), known.mean() if known.size else 0.0, column)


def decoded(encoder: Encoder, contexts: Floats) -> Mapping[str, Any]:
    """Return the columns of encoded contexts: None for missing numbers, ``?`` for values without their own slot."""
    found: dict[str, Any] = {CONTEXT + name: contexts[:, k] for k, name in enumerate(encoder.numbers)}
    for at, place in enumerate(encoder.missable):
        indicator = contexts[:, encoder.size - len(encoder.missable) + at]
        found[CONTEXT + encoder.numbers[place]] = np.where(indicator > 0, None, contexts[:, place]).tolist()  # type: ignore[call-overload]
    for name in dict(encoder.categories):
        first, slots = encoder.slots(name)
        own = contexts[:, first : first + slots]
        names = [one.removeprefix(f"{name}=") for one in encoder.names[first : first + slots]]
        texts = np.array([*names, "?"], dtype=object)
        found[CONTEXT + name] = texts[np.where(own.any(axis=1), own.argmax(axis=1), slots)].tolist()
    return found


def plain_columns(encoder: Encoder, contexts: Floats) -> dict[str, list[Any]]:
    """Return columns of encoded contexts that are read without a declaration.

    Missing numbers are those that were assumed, with their indicators; embeddings have a column for each number.
    """
    found = dict(decoded(encoder, contexts)) | {CONTEXT + n: contexts[:, k] for k, n in enumerate(encoder.numbers)}
    one_hot = len(encoder.numbers) + sum(encoder.slots(name)[1] for name in dict(encoder.categories))
    found |= {CONTEXT + encoder.names[k]: contexts[:, k] for k in range(one_hot, encoder.size)}
    return {name: list(column) for name, column in found.items()}
