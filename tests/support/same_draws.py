"""Let Hypothesis draw the same examples in every process.

Hypothesis mixes constants of the project's code into its draws, but only those of the modules that the process has
imported by then. With ``derandomize=True`` the draws therefore still depend on the tests that ran before in the same
process, which differ from one parallel run of the suite to the next. Here the constants are those of the whole package,
whatever is imported.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants, ConstantVisitor
from sortedcontainers import SortedSet

import driftsack

PACKAGE = Path(driftsack.__file__).parent
constants_of_imported_modules = providers._get_local_constants


@cache
def constants_of_the_package() -> Constants:
    """Return the constants of every file of the package, in an order that does not depend on hashes."""
    visitor = ConstantVisitor(limit=False)
    for path in sorted(PACKAGE.rglob("*.py")):
        visitor.visit(ast.parse(path.read_bytes()))
    found = visitor.constants
    return Constants(
        integers=SortedSet(found.integers),
        floats=SortedSet(found.floats),
        bytes=SortedSet(found.bytes),
        strings=SortedSet(found.strings),
    )


def draw_the_same_everywhere() -> None:
    """Replace the constants of imported modules by those of the package in this process."""
    providers._get_local_constants = constants_of_the_package
