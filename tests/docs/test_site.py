"""The site builds strictly and fetches nothing; tutorials run, draw their figures and print what their pages quote."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import typer
from matplotlib.image import imread

from driftsack.cli import app
from tests.support.paths import ROOT
from tools import notebooks

pytestmark = pytest.mark.slow

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
FETCHED = re.compile(
    r'<(?:script|img|iframe)[^>]+src="?(?:https?:)?//|<link[^>]+rel="?(?:stylesheet|preconnect)[^>]+href="?https?:'
)


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a checkout in strict mode."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(root / "mkdocs.yml"),
        "--site-dir",
        str(site),
    ]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=root, env=quiet)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    built = build(ROOT, directory)
    assert built.returncode == 0, built.stderr
    return directory


def test_pages_fetch_nothing(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    assert [page.name for page in pages if FETCHED.search(page.read_text())] == []
    assert FETCHED.search('<script src="https://elsewhere/x.js">')
    assert FETCHED.search('<link rel="stylesheet" href="https://elsewhere/x.css">')


def test_search_needs_no_server(site: Path) -> None:
    """Opened from a directory, a page takes its index from a script and runs the search in a frame of its own."""
    text = (site / "search" / "search_index.js").read_text()
    assert text.startswith("var __index = ")
    index = json.loads(text.removeprefix("var __index = "))
    places = [entry["location"] for entry in index["docs"] if "SlidingWindowUCB" in entry["text"]]
    assert {"choose.html", "policies.html"} <= {place.split("#")[0] for place in places}
    assert (site / "assets" / "iframe-worker.js").exists()
    assert '<script src="assets/iframe-worker.js">' in (site / "choose.html").read_text()
    assert '<script src="../assets/iframe-worker.js">' in (site / "api" / "lp.html").read_text()


def test_the_api_shows_mathematics_and_examples(site: Path) -> None:
    page = (site / "api" / "policies.html").read_text()
    assert page.count("<math") > 50
    assert ":math:" not in page
    assert ".. math::" not in page
    assert not re.search(r'</p>\s*<math[^>]*display="inline"', page)  # a formula within a sentence stays in it
    assert "<blockquote>" not in page  # what Markdown makes of an example that is not marked as code


def test_formulas_of_pages_are_rendered(site: Path) -> None:
    """Formulas in LaTeX are MathML, and indices of those written as text are real ones."""
    assert "<msqrt>" in (site / "choose.html").read_text()
    theory = (site / "theory-paper.html").read_text()
    assert "LP<sub>t</sub>" in theory
    assert "T<sup>⅔</sup>" in theory
    assert theory.count("<sub>") > 100


def single_commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its name, those of groups too."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from single_commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def test_the_command_line_has_a_complete_reference(site: Path) -> None:
    """Every command and option is on the page, which is generated from them when the site is built."""
    page = (site / "cli.html").read_text()
    known = dict(single_commands(typer.main.get_command(app)))
    for name, command in known.items():
        assert f"driftsack {name}" in page
        described = page[page.index(f'id="driftsack-{name.replace(" ", "-")}"') :].split("<h2")[0]
        options = [opt for param in command.params if param.param_type_name == "option" for opt in param.opts]
        assert [option for option in options if f"<code>{option}</code>" not in described] == []
    assert known.keys() >= {"reproduce", "advise", "league", "campaign what-if"}


def test_cells_of_tables_are_labelled_for_narrow_screens(site: Path) -> None:
    page = (site / "policies.html").read_text()
    assert 'data-label="use it when"' in page
    assert "<td>" not in page


@pytest.mark.parametrize(
    "name", ["changelog", "contributing", "security", "faq", "concepts", "quickstart", "comparison"]
)
def test_the_project_is_part_of_the_site(site: Path, name: str) -> None:
    assert (site / f"{name}.html").exists()
    assert f'href="{name}.html"' in (site / "faq.html").read_text() or name == "faq"


def section(page: str, anchor: str, title: str) -> str:
    """The first section of a documented object with the given title, as HTML."""
    documented = page[page.index(f'id="{anchor}"') :]
    begins = documented.index(f'<span class="doc-section-title">{title}:</span>')
    return documented[begins : documented.index("</table>", begins)]


@pytest.mark.parametrize(
    ("page", "anchor", "title", "named"),
    [
        ("policies", "driftsack.policies.sliding_window_ucb.SlidingWindowUCB", "Attributes", ["windows", "scale"]),
        ("core", "driftsack.policies.Learner.tell", "Parameters", ["decision", "reward", "costs"]),
        ("core", "driftsack.policies.Learner.tell", "Raises", ["AlreadyToldError", "OutcomeError"]),
        ("simulation", "driftsack.simulation.simulate.simulate", "Parameters", ["trials", "seed"]),
    ],
)
def test_parameters_and_fields_are_tables(site: Path, page: str, anchor: str, title: str, named: list[str]) -> None:
    text = (site / "api" / f"{page}.html").read_text()
    assert not re.search(r"<p>(?:Args|Attributes|Returns|Raises|Yields):", text)  # a section that was not recognised
    table = section(text, anchor, title)
    assert "<th>Description</th>" in table
    assert [name for name in named if name not in table] == []


WARNED = [
    ("docs/choose.md", "[broken](nowhere.md)", "nowhere.md"),
    ("docs/index.md", "[broken](choose.md#nothing)", "#nothing"),
    ("CONTRIBUTING.md", "[broken](docs/nowhere_else.md)", "nowhere_else.md"),
    ("docs/faq.md", r"a rate of \\sqrt{T}", r"faq.md shows the source of a formula: \sqrt"),
    ("docs/oco.md", "a rate of V^(1/3)", "oco.md shows the source of a formula: V^("),
    ("src/driftsack/lp/step.py", "def silent() -> None:\n    pass", "driftsack.lp.step.silent has no docstring"),
    (
        "src/driftsack/game/units.py",
        'def wrong(a: int) -> None:\n    """Do nothing.\n\n    Args:\n        b: A number.\n    """',
        "Parameter 'b' does not appear in the function signature",
    ),
]
REFUSED = [("docs/api/lp.md", "::: driftsack.lp.nothing", "driftsack.lp.nothing")]


@pytest.mark.parametrize("faults", [WARNED, REFUSED], ids=["warned", "refused"])
def test_a_broken_link_or_a_wrong_docstring_fails(tmp_path: Path, faults: list[tuple[str, str, str]]) -> None:
    """Each planted fault is named; the second kind ends the build at once, so it is planted alone."""
    for name in ("docs", "tools", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        shutil.copy(ROOT / name, tmp_path)
    for file, planted, _ in faults:
        with (tmp_path / file).open("a") as stream:
            stream.write(f"\n\n{planted}\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    assert [named for _, _, named in faults if named not in built.stderr] == []


def test_every_tutorial_has_its_page() -> None:
    assert {script.stem for script in TUTORIALS} == {page.stem for page in (ROOT / "docs" / "tutorials").glob("*.md")}
    assert len(TUTORIALS) == 8


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda script: script.stem)
def test_a_notebook_is_its_script_and_opens_in_jupyter(script: Path) -> None:
    """``python -m tools.notebooks`` writes them again."""
    text = script.with_suffix(".ipynb").read_text()
    assert text == notebooks.written(script)
    nbformat.validate(json.loads(text))
    *code, last = (cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    assert last == notebooks.RUN
    lines = [line for cell in code for line in cell.splitlines() if line]
    of_script = [line for line in script.read_text().split(notebooks.GUARD)[0].splitlines() if line]
    assert lines == of_script[1:]  # all but the docstring
    assert f"({script.stem}.ipynb)" in script.with_suffix(".md").read_text()


def test_a_broken_notebook_is_noticed() -> None:
    with pytest.raises(nbformat.ValidationError):
        nbformat.validate({"cells": [{"cell_type": "code", "source": ""}], "metadata": {}, "nbformat": 4})


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda script: script.stem)
def test_a_tutorial_prints_what_its_page_quotes_and_draws_its_figure(script: Path, tmp_path: Path) -> None:
    """What runs is the notebook, whose cells are the lines of the script."""
    path = os.pathsep.join([str(ROOT), *(str(Path(place).absolute()) for place in sys.path if place)])
    command = [sys.executable, "-m", "tools.notebooks", str(script.with_suffix(".ipynb"))]
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
    page = script.with_suffix(".md").read_text()
    quoted = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert quoted is not None
    assert quoted[1] == done.stdout
    assert f'--8<-- "tutorials/{script.name}"' in page
    figure = imread(tmp_path / f"{script.stem}.png")
    assert figure.shape == imread(script.with_suffix(".png")).shape
    assert figure[..., :3].std() > 0.05  # something is drawn
