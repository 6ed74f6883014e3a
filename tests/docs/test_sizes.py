"""Limits on functions and classes: at most eight parameters, at most 500 lines, and one name for one class.

Options that belong together are an object. Kernels and their overloads are exempt, because they take their buffers as
arguments. So are constructors, whose parameters are the fields of the object, and Typer commands, because Typer makes
each parameter an option.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.paths import ROOT

MOST = 8
LONGEST = 500
KERNELS = ("kernel", "overload")
BUILT = "Instance"  # what the functions of ``driftsack.instances`` construct; a spec names their settings one by one


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of parameters besides ``self`` and ``cls``; ``**options`` count as one."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")]) + bool(given.vararg) + bool(given.kwarg)


def is_exempt(function: ast.FunctionDef | ast.AsyncFunctionDef, path: Path) -> bool:
    """Whether a function is a kernel, a constructor or a command."""
    decorators = [ast.unparse(one).split("(")[0] for one in function.decorator_list]
    returned = "" if function.returns is None else ast.unparse(function.returns)
    builds_itself = "classmethod" in decorators and returned.endswith(BUILT)
    builds_an_instance = path.parent.name == "instances" and returned == BUILT
    is_command = path.parent.name == "cli" and function.name == path.stem
    is_kernel = any(name in KERNELS for name in decorators)
    return is_kernel or function.name == "__init__" or builds_itself or builds_an_instance or is_command


def too_many(source: str, path: Path) -> list[str]:
    """The functions of a file with too many parameters."""
    functions = [one for one in ast.walk(ast.parse(source)) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    wide = [one for one in functions if parameters(one) > MOST and not is_exempt(one, path)]
    return [f"{path}:{one.lineno} {one.name} has {parameters(one)} parameters" for one in wide]


def too_long(source: str, path: Path) -> list[str]:
    """The classes of a file with too many lines."""
    classes = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.ClassDef)]
    lengths = [(one, (one.end_lineno or one.lineno) - one.lineno + 1) for one in classes]
    return [f"{path}:{one.lineno} {one.name} has {lines} lines" for one, lines in lengths if lines > LONGEST]


def test_no_function_has_more_than_eight_parameters() -> None:
    paths = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "lab").rglob("*.py"))]
    assert len(paths) > 400
    assert [line for path in paths for line in too_many(path.read_text(encoding="utf-8"), path)] == []


def test_a_function_with_nine_parameters_is_found() -> None:
    """The planted fault: nine parameters; the same function as a kernel, constructor or command is accepted."""
    nine = "a, b, c, d, e, f, g, *, h, i=0"
    plain, path = f"def wide({nine}): ...", Path("src/driftsack/logs/wide.py")
    assert too_many(plain, path) == [f"{path}:1 wide has 9 parameters"]
    assert too_many(f"async {plain}", path)
    assert too_many(plain.replace("*, h, i=0", "*h, **i"), path)
    assert too_many(plain.replace("a,", ""), path) == []
    assert too_many(f"@kernel\n{plain}", path) == []
    assert too_many(plain.replace("wide", "__init__"), path) == []
    assert too_many(plain, Path("src/driftsack/cli/wide.py")) == []


def test_no_class_has_more_than_500_lines() -> None:
    paths = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "lab").rglob("*.py"))]
    assert [line for path in paths for line in too_long(path.read_text(encoding="utf-8"), path)] == []


def test_a_class_with_501_lines_is_found() -> None:
    """The planted fault: one line too many."""
    path, body = Path("src/driftsack/long.py"), "    x = 1\n"
    assert too_long("class Long:\n" + 500 * body, path) == [f"{path}:1 Long has 501 lines"]
    assert too_long("class Long:\n" + 499 * body, path) == []


def shared_names(sources: Iterable[str]) -> set[str]:
    """The names that several classes share; ``State`` is what every policy calls its own."""
    classes = [node for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    return {name for name, count in Counter(one.name for one in classes).items() if count > 1} - {"State"}


@pytest.mark.parametrize(("directory", "taken"), [("src", "Learner"), ("lab", "Scenario")])
def test_no_two_classes_have_the_same_name(directory: str, taken: str) -> None:
    """The planted fault: a second class of a name that is taken."""
    sources = [path.read_text(encoding="utf-8") for path in sorted((ROOT / directory).rglob("*.py"))]
    assert shared_names(sources) == set()
    assert shared_names([*sources, f"class {taken}: ..."]) == {taken}
