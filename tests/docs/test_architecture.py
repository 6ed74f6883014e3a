"""docs/architecture.md names every package, every path and function that it names exists, and tests mirror packages."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PACKAGE = ROOT / "src" / "driftsack"
SERVICE = PACKAGE / "service"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
BASES = (PACKAGE, SERVICE, SERVICE / "web", SERVICE / "gateways", SERVICE / "gateways/proxy", ROOT)  # of the paths
CODE = re.compile(r"`([^`\n]+)`")


def packages(directory: Path) -> set[str]:
    """The names of the packages and modules in a directory."""
    inner = {path.parent.name for path in directory.glob("*/__init__.py")}
    return inner | {path.stem for path in directory.glob("*.py") if path.stem != "__init__"}


@cache
def defined() -> frozenset[str]:
    """The functions of the package, and the methods of its classes as ``Class.method``."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.ClassDef):
                methods = (item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))
                found |= {f"{node.name}.{method.name}" for method in methods}
    return frozenset(found)


def unnamed(page: str) -> set[str]:
    """Packages that a page does not name."""
    named = set(CODE.findall(page))
    inside = {f"service/{name}" for name in packages(SERVICE)}
    inside |= {f"service/web/{name.parent.name}" for name in (SERVICE / "web").glob("*/__init__.py")}
    return (packages(PACKAGE) | inside | {"lab", "tests", "tools"}) - named


def missing(page: str) -> list[str]:
    """Paths and functions that a page names and that do not exist."""
    wrong = []
    for text in CODE.findall(page):
        if re.fullmatch(r"[\w/]+\.(?:py|sql)|\w+(?:/\w+)+", text):
            exists = any((base / text).exists() for base in BASES)
        elif re.fullmatch(r"(?:[A-Z]\w+\.)?[a-z_]+\(\)", text):
            exists = text.removesuffix("()") in defined()
        else:
            continue
        if not exists:
            wrong.append(text)
    return wrong


def rows(page: str) -> list[str]:
    """The packages in the table of layers, from top to bottom."""
    table = page[page.index("## Layers") : page.index("## One decision")]
    return [name for row in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE) for name in CODE.findall(row)]


def test_the_page_names_every_package() -> None:
    assert unnamed(PAGE) == set()
    assert set(rows(PAGE)) == packages(PACKAGE)


def test_what_the_page_names_exists() -> None:
    assert missing(PAGE) == []
    assert len([text for text in CODE.findall(PAGE) if text.endswith(".py")]) > 30  # or nothing was compared


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("`runtime/keeper.py`", "`runtime/housekeeper.py`"),
        ("`Owned.collect()`", "`Owned.gather()`"),
        ("`begin()`", "`begin_now()`"),
        ("`store/migrations/sqlite/0001.sql`", "`store/sqlite/0001.sql`"),
    ],
)
def test_a_wrong_name_is_found(right: str, wrong: str) -> None:
    planted = PAGE.replace(right, wrong)
    assert planted != PAGE
    assert missing(planted) == [wrong.strip("`")] * planted.count(wrong)


@pytest.mark.parametrize("name", ["client", "service/projections", "service/web/api", "lab"])
def test_a_package_that_is_left_out_is_found(name: str) -> None:
    assert unnamed(PAGE.replace(f"`{name}`", "`another`")) == {name}


def untested(tests: set[Path]) -> set[str]:
    """The packages without a directory of tests; those of the deepest packages lie in the directory above."""
    inner = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if (path / "__init__.py").exists()}
    mirrored = {path for path in inner if 1 <= len(path.parts) <= 2} - {Path("service"), Path("policies/parts")}
    return {path.as_posix() for path in mirrored | {Path("lab")} if path not in tests}


def test_tests_mirror_the_packages() -> None:
    """The planted fault: the tests of a package lie elsewhere."""
    tests = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert untested(tests) == set()
    assert untested(tests - {Path("theory"), Path("service/store")}) == {"theory", "service/store"}
