"""The LaTeX companion contains no measured number of its own: each is a macro that a command has written."""

from __future__ import annotations

import re

import pytest

from driftsack.verify import STATEMENTS
from lab.companion import DIRECTORY, lower_bound_numbers, macros
from tests.support.paths import ROOT

MAIN = (ROOT / DIRECTORY / "main.tex").read_text()
NUMBERS = (ROOT / DIRECTORY / "numbers.tex").read_text()
ROWS = (ROOT / DIRECTORY / "rows.tex").read_text()


def defined(text: str) -> set[str]:
    return set(re.findall(r"\\newcommand\{\\([A-Za-z]+)\}", text))


def unknown(text: str) -> set[str]:
    """The capitalised macros of a text that neither it nor the file of numbers defines; LaTeX has a few of its own."""
    used = set(re.findall(r"\\([A-Z][A-Za-z]{3,})", text))
    return used - defined(NUMBERS) - defined(text) - {"Delta", "Sigma", "DeclareMathOperator", "Bigl", "Bigr"}


def test_every_macro_is_written_and_used() -> None:
    assert unknown(MAIN) == set()
    assert unknown(MAIN + r"\NoSuchNumber") == {"NoSuchNumber"}
    assert {name for name in defined(NUMBERS) if f"\\{name}" not in MAIN} == set()


def test_the_table_has_every_check() -> None:
    assert re.findall(r"\\texttt\{([a-z0-9-]+)\}", ROWS) == [statement.name for statement in STATEMENTS]


def test_the_written_numbers_are_those_of_the_library() -> None:
    """The part that takes less than a second; ``python -m lab companion`` writes all of them."""
    for line in macros(lower_bound_numbers()).splitlines():
        assert line in NUMBERS


def test_no_decimal_in_the_text_is_a_measurement() -> None:
    """Decimals of the text are data of examples; each is listed here."""
    text = re.sub(r"\\(usepackage|newcommand|setlength|documentclass)[^\n]*", "", MAIN)
    text = re.sub(r"arXiv \d{4}\.\d{5}", "", text)
    data = {"0.1", "0.2", "0.4", "0.5", "0.01", "0.05", "0.501", "0.9", "0.99", "2.63", "4.6", "5.4"}
    found = set(re.findall(r"\d+\.\d+", text))
    assert found <= data
    with pytest.raises(AssertionError):
        assert found | {"0.92"} <= data
