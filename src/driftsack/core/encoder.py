r"""``Encoder``: encodes the features of a request as a vector of numbers.

A request is a mapping such as ``{"kind": "code", "tokens": 812}``. The encoder is declared once and saved with the
learner. It puts numbers first, then one-hot categories, then embeddings. A category has a slot for each known value and
``spare`` slots into which unknown values are hashed, so that a request with an unknown value can still be encoded.

An embedding of D numbers may be projected to k of them, :math:`y = S e / \sqrt k` with random signs S, which keeps
scalar products in expectation (Achlioptas 2003). It costs D k multiplications a request, about 15 µs for 384 to 32, and
8 D k bytes of memory in the process; the file keeps the seed only. The products are added row by row and not by BLAS,
whose order of additions depends on the processor.

An *optional* feature may be missing from a request. A missing number is replaced by its mean over earlier requests
(:mod:`driftsack.policies.learner.missing`), and an indicator, at the end of the vector, says that it was; a missing
category counts as an unknown value. Encoded values are rounded to single precision, so that a vector is the same in a
process, in a file and in the journal of the service.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.checks import floats, frozen, number, whole
from driftsack.core.errors import NamesError, OutOfRangeError, SettingError
from driftsack.core.names import by_name, checked_names, position

Context = npt.ArrayLike | Mapping[str, Any]
"""The features of one request: numbers in order, or a mapping by name if the problem has an encoder."""
MOST_FEATURES: Final = 4096
MOST_SIGNS: Final = 2**22  # entries of a projection matrix
LARGEST_FEATURE: Final = 1e9
PLAIN: Final = {float, int}
WHOLE: Final = (str, int, np.integer)


@dataclass(frozen=True)
class Encoder:
    """Encodes the features of a request as a vector of numbers.

    Attributes:
        numbers: The names of numeric features. Policies standardise them.
        categories: A mapping from the name of each categorical feature to its known values; stored as pairs.
        embeddings: A mapping from the name of each vector feature to its length; stored as pairs.
        project: The dimension to which each embedding is projected; None for no projection.
        spare: The number of slots of each category for unknown values.
        seed: The seed of the random signs of the projection.
        optional: The names of the numbers and categories that requests may leave out, or give as None.

    Raises:
        NamesError: Names are repeated, or there are no features; or ``optional`` names none of them.
        OutOfRangeError: There are too many features.
        SettingError: An embedding is optional, or a category without slots for unknown values.

    >>> encoder = Encoder(numbers=["tokens"], categories={"kind": ["chat", "code"]})
    >>> encoder.encode({"kind": "code", "tokens": 812}).tolist(), encoder.size
    ([812.0, 0.0, 1.0, 0.0], 4)
    >>> encoder.encode({"kind": "poem", "tokens": 3}).tolist(), encoder.names
    ([3.0, 0.0, 0.0, 1.0], ('tokens', 'kind=chat', 'kind=code', 'kind=?'))
    >>> lenient = Encoder(numbers=["tokens"], categories={"kind": ["chat", "code"]}, optional=["tokens"])
    >>> lenient.encode({"kind": "code"}, means=[500.0]).tolist(), lenient.names[-1]
    ([500.0, 0.0, 1.0, 0.0, 1.0], 'tokens=?')
    """

    numbers: Sequence[str] = ()
    categories: Mapping[str, Sequence[str] | Sequence[int]] | tuple[tuple[str, tuple[str, ...]], ...] = ()
    embeddings: Mapping[str, int] | tuple[tuple[str, int], ...] = ()
    project: int | None = None
    spare: int = 1
    seed: int = 0
    optional: Sequence[str] = ()

    def __post_init__(self) -> None:
        # Convert the settings to tuples.
        numbers = checked_names(self.numbers, "numbers") if not _is_empty(self.numbers) else ()
        categories = tuple(
            (name, checked_names(_texts(values), f"the values of {name!r}"))
            for name, values in _pairs(self.categories, "categories")
        )
        embeddings = tuple(
            (name, whole(size, f"the length of {name!r}", 1, MOST_SIGNS))
            for name, size in _pairs(self.embeddings, "embeddings")
        )
        optional = checked_names(self.optional, "optional") if not _is_empty(self.optional) else ()
        found = {"numbers": numbers, "categories": categories, "embeddings": embeddings, "optional": optional}
        for name, value in found.items():
            object.__setattr__(self, name, value)
        # Check names and sizes.
        checked_names(self.inputs, "features")
        whole(self.spare, "spare", at_least=0, at_most=MOST_FEATURES)
        whole(self.seed, "seed", at_least=0)
        self._check_optional()
        if self.project is not None:
            if not embeddings:
                raise SettingError("project needs embeddings, got none; omit project or declare embeddings.")
            whole(self.project, "project", at_least=1, at_most=MOST_FEATURES)
            signs = self.project * sum(length for _, length in embeddings)
            if signs > MOST_SIGNS:
                raise OutOfRangeError(
                    f"project times the total length of the embeddings must be at most {MOST_SIGNS:,}, "
                    f"got {signs:,}; project to fewer dimensions."
                )
        if self.size > MOST_FEATURES:
            raise OutOfRangeError(
                f"a problem may have at most {MOST_FEATURES} features, got {self.size}; project embeddings to fewer."
            )

    def _check_optional(self) -> None:
        """Raise if a feature that may be missing cannot be."""
        for name in self.optional:
            position(name, self.inputs, "optional")
            if name in dict(_pairs(self.embeddings)):
                raise SettingError(f"an embedding cannot be optional, got {name!r:.80}; leave it out of optional.")
            if name not in self.numbers and not self.spare:
                raise SettingError(f"the optional category {name!r:.80} needs a slot for unknown values, got spare=0.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle through the constructor, which checks everything."""
        settings = (self.numbers, self.categories, self.embeddings, self.project, self.spare, self.seed, self.optional)
        return type(self), settings

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the features in a request."""
        return (*self.numbers, *(name for name, _ in _pairs(self.categories)), *(n for n, _ in _pairs(self.embeddings)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the n encoded features."""
        found = list(self.numbers)
        for name, values in _pairs(self.categories):
            found += [f"{name}={value}" for value in values]
            found += [f"{name}=?{k or ''}" for k in range(self.spare)]
        for name, length in _pairs(self.embeddings):
            found += [f"{name}_{k}" for k in range(self.project or length)]
        return (*found, *(f"{self.numbers[k]}=?" for k in self.missable))

    @cached_property
    def missable(self) -> tuple[int, ...]:
        """The positions, in the vector, of the numbers that may be missing; their indicators end the vector."""
        return tuple(k for k, name in enumerate(self.numbers) if name in self.optional)

    @cached_property
    def size(self) -> int:
        """The encoded dimension n."""
        slots = sum(len(values) + self.spare for _, values in _pairs(self.categories))
        vectors = sum(self.project or length for _, length in _pairs(self.embeddings))
        return len(self.numbers) + slots + vectors + len(self.missable)

    def slots(self, category: str) -> tuple[int, int]:
        """Return the slots of a category in the encoded vector.

        Args:
            category: The name of the categorical feature.

        Returns:
            The index of its first slot, and the number of its slots.
        """
        first = len(self.numbers)
        for name, values in _pairs(self.categories):
            if name == category:
                return first, len(values) + self.spare
            first += len(values) + self.spare
        known = [name for name, _ in _pairs(self.categories)]
        raise NamesError(f"the feature must be one of the categories {known}, got {category!r:.80}.")

    def encode(self, context: Mapping[str, Any], means: npt.ArrayLike | None = None) -> Floats:
        """Encode the features of a request.

        Args:
            context: One value for each feature, by name; optional features may be left out or None.
            means: The values of missing numbers, one for each number that is optional; 0 if omitted.

        Returns:
            (n,) the encoded vector, rounded to single precision.

        Raises:
            NamesError: A feature is missing or unknown.
            SettingError: A number or an embedding is not numeric, or a category is not a string or an integer.
            OutOfRangeError: A number is too large.
        """
        given, found, count = self._in_order(context), np.zeros(self.size), len(self.numbers)
        # Numeric features come first; the indicators of those that may be missing come last.
        if count:
            values = given[:count]
            for at, k in enumerate(self.missable):
                if values[k] is None:
                    values[k] = 0.0 if means is None else means[at]  # type: ignore[index]
                    found[self.size - len(self.missable) + at] = 1.0
            found[:count] = self._checked_numbers(values)
        # Then one-hot categories; an unknown value is hashed into a spare slot.
        place = count
        for value, (name, known) in zip(given[count:], self._known, strict=False):
            slot = self._slot(name, known, value)
            if slot >= 0:
                found[place + slot] = 1.0
            place += len(known) + self.spare
        # Then embeddings, projected if requested.
        for value, signs, (name, length) in zip(
            given[count + len(self._known) :], self._signs, _pairs(self.embeddings), strict=True
        ):
            vector = _checked_vector(value, name, length)
            width = self.project or length
            found[place : place + width] = vector if signs is None else (signs * vector[:, None]).sum(axis=0)
            place += width
        return found.astype(np.float32).astype(np.float64)

    def _in_order(self, context: Mapping[str, Any]) -> list[Any]:
        """Return the values of a request in the order of the features; None for optional ones that are missing."""
        if type(context) is dict and len(context) == len(self.inputs):
            try:
                return [context[name] for name in self.inputs]  # fast
            except KeyError:
                pass
        if not isinstance(context, Mapping):
            raise SettingError(f"context must be a mapping from the features {list(self.inputs)}, got {context!r:.80}.")
        if self.optional:
            context = dict.fromkeys(self.optional) | dict(context)
        return by_name(context, self.inputs, "context", "features")  # type: ignore[no-any-return]

    def _slot(self, name: str, known: dict[str, int], value: Any) -> int:
        """Return the slot of a value of a category; -1 for an unknown value if there are no spare slots."""
        if value is None and name in self.optional:
            value = ""
        if not isinstance(value, WHOLE):
            raise SettingError(f"{name!r} must be a string or an integer, got {value!r:.80}.")
        text = str(value)
        slot = known.get(text, -1)
        if slot < 0 and self.spare:
            slot = len(known) + zlib.crc32(text.encode(errors="surrogatepass")) % self.spare
        return slot

    def _checked_numbers(self, given: list[Any]) -> Floats:
        """Return the values of the numeric features; an error names the offending feature."""
        found = _plain_floats(given)
        if found is None:  # find the offending feature, one by one
            found = np.array([number(one, repr(name)) for name, one in zip(self.numbers, given, strict=True)])
        if np.abs(found).max() > LARGEST_FEATURE:
            _refuse_large(self.numbers[int(np.abs(found).argmax())], found)
        return found

    @cached_property
    def _known(self) -> list[tuple[str, dict[str, int]]]:
        """The categories, each with the slots of its known values."""
        return [(name, {value: k for k, value in enumerate(values)}) for name, values in _pairs(self.categories)]

    @cached_property
    def _signs(self) -> list[Floats | None]:
        """(length, project) the projection of each embedding; its signs come from a hash and not from NumPy."""
        return [
            None
            if self.project is None
            else frozen(np.ascontiguousarray(_random_signs(f"{self.seed}/{name}", self.project, length).T))
            for name, length in _pairs(self.embeddings)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, from which :meth:`from_dict` builds an equal encoder.

        Returns:
            The settings that differ from their defaults.
        """
        found: dict[str, Any] = {
            "numbers": list(self.numbers),
            "categories": {name: list(values) for name, values in _pairs(self.categories)},
            "embeddings": dict(_pairs(self.embeddings)),
        }
        found = {name: value for name, value in found.items() if value}
        found |= {"project": self.project} if self.project is not None else {}
        found |= {"spare": self.spare} if self.spare != 1 else {}
        found |= {"optional": list(self.optional)} if self.optional else {}
        return found | ({"seed": self.seed} if self.seed else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Encoder:
        """Build an encoder from the result of :meth:`to_dict`.

        Args:
            data: The result of :meth:`to_dict`.
        """
        return cls(**data)


def _pairs(given: Any, setting: str = "") -> tuple[tuple[str, Any], ...]:
    """Return the items of a mapping, which may already be stored as pairs."""
    if isinstance(given, Mapping):
        return tuple(given.items())
    if not isinstance(given, (tuple, list)) or any(not _is_pair(entry) for entry in given):
        raise SettingError(f"{setting} must be a mapping from names, got {given!r:.80}.")
    return tuple((name, value) for name, value in given)


def _is_pair(given: Any) -> bool:
    return isinstance(given, (tuple, list)) and len(given) == 2


def _texts(values: Any) -> Any:
    """Convert the values of a category to strings, because they may be integers; anything but a list is unchanged."""
    listed = isinstance(values, Iterable) and not isinstance(values, (str, bytes, set, frozenset))
    return [str(value) for value in values] if listed else values


def _is_empty(given: Any) -> bool:
    return isinstance(given, (tuple, list)) and not given


def _random_signs(seed: str, rows: int, columns: int) -> Floats:
    """Return a (rows, columns) matrix of random signs divided by the square root of ``rows``."""
    data = hashlib.shake_256(seed.encode()).digest(-(-rows * columns // 8))
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8))[: rows * columns]
    return frozen((2.0 * bits.reshape(rows, columns) - 1.0) / np.sqrt(rows))


def _plain_floats(given: Any) -> Floats | None:
    """Return a list of Python's own numbers within the limit as an array; None for anything else."""
    if type(given) is not list or not PLAIN.issuperset(map(type, given)):
        return None
    try:
        found = np.array(given, dtype=np.float64)
    except OverflowError:  # an integer that no float can hold
        return None
    within = found.max(initial=0.0) <= LARGEST_FEATURE and found.min(initial=0.0) >= -LARGEST_FEATURE
    return found if within else None  # NaN is not within


def _checked_vector(value: Any, name: str, length: int) -> Floats:
    """Return an embedding; an error names it."""
    plain = _plain_floats(value)
    if plain is not None and plain.size == length:
        return plain
    if isinstance(value, list) and bool in set(map(type, value)):
        raise SettingError(f"{name!r} must not have true or false among its numbers.")
    found = floats(value, repr(name), (length,))
    if np.abs(found).max() > LARGEST_FEATURE:
        _refuse_large(name, found)
    return found


def _refuse_large(name: str, values: Floats) -> None:
    raise OutOfRangeError(
        f"{name!r} must lie within {LARGEST_FEATURE:g} of 0, got {np.abs(values).max():g}; use another unit, or its "
        "logarithm."
    )


def checked_context(encoder: Encoder | None, features: int, context: Context, means: Floats | None = None) -> Floats:
    """Return the features of one request as (n,) numbers, each within ``LARGEST_FEATURE`` of 0.

    Args:
        means: The values of missing numbers; see :meth:`Encoder.encode`.

    >>> checked_context(None, 2, [1, 2.5])
    array([1. , 2.5])
    """
    if type(context) is dict or isinstance(context, Mapping):
        if encoder is None:
            raise NamesError(
                f"the features of the problem have no names, so a context must be {features} numbers, got a "
                "mapping; name them with Problem(features=[...]) or Problem(features=ds.Encoder(...))."
            )
        found = encoder.encode(context, means)
    else:
        found = floats(context, "context", (features,))
    largest = max(found.max(initial=0.0), -found.min(initial=0.0))
    if largest > LARGEST_FEATURE:
        raise OutOfRangeError(
            f"the features of a context must lie within {LARGEST_FEATURE:g} of 0, got {largest:g}; use another "
            "unit, or its logarithm."
        )
    return found
