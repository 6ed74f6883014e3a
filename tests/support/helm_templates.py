"""Renders the small part of Helm's template language that our chart uses; anything else is an error."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml

ACTION: Final = re.compile(r"\{\{-? *(.*?) *-?\}\}")
FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "quote": lambda value: json.dumps(str(value)),
    "toJson": json.dumps,
    "sha256sum": lambda value: hashlib.sha256(value.encode()).hexdigest(),
}


def values_of(chart: Path, **changes: Any) -> dict[str, Any]:
    """The values that templates see."""
    values = yaml.safe_load((chart / "values.yaml").read_text())
    for name, value in changes.items():
        first, _, second = name.partition("__")
        values[first] = {**values[first], second: value} if second else value
    return {"Values": values, "Release": {"Name": "driftsack"}}


def evaluated(expression: str, values: dict[str, Any]) -> Any:
    """The value of an expression such as ``.Values.image | quote``."""
    path, *functions = [part.strip() for part in expression.split("|")]
    if not path.startswith("."):
        raise ValueError(f"not a path: {expression}")
    found: Any = values
    for name in path[1:].split("."):
        found = found[name]  # KeyError: the template uses a value that values.yaml does not have
    for name in functions:
        found = FUNCTIONS[name](found)
    return found


def rendered(template: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """The documents of a template."""
    lines, shown = [], [True]
    for line in template.splitlines():
        action = re.fullmatch(r"\{\{-? (if (?P<if>\S+)|end) \}\}", line.strip())
        if action is None:
            text = ACTION.sub(lambda match: str(evaluated(match[1], values)), line) if all(shown) else ""
            lines += [text] if all(shown) else []
        elif action["if"]:
            shown.append(bool(evaluated(action["if"], values)))
        else:
            shown.pop()
    if shown != [True]:
        raise ValueError("an if has no end")
    return [document for document in yaml.safe_load_all("\n".join(lines)) if document]


def chart_documents(chart: Path, **changes: Any) -> list[dict[str, Any]]:
    """All documents of a chart."""
    values = values_of(chart, **changes)
    paths = sorted((chart / "templates").glob("*.yaml"))
    return [document for path in paths for document in rendered(path.read_text(), values)]
