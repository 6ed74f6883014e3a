"""The command line of the laboratory, and that neither the package nor its wheel knows of it."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.__main__ import PROGRAMS, app
from lab.service.tables import Table
from tests.support.paths import ROOT

NAMES = [name for programs in PROGRAMS.values() for name in programs]


def test_without_a_name_every_program_is_listed() -> None:
    command = [sys.executable, "-m", "lab"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "python -m lab" in done.stdout + done.stderr
    for name in NAMES:
        assert f" {name} " in done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_help_shows_an_example(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"])
    assert shown.exit_code == 0
    assert f"Example: {'make litellm' if name == 'litellm' else f'python -m lab {name}'}" in shown.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["corrupted-files", "5", "--quick"],
        ["contexts", "5"],
        ["routing", "7"],
        ["soak", "0"],
        ["speed", "60000"],
        ["versions"],
        ["faults", "3", "--markdown", "no/such/page.md"],
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2
    assert "Traceback" not in refused.output


def test_the_tables_of_trials() -> None:
    rows = [{"fault": "kill", "times": 1500, "seconds": 1.25, "clean": "yes"}]
    page = Table("A title.", rows, "A machine.", True, "python -m lab faults 150").to_markdown()
    assert "| kill | 1,500 | 1.25 | yes |" in page


def importers(directory: Path) -> list[str]:
    """The files below a directory that import the laboratory."""
    found = []
    for path in sorted(directory.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        modules = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
        modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
        if any(module.partition(".")[0] == "lab" for module in modules):
            found.append(path.relative_to(directory).as_posix())
    return found


def test_only_its_own_tests_import_the_laboratory(tmp_path: Path) -> None:
    assert importers(ROOT / "src") == []
    assert importers(ROOT / "tools") == []
    assert all(name.startswith("lab/") for name in importers(ROOT / "tests"))
    (tmp_path / "late.py").write_text("def run() -> None:\n    from lab.speed import timing\n")
    (tmp_path / "own.py").write_text("from . import lab\nimport labels\n")
    assert importers(tmp_path) == ["late.py"]


def test_the_wheel_has_the_package_alone_and_the_sdist_the_laboratory_too() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["src/driftsack"]}
    assert not (ROOT / "src" / "driftsack" / "lab").exists()
    assert "lab" in targets["sdist"]["include"]
