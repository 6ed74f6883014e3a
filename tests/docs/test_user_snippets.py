"""The programs that the type checker sees are those of the docs."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable

import pytest

from tests.docs import user_snippets
from tests.support.paths import ROOT


def programs(page: str) -> list[str]:
    """The Python programs of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("page", "count", "function"),
    [("docs/quickstart.md", 2, user_snippets.quick_start), ("docs/service.md", 1, user_snippets.ask_a_service)],
)
def test_the_checked_programs_are_those_of_the_docs(page: str, count: int, function: Callable[[], None]) -> None:
    source = inspect.getsource(function)
    for program in programs(page)[:count]:
        assert textwrap.indent(program, "    ") in source
