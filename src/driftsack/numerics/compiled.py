"""``kernel``: the decorator of every compiled function of the library.

A kernel has two forms with the same results, bit for bit. *Machine code* runs when a kernel is called; Numba is
imported, and compiles it or loads it from the cache, at the first call. The *interpreted* form, plain Python, is what
:func:`interpreted` returns; it needs no Numba, and the kernels that it calls are interpreted too. With
``DRIFTSACK_COMPILE=never`` calls run the interpreted form.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, update_wrapper
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, Literal, TypeVar, cast

from driftsack.core.checks import one_of
from driftsack.core.locks import thread_lock
from driftsack.core.stamp import DECIDING, PACKAGE, code_digest, is_covered

Function = TypeVar("Function", bound=Callable[..., object])
Mode = Literal["first", "behind", "never"]
MODES: Final = ("first", "behind", "never")

_making = thread_lock()  # held while Numba is imported and while a form of a kernel is made
_finders: Final[dict[Callable[..., Any], Callable[[type, str], Any]]] = {}
_plain_globals: Final[dict[int, dict[str, Any]]] = {}


def mode() -> Mode:
    """Return when kernels are compiled, from ``DRIFTSACK_COMPILE``: ``first``, ``behind`` (default) or ``never``.

    ``NUMBA_DISABLE_JIT=1`` means ``never``, too.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:
        return "never"
    chosen = os.environ.get("DRIFTSACK_COMPILE") or "behind"
    one_of(chosen, "DRIFTSACK_COMPILE", MODES)
    return cast("Mode", chosen)


class Kernel:
    """A function with its machine code and its interpreted form, each made when it is first used.

    Attributes:
        py_func: The function.
    """

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., object], cached: bool = True) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._cached = cached
        self._dispatcher: Any = None
        self._interpreted: Any = None
        self._run: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, which compiles and runs the machine code."""
        if self._dispatcher is None:
            with _making:
                if self._dispatcher is None:
                    from driftsack.numerics.linking import new_dispatcher

                    self._dispatcher = new_dispatcher(self.py_func, self._cached)
        return self._dispatcher

    @property
    def is_loaded(self) -> bool:
        """Whether machine code has been loaded or compiled in this process."""
        return self._dispatcher is not None and bool(self._dispatcher.overloads)

    @property
    def interpreted(self) -> Callable[..., Any]:
        """The function in plain Python; the kernels that it calls are interpreted too."""
        if self._interpreted is None:
            with _making:
                self._interpreted = _with_plain_globals(self.py_func)
        return cast("Callable[..., Any]", self._interpreted)

    @property
    def _numba_type_(self) -> Any:
        """The Numba type that other kernels see."""
        return self.dispatcher._numba_type_

    @property
    def run(self) -> Callable[..., Any]:
        """The form that a call runs."""
        if self._run is None:
            self._run = self.interpreted if mode() == "never" else self.dispatcher
        return cast("Callable[..., Any]", self._run)

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        return self.run(*arguments)

    def __reduce__(self) -> Any:
        return (Kernel, (self.py_func, self._cached)) if self.__module__ == "__main__" else self.__qualname__

    def __repr__(self) -> str:
        return f"Kernel({self.__module__}.{self.__qualname__})"


def kernel(function: Function) -> Function:
    """Compile a function on first use, without the GIL and without a memory manager: it cannot allocate.

    The machine code is cached on disk if the function belongs to the package, so that the stamp covers it, and if
    Numba finds a writable directory. With ``DRIFTSACK_COMPILE=never`` the function runs in plain Python.

    Args:
        function: The function to compile. It calls other kernels by their global names.

    Returns:
        The kernel; ``py_func`` is the function.
    """
    return cast("Function", Kernel(function))


def classes_in(value: Any) -> tuple[type, ...]:
    """Return the classes of the NamedTuples in a state, outermost first."""
    inner = (found for part in value if isinstance(part, tuple) for found in classes_in(part))
    return (type(value), *inner) if hasattr(value, "_fields") else tuple(inner)


def is_packaged(classes: tuple[type, ...]) -> bool:
    """Return whether the stamp of the kernel cache covers the files that define classes, and so their kernels."""
    return all(is_covered(found.__module__) for found in classes)


def copy_for(kernel: Function, state: Any) -> Function:
    """Return the copy of a kernel that may be called from Python with a state, and with no state of other classes.

    Numba's dispatcher identifies an argument by a fingerprint, in which a NamedTuple is its name and its fields. Copies
    for classes that are defined outside the package are not cached on disk.
    """
    return cast("Function", _copy_for(classes_in(state), kernel))


@cache
def _copy_for(classes: tuple[type, ...], kernel: Kernel) -> Kernel:
    return Kernel(kernel.py_func, cached=is_packaged(classes))


def part_of(function: Callable[..., object]) -> str:
    """Return the subpackage that a function belongs to; empty for a function outside the package."""
    place = Path(function.__code__.co_filename).resolve()
    return place.relative_to(PACKAGE).parts[0] if PACKAGE in place.parents else ""


def stamp_of(part: str) -> str:
    """Return the digest of the code that decides what the kernels of a subpackage compute."""
    return code_digest(*{part} - set(DECIDING))


def source(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python function of a kernel; a plain function is returned unchanged.

    Kernels that it calls run machine code; use :func:`interpreted` if there are any.
    """
    function: Callable[..., Any] = getattr(compiled, "py_func", compiled)
    return function


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the interpreted form of a kernel, or of a function that was :func:`found_by_type`.

    >>> import numpy as np
    >>> from driftsack.numerics.sampling import draw
    >>> interpreted(draw)(np.array([0.25, 0.75]), 0.5)
    1
    """
    return cast("Callable[..., Any]", _plain(function))


# Functions that stand for a kernel which depends on the type of their first argument


def found_by_type(function: Callable[..., Any], find: Callable[[type, str], Any]) -> None:
    """Let a function stand for the kernel that ``find`` returns for the type of the first argument and its own name.

    Inside a kernel that is resolved when it is compiled.
    """
    _finders[function] = find


def finders() -> dict[Callable[..., Any], Callable[[type, str], Any]]:
    """Return every function that was :func:`found_by_type`, with what finds its kernels."""
    return dict(_finders)


def _found(function: FunctionType) -> Callable[..., Any]:
    """Return the interpreted form of a function that was :func:`found_by_type`."""
    find, name = _finders[function], function.__name__
    known: dict[type, Callable[..., Any]] = {}

    def call(first: Any, *others: Any) -> Any:
        kind = type(first)
        if kind not in known:
            known[kind] = interpreted(find(kind, name))
        return known[kind](first, *others)

    return call


# Interpreted forms


class _View:
    """A module in which kernels are interpreted."""


def _plain(value: Any) -> Any:
    """Return the interpreted form of a kernel, of a module with kernels, or of a function found by type."""
    if isinstance(value, Kernel):
        return value.interpreted
    if isinstance(value, FunctionType) and value in _finders:
        return _found(value)
    if isinstance(value, ModuleType) and any(isinstance(part, Kernel) for part in vars(value).values()):
        view = _View()
        view.__dict__ = _globals_of(vars(value))
        return view
    return value


def _with_plain_globals(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the globals of its module in which kernels are interpreted.

    A function outside the package is returned unchanged, because its module may still be growing, as in a notebook.
    """
    if not isinstance(function, FunctionType) or not part_of(function):
        return function
    names = _globals_of(function.__globals__)
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


def _globals_of(names: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the globals of a module in which kernels are interpreted."""
    plain = _plain_globals.get(id(names))
    if plain is None:
        plain = _plain_globals[id(names)] = dict(names)  # known before it is filled: modules may refer to each other
        plain |= {name: _plain(value) for name, value in names.items()}
    return plain
