"""Faults planted in the library are noticed by `driftsack verify`; the long form is ``python -m lab mutants``."""

from __future__ import annotations

import pytest

import driftsack as ds
from driftsack.verify import select_statements
from lab.mutants import MUTANTS, catch, planted

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
SHORT = ("V1 halved", "V2 := V2^Σ", "W2 doubled", "q̄ := 0", "LP-Dynamic × 0.9", "radius halved", "windows doubled")


@pytest.mark.parametrize("name", SHORT)
def test_a_fault_is_noticed(name: str) -> None:
    rows = [row for part in ("measures", "benchmarks", "radii-and-windows") for row in select_statements(part)]
    assert (
        catch(BY_NAME[name], rows)
        == {"m": "measures", "b": "benchmarks", "r": "radii-and-windows"}[BY_NAME[name].rows[0]]
    )


def test_there_are_at_least_forty_of_every_kind() -> None:
    assert len(MUTANTS) >= 40
    assert len(BY_NAME) == len(MUTANTS)


def test_a_fault_is_planted_everywhere_and_removed() -> None:
    world = ds.instances.example_1(horizon=100)
    true = ds.variation(world).w2, ds.benchmarks.lp_dynamic(world).value
    with planted(BY_NAME["W2 doubled"]):
        assert ds.variation(world).w2 == 2 * true[0]
    with planted(BY_NAME["LP-Dynamic × 0.9"]):
        assert ds.benchmarks.lp_dynamic(world).value == pytest.approx(0.9 * true[1])
    assert (ds.variation(world).w2, ds.benchmarks.lp_dynamic(world).value) == true
