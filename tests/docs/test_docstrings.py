"""Every public function, class and method explains its parameters and fields where ``help`` shows them."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from driftsack.numerics.compiled import source

PACKAGES = (
    "driftsack",
    "driftsack.advice",
    "driftsack.authoring",
    "driftsack.benchmarks",
    "driftsack.client",
    "driftsack.core",
    "driftsack.core.errors",
    "driftsack.datasets",
    "driftsack.game",
    "driftsack.gym",
    "driftsack.instances",
    "driftsack.logs",
    "driftsack.lp",
    "driftsack.measures",
    "driftsack.oco",
    "driftsack.oco.instances",
    "driftsack.paper",
    "driftsack.plot",
    "driftsack.policies",
    "driftsack.simulation",
    "driftsack.sweeps",
    "driftsack.theory",
    "driftsack.verify",
)
SECTION = re.compile(r"^(Args|Attributes|Yields|Returns|Raises|Note|Notes|Example|Examples|References):\s*$")
ENTRY = re.compile(r"^ {4}\*{0,2}(\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?: \S")


def explained(docstring: str | None) -> set[str]:
    """The names that the ``Args`` and ``Attributes`` sections of a docstring explain."""
    found: set[str] = set()
    section = ""
    for line in inspect.cleandoc(docstring or "").splitlines():
        if head := SECTION.match(line):
            section = head[1]
        elif line and not line.startswith(" "):
            section = ""
        elif section in ("Args", "Attributes") and (entry := ENTRY.match(line)):
            found |= {name.strip("* ") for name in entry[1].split(",")}
    return found


def parameters(function: Any) -> set[str]:
    """The parameters that a caller passes."""
    return {name for name in inspect.signature(function).parameters if name not in ("self", "cls")}


def fields(cls: type) -> set[str]:
    """What a class is made of: the fields of a record, model or dataclass, else the constructor's parameters."""
    if dataclasses.is_dataclass(cls):
        return {field.name for field in dataclasses.fields(cls) if not field.name.startswith("_")}
    for names in (getattr(cls, "_fields", None), getattr(cls, "model_fields", None)):
        if names is not None:
            return set(names)
    own = cls.__dict__.get("__init__")
    return parameters(own) if own is not None else set()


def is_ours(thing: Any) -> bool:
    """Whether the library defines it."""
    return getattr(thing, "__module__", "").startswith("driftsack")


def inherited(cls: type, method: str) -> set[str]:
    """The parameters that a class further up explains for the method that is overridden."""
    return set().union(*(explained(getattr(vars(base).get(method), "__doc__", None)) for base in cls.__mro__[1:]))


def unexplained(name: str, thing: Any) -> Iterator[str]:
    """Every parameter and field of a public object that its docstring does not explain."""
    thing = source(thing)  # the function behind a kernel
    if inspect.isclass(thing) and is_ours(thing):
        known = explained(thing.__doc__) | explained(getattr(vars(thing).get("__init__"), "__doc__", None))
        for missing in sorted(fields(thing) - known):
            yield f"{name}: {missing}"
        for method, own in vars(thing).items():
            function = own.__func__ if isinstance(own, (classmethod, staticmethod)) else own
            if not method.startswith("_") and inspect.isfunction(function):
                known = explained(function.__doc__) | inherited(thing, method)
                yield from (f"{name}.{method}: {missing}" for missing in sorted(parameters(function) - known))
    elif inspect.isfunction(thing) and is_ours(thing):
        for missing in sorted(parameters(thing) - explained(thing.__doc__)):
            yield f"{name}: {missing}"


def public(package: ModuleType) -> dict[str, Any]:
    """The public names of a package: its ``__all__``, or what a module defines itself."""
    names = getattr(package, "__all__", None)
    if names is None:
        names = [name for name, thing in vars(package).items() if getattr(thing, "__module__", "") == package.__name__]
    return {name: getattr(package, name) for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_parameter_and_field_is_explained(name: str) -> None:
    found = public(importlib.import_module(name))
    missing = [line for key, thing in found.items() for line in unexplained(f"{name}.{key}", thing)]
    assert not missing, f"{len(missing)} unexplained:\n" + "\n".join(missing)


def test_an_unexplained_parameter_is_found() -> None:
    """The planted fault: one of two parameters has no line; mentioning it elsewhere in the docstring does not count."""

    def planted(first: int, second: int) -> int:
        """Add ``second`` to ``first``.

        Args:
            first: The first number.
        """
        return first + second

    planted.__module__ = "driftsack.planted"
    assert list(unexplained("planted", planted)) == ["planted: second"]
