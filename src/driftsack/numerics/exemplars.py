"""Describe the types of a kernel's arguments without Numba, and make arguments of these types again.

A description is data that another process understands: the child that compiles, and the name of a file in the cache.
Machine code depends on nothing else, not on shapes or values.

>>> import numpy as np
>>> describe((np.zeros((2, 3)), 0.5))
['tuple', [['array', '<f8', 2, 'C', True], 'float']]
>>> exemplar(describe((np.zeros((2, 3)), 0.5)))
(array([[0.]]), 0.0)
"""

from __future__ import annotations

import operator
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from driftsack.core.errors import CannotPinError
from driftsack.core.stamp import is_covered

NUMBERS: Final[dict[str, type]] = {kind.__name__: kind for kind in (bool, int, float)}


def describe(value: Any) -> Any:
    """Describe the type of an argument, in lists and strings.

    Raises:
        CannotPinError: It does not consist of arrays, numbers, generators and tuples, or a class is not covered by the
            stamp of the kernel cache.
    """
    kind = type(value)
    if isinstance(value, tuple):
        parts = [describe(part) for part in value]
        if kind is tuple:
            return ["tuple", parts]
        if not is_covered(kind.__module__):
            raise CannotPinError(f"{kind.__module__} is not covered by the stamp of the kernel cache.")
        return ["record", kind.__module__, kind.__qualname__, parts]
    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return ["array", value.dtype.str, value.ndim, layout, flags.writeable]
    if isinstance(value, np.generic):
        return ["scalar", value.dtype.str]
    if kind is Generator:
        return "generator"
    if NUMBERS.get(kind.__name__) is kind:
        return kind.__name__
    raise CannotPinError(f"an argument of a kernel must consist of arrays, numbers and tuples, got {kind.__name__}.")


def exemplar(description: Any) -> Any:
    """Make a value of the type that :func:`describe` described."""
    if isinstance(description, str):
        return np.random.default_rng(0) if description == "generator" else NUMBERS[description]()
    kind, *rest = description
    if kind == "tuple":
        return tuple(exemplar(part) for part in rest[0])
    if kind == "record":
        module, name, parts = rest
        found = operator.attrgetter(name)(import_module(module))
        return found(*(exemplar(part) for part in parts))
    if kind == "scalar":
        return np.dtype(rest[0]).type(0)
    return _array(*rest)


def _array(dtype: str, dimensions: int, layout: str, writeable: bool) -> Any:
    array = np.zeros((1 if layout == "C" else 4,) * dimensions, dtype=dtype, order="F" if layout == "F" else "C")
    if layout == "A":
        array = array[(slice(None, None, 2),) * dimensions]
    array.flags.writeable = writeable
    return array
