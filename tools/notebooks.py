"""Generate the notebooks of the tutorials from their scripts and pages, which remain the only source.

``python -m tools.notebooks`` rewrites docs/tutorials/*.ipynb; ``python -m tools.notebooks FILE`` runs the cells of
one of them in the current directory, as Jupyter would. The tests do both.
"""

from __future__ import annotations

import ast
import json
import linecache
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
GUARD = 'if __name__ == "__main__":'
RUN = "main(Path())  # prints what the page quotes, and draws its figure into the current directory"


def code_cells(source: str) -> list[str]:
    r"""Split a script into cells: imports and constants, each function or class, and a call of ``main``.

    >>> code_cells('"About."\n\nimport sys\n\n\ndef main(directory):\n    pass\n')[:2]
    ['import sys', 'def main(directory):\n    pass']
    """
    lines = source.splitlines()
    nodes = ast.parse(source).body
    starts = [nodes[1].lineno - 1]
    for before, node in pairwise(nodes[1:]):
        defines = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if defines or isinstance(before, ast.FunctionDef | ast.ClassDef):
            first = node.decorator_list[0].lineno if defines and node.decorator_list else node.lineno  # type: ignore[attr-defined]
            starts.append(first - 1)
    parts = ["\n".join(lines[start:end]).strip("\n") for start, end in pairwise([*starts, len(lines)])]
    return [*(part for part in parts if not part.startswith(GUARD)), RUN]


def notebook(script: Path) -> dict[str, Any]:
    """The notebook of a tutorial: the text of its page, then the code of its script."""
    text = script.with_suffix(".md").read_text(encoding="utf-8").split("## The script")[0].strip()
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "id": "page", "metadata": {}, "source": text}]
    for number, code in enumerate(code_cells(script.read_text(encoding="utf-8"))):
        empty: dict[str, Any] = {"execution_count": None, "metadata": {}, "outputs": []}
        cells.append({"cell_type": "code", "id": f"code-{number}", "source": code, **empty})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def written(script: Path) -> str:
    """The notebook of a tutorial as the text of its file."""
    return json.dumps(notebook(script), indent=1, ensure_ascii=False) + "\n"


def run(path: Path) -> None:
    """Run the code of a notebook, one cell after the other in one namespace."""
    names: dict[str, Any] = sys.modules["__main__"].__dict__
    flags = 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            place = f"<{path.name}, {cell['id']}>"
            linecache.cache[place] = (len(cell["source"]), None, cell["source"].splitlines(keepends=True), place)
            code = compile(cell["source"], place, "exec", flags, dont_inherit=True)
            flags |= code.co_flags & annotations_flag()
            exec(code, names)  # the cells are ours


def annotations_flag() -> int:
    """The flag of ``from __future__ import annotations``, which holds for all later cells, as in Jupyter."""
    import __future__

    return __future__.annotations.compiler_flag


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(Path(sys.argv[1]))
    else:
        for tutorial in sorted(TUTORIALS.glob("*.py")):
            tutorial.with_suffix(".ipynb").write_text(written(tutorial), encoding="utf-8")
