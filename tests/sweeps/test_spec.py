"""Specs: what they contain and refuse, and that a cell's key changes with everything that decides its result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import SettingError
from driftsack.sweeps import Spec, cells, make_spec, read_spec
from driftsack.sweeps.cells import NamedInstance, list_cells
from driftsack.sweeps.measured import QUANTITIES, Measurements
from driftsack.sweeps.spec import ROUNDS_PER_CELL, InstanceSpec
from tests.support.small_sweeps import CELLS, SMALL

TOML = """
trials = 30
seeds = 4
safe = true
[[instances]]
file = "world.npz"
[[policies]]
policy = "SlidingWindowUCB"
windows = [10, 20]
name = "custom"
"""


def test_a_toml_file_with_an_instance_file_beside_it(tmp_path: Path) -> None:
    ds.instances.example_1(horizon=50).save(tmp_path / "world.npz")
    (tmp_path / "sweep.toml").write_text(TOML)
    spec = read_spec(tmp_path / "sweep.toml")
    ((cell, named),) = list_cells(spec)
    assert (cell.instance, cell.policy, cell.seed, cell.count, cell.safe) == ("world.npz", "custom", 4, 30, True)
    assert named.instance.horizon == 50


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"instances": []}, "instances: List should have at least 1 item"),
        ({"instances": [{"instance": "example_9"}]}, "instance must be one of .*example_1.*got 'example_9'"),
        ({"instances": [{"instance": "example_1", "alpha": 1}]}, "example_1 takes horizon, noise: .*alpha"),
        ({"instances": [{"instance": "example_3"}]}, "example_3 takes alpha.*missing"),
        ({"instances": [{"instance": "example_1", "file": "x.npz"}]}, "give exactly one"),
        ({"instances": [{"file": "x.npz", "alpha": 1}]}, "takes no arguments, got alpha"),
        ({"instances": [{"instance": "example_1"}] * 2}, "instances must differ in their names; example_1 occurs more"),
        ({"policies": [{"policy": "Unknown"}]}, "policies.0: policy must be one of"),
        ({"policies": [{"policy": "NaiveUCB", "windows": 3}]}, "NaiveUCB takes scale"),
        ({"policies": [{"policy": "NaiveUCB", "scale": "measured:unknown"}]}, "what can be measured is variation"),
        ({"trials": 0}, "trials: Input should be greater than or equal to 1"),
        ({"trails": 3}, "trails: a sweep has instances, policies, trials, seeds"),
        ({"seeds": [1, 1]}, "seeds must differ"),
        ({"seeds": [-1]}, "seeds.0: Input should be greater"),
    ],
)
def test_what_a_spec_refuses(change: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        make_spec({**SMALL, **change})


def test_a_spec_without_policies_runs_adaptive() -> None:
    spec = make_spec({"instances": [{"instance": "example_1", "horizon": 50}]})
    assert [(policy.label, policy.resolve({})) for policy in spec.policies] == [("Adaptive", {"policy": "Adaptive"})]
    with pytest.raises(SettingError, match="policies: List should have at least 1 item"):
        make_spec({**SMALL, "policies": []})


def test_a_file_that_is_not_toml(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text("trials = = 3")
    with pytest.raises(SettingError, match="must be a TOML file"):
        read_spec(tmp_path / "sweep.toml")


def test_cells_cover_every_trial_once() -> None:
    listed = [cell for cell, _ in list_cells(make_spec(SMALL))]
    assert len(listed) == len({cell.key for cell in listed}) == CELLS
    trials = [(cell.instance, cell.policy, cell.seed, cell.first + k) for cell in listed for k in range(cell.count)]
    assert len(trials) == len(set(trials)) == 2 * 3 * 2 * 5


def test_a_cell_has_a_fixed_number_of_rounds() -> None:
    spec = Spec(instances=[{"instance": "example_1"}], policies=[{"policy": "NaiveUCB"}], trials=10**5)  # type: ignore[list-item]
    assert spec.blocks(10_000)[:2] == [(0, ROUNDS_PER_CELL // 10_000), (500, 500)]
    assert spec.blocks(10**9)[:2] == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    "change",
    [
        {"content": "x"},
        {"settings": "{}"},
        {"seed": 9},
        {"first": 9},
        {"count": 9},
        {"safe": True},
        {"policy": "x"},
        {"delay": 9},
        {"loose": 9.0},
    ],
)
def test_the_key_changes_with_everything_that_decides_the_result(change: dict[str, Any]) -> None:
    cell = list_cells(make_spec(SMALL))[0][0]
    assert replace(cell, **change).key != cell.key
    assert replace(cell).key == cell.key


def test_the_key_changes_with_the_code_and_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = list_cells(make_spec(SMALL))[0][0]
    stamp, key = cells.code_stamp(), cell.key
    monkeypatch.setattr(cells, "version", lambda name: f"{name} 0.0")
    cells.code_stamp.cache_clear()
    assert cells.code_stamp() != stamp
    assert replace(cell).key != key
    monkeypatch.undo()
    cells.code_stamp.cache_clear()
    assert cells.code_stamp() == stamp


def test_the_content_of_a_world_and_nothing_else_decides_its_hash() -> None:
    def content(**arguments: Any) -> str:
        return NamedInstance(InstanceSpec(instance="example_3", **arguments)).content

    base = content(alpha=0.5, horizon=100)
    assert base == content(alpha=0.5, horizon=100, name="other")
    assert base != content(alpha=0.6, horizon=100)
    assert base != content(alpha=0.5, horizon=100, noise="deterministic")
    assert base != content(alpha=0.5, horizon=102)


def test_stand_ins_have_the_form_of_what_is_measured() -> None:
    """A policy accepts the stand-in exactly if it accepts the measured value, so both must be of the same kind."""
    measured = Measurements(ds.instances.example_2(horizon=40))
    assert list(measured) == list(QUANTITIES)
    assert "unknown" not in measured
    for name, quantity in QUANTITIES.items():
        if isinstance(quantity.stand_in, dict):
            assert measured[name].keys() == quantity.stand_in.keys()
        else:
            assert np.ndim(measured[name]) >= np.ndim(quantity.stand_in)
            assert np.isfinite(measured[name]).all()


def test_quantities_are_measured_once_and_only_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def count(instance: ds.Instance) -> int:
        calls.append(instance.horizon)
        return len(calls)

    monkeypatch.setitem(QUANTITIES, "variation", QUANTITIES["variation"]._replace(measure=count))
    measured = Measurements(ds.instances.example_2(horizon=40))
    assert "variation" in measured
    assert calls == []
    assert [measured["variation"], measured["variation"]] == [1, 1]
    assert calls == [40]
