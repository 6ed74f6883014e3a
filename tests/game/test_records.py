"""The records of the kernel protocol can be extended, because only their own file builds them field by field."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np

import driftsack
from driftsack.core.problem import Problem
from driftsack.game.ledger import open_ledger
from driftsack.game.records import (
    Outcome,
    Round,
    new_outcome,
    new_terms,
    open_round,
    with_account,
    with_rate,
    with_time,
)
from driftsack.policies import Policy

PACKAGE = Path(driftsack.__file__).parent


def builders(source: str) -> list[int]:
    """The lines in which a record is built by its class."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("Round", "Outcome")]


def test_only_one_file_builds_records() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "records.py"]
    found = {path.relative_to(PACKAGE).as_posix(): builders(path.read_text()) for path in files}
    assert not {path: lines for path, lines in found.items() if lines}
    assert builders("def choose(t):\n    return Round(t, None)\n") == [2]  # the planted fault
    # Each of the two records is built once from its parts and once from a record that it changes.
    assert len(builders((PACKAGE / "game" / "records.py").read_text())) == 4


def test_a_changed_record_keeps_every_other_field() -> None:
    problem = Problem(horizon=10, arms=3, budget=[4.0, 5.0])
    terms, ledger, other = new_terms(problem), open_ledger(problem), open_ledger(Problem(10, 3, [1.0, 1.0]))
    round_, rate = open_round(3, ledger, terms), np.array([0.1, 0.2])
    outcome = new_outcome(terms, 3, 1, 0.5, 0.7, rate)
    for changed, record, names in (
        (with_rate(round_, rate), round_, {"rate"}),
        (with_account(round_, 7, 2.5, other), round_, {"t", "rounds_left", "ledger"}),
        (with_time(outcome, 8), outcome, {"t"}),
    ):
        assert isinstance(changed, (Round, Outcome))
        for name in record._fields:
            assert same(getattr(changed, name), getattr(record, name)) == (name not in names), name


def same(one: Any, other: Any) -> bool:
    """Whether two fields are equal; a part of a record is compared field by field."""
    if isinstance(one, tuple):
        return all(same(a, b) for a, b in zip(one, other, strict=True))
    return np.array_equal(one, other)


def base_fields(source: str) -> list[str]:
    """The fields of a wrapped policy's state that a file reads, such as ``state.base.lp``."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute))
    return [node.attr for node in nodes if isinstance(node.value, ast.Attribute) and node.value.attr == "base"]


CALLED = {
    "announce",
    "bounded",
    "contributions",
    "estimates",
    "follow_rate",
    "forgets",
    "known_costs",
    "needs_context",
    "new_state",
    "rounds_kept",
}
"""What a wrapper may ask its base: every policy has it."""


def test_no_policy_reads_the_fields_of_another() -> None:
    """A wrapper calls functions on its base's state; on its base's settings it calls what every policy has."""
    files = [*(PACKAGE / "policies").rglob("*.py"), *(PACKAGE / "verify").rglob("*.py")]
    found = {path.name: set(base_fields(path.read_text())) for path in files}
    assert set().union(*found.values()) <= CALLED
    assert all(hasattr(Policy, name) for name in CALLED)
    assert base_fields("def choose(state):\n    return state.base.lp.objective[0]\n") == ["lp"]  # the planted fault
