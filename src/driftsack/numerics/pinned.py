"""``pin``: speed up calls of a kernel from Python by passing most of its arguments only once.

An ordinary call converts every array of every argument to its native form: about 18 µs for the state of a policy. If
the same objects are passed every time, their addresses and shapes can be written into a table once. A *pinned entry*
is machine code that reads the table and runs the kernel; a call passes the address of the table and a few numbers.

>>> import numpy as np
>>> from driftsack.numerics.compiled import kernel
>>> @kernel
... def add(total, factor, value):
...     total[0] += factor * value
...     return total[0]
>>> total = np.zeros(1)
>>> pinned = pin(add, total, 3)
>>> pinned(0.5), pinned(2.0), total
(1.5, 7.5, array([7.5]))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np
from numba import types

from driftsack.core.errors import CannotPinError
from driftsack.numerics.compiled import Kernel, source
from driftsack.numerics.linking import Dispatcher, cache_pinned
from driftsack.numerics.pinned_table import classes_in, new_table, reader_of, types_of

Result = int | float | None
Scalars = tuple[type, ...]
NATIVE: Final = {bool: types.boolean, int: types.int64, float: types.float64}
"""The native type of each Python type that may be passed in a call."""


def pin(kernel: Callable[..., Any], *fixed: Any) -> Callable[..., Any]:
    """Pin the first arguments of a kernel: ``pin(kernel, a, b)(x, y)`` is ``kernel(a, b, x, y)``, bit for bit.

    The addresses of the objects are stored. Kernels see new *contents* of an array and new states of a generator, but
    not an object that replaces another. Copies of the objects, by ``copy``, ``pickle`` or in another process, must be
    pinned again; after ``fork`` the child has its own memory at the same addresses, and calls work.

    Machine code is compiled at the first call for each combination of types, and cached on disk if that of the kernel
    is. Code outside the package is compiled in each process.

    Args:
        kernel: The kernel. It returns a number, a bool or nothing.
        *fixed: The first arguments: C-contiguous arrays, numbers, numpy Generators, and (nested, named) tuples of them.
            Arrays that are read-only now are read-only in the kernel; do not change that later.

    Returns:
        A function of the remaining arguments, a :class:`Pinned`.

    Raises:
        CannotPinError: The function is not a kernel, or an argument cannot be pinned.
    """
    if not isinstance(kernel, Kernel):
        raise CannotPinError(f"{_name(kernel)} must be a kernel; decorate it with driftsack.numerics.compiled.kernel.")
    names = tuple(inspect.signature(kernel.py_func).parameters)
    if len(fixed) > len(names):
        raise CannotPinError(f"{_name(kernel)} takes {len(names)} arguments, got {len(fixed)} to pin; pin fewer.")
    kinds = types_of(fixed, names[: len(fixed)])
    return Pinned(entry_of(kernel, kinds, names[len(fixed) :]), fixed)


def entry_of(kernel: Kernel, kinds: tuple[Any, ...], remaining: tuple[str, ...]) -> Entry:
    """Return the entry of a kernel for pinned arguments of given types; ``remaining`` are the names of the others."""
    pinned = kernel.dispatcher.pinned
    entry: Entry | None = pinned.get(kinds)
    if entry is None:  # setdefault is atomic: threads that pin concurrently share one entry
        entry = pinned.setdefault(kinds, Entry(kernel.dispatcher, kinds, remaining))
    return entry


class Pinned:
    """A kernel with pinned arguments, created by :func:`pin`.

    Calls do not hold the GIL while the kernel runs. Pinned kernels may run in several threads at once; arrays that they
    share are not protected, as in an ordinary call.

    Attributes:
        entry: The machine code, shared by all kernels that are pinned with the same types.
        fixed: The pinned arguments, which it keeps alive.
    """

    __slots__ = ("_address", "_points", "_table", "entry", "fixed")

    def __init__(self, entry: Entry, fixed: tuple[Any, ...]) -> None:
        self.entry, self.fixed = entry, fixed
        self._table = new_table(fixed)
        self._address: int = self._table.ctypes.data
        self._points = entry.points

    def __call__(self, *scalars: float) -> Result:
        """Call the kernel with the remaining arguments: 64-bit ints, floats and bools. NumPy scalars are cast to them.

        A wrong number or type of arguments raises ``TypeError``, an int of more than 64 bits ``OverflowError``, and a
        kernel that returns something other than a number, a bool or nothing ``CannotPinError``.
        """
        point = self._points.get(tuple(map(type, scalars)))
        if point is None:
            scalars = self.entry.cast(scalars)
            point = self.entry.point(tuple(map(type, scalars)))
        result: Result = point(self._address, scalars)
        return result

    def __repr__(self) -> str:
        return f"Pinned({self.entry.name}, {len(self.fixed)} arguments, {self._table.size} words)"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} holds addresses and cannot be copied or pickled; pin the copies of its arguments.")


class Entry:
    """The machine code of a kernel for pinned arguments of given types.

    Attributes:
        name: The name of the kernel.
        dispatcher: The compiled function of the address of a table and the tuple of the remaining arguments.
        points: The compiled functions by the types of the remaining arguments.
    """

    def __init__(self, kernel: Dispatcher, kinds: tuple[Any, ...], remaining: tuple[str, ...]) -> None:
        self.name = _name(kernel)
        self.points: dict[Scalars, Callable[[int, tuple[float, ...]], Result]] = {}
        self._remaining = remaining
        self.dispatcher = _dispatcher(kernel, kinds)
        classes = {found for kind in kinds for found in classes_in(kind)}
        cache_pinned(self.dispatcher, kernel, kinds, {found.__module__ for found in classes})

    def point(self, scalars: Scalars) -> Callable[[int, tuple[float, ...]], Result]:
        """Return the machine code for remaining arguments of given Python types; load or compile it if necessary."""
        kinds = (types.int64, types.Tuple([NATIVE[scalar] for scalar in scalars]))
        point = self.dispatcher.compile(kinds)
        result = self.dispatcher.overloads[kinds].signature.return_type
        if not isinstance(result, types.Number | types.Boolean | types.NoneType):
            raise CannotPinError(f"{self.name} must return a number, a bool or nothing to be pinned, got {result}.")
        return self.points.setdefault(scalars, point)

    def cast(self, scalars: tuple[Any, ...]) -> tuple[Any, ...]:
        """Convert the remaining arguments to Python numbers; ``TypeError`` if their number or a type is wrong."""
        if len(scalars) != len(self._remaining):
            raise TypeError(
                f"{self.name} takes {len(self._remaining)} more arguments ({', '.join(self._remaining)}), "
                f"got {len(scalars)}."
            )
        return tuple(self._cast(scalar, name) for scalar, name in zip(scalars, self._remaining, strict=True))

    def _cast(self, scalar: Any, name: str) -> bool | int | float:
        if isinstance(scalar, bool | np.bool_):
            return bool(scalar)
        if isinstance(scalar, int | np.integer):
            return int(scalar)
        if isinstance(scalar, float | np.floating):
            return float(scalar)
        raise TypeError(
            f"{name} of {self.name} must be an int, a float or a bool, got {type(scalar).__name__}; "
            "pin arrays and tuples instead."
        )


def _dispatcher(kernel: Dispatcher, kinds: tuple[Any, ...]) -> Dispatcher:
    """Return the kernel that reads a table and calls ``kernel``."""
    read = reader_of(kinds)

    def entry(address: int, scalars: tuple[float, ...]) -> Any:
        return kernel(*(read(address) + scalars))

    entry.__module__ = kernel.__module__
    entry.__qualname__ = f"{kernel.__qualname__}.pinned"
    return Dispatcher(entry)


def _name(kernel: Callable[..., Any]) -> str:
    return source(kernel).__name__
