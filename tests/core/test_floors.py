"""Problems with floors: what they accept, what they refuse, and that they survive every way of being copied."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import DriftsackError, NamesError, NotFiniteError, OutOfRangeError, SettingError

PROBLEMS = [
    ds.Problem(horizon=100, arms=["small", "large"], minimise="usd", floor=0.92),
    ds.Problem(horizon=100, arms=3, budget=[5.0, 6.0], minimise=1, floor={"reward": 0.3, "share:2": 0.5}),
    ds.Problem(horizon=9, arms=2, budget={"s": 5}, minimise="usd", cost_max={"s": 1, "usd": 2}, floor={"share:1": 1}),
    ds.Problem(horizon=9, arms=2, budget={"usd": 5, "s": 5}, minimise="usd", floor=7.0, reward_max=9.0),
]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_copy_is_equal_whichever_way_it_is_made(problem: ds.Problem) -> None:
    names = {"Problem": ds.Problem}
    for other in (
        ds.Problem.from_dict(json.loads(json.dumps(problem.to_dict(), allow_nan=False))),
        pickle.loads(pickle.dumps(problem)),
        copy.deepcopy(problem),
        replace(problem),
        eval(repr(problem), names),
    ):
        assert other == problem
        assert hash(other) == hash(problem)
    assert replace(problem, floor=(("reward", 0.01),)) != problem, "the floor does not count in a comparison"


def test_a_resource_without_a_budget_comes_last_and_is_unlimited() -> None:
    problem = PROBLEMS[2]
    assert (problem.resource_names, problem.budget, problem.minimised) == (("s", "usd"), (5.0, np.inf), 1)
    assert problem.to_dict()["budget"] == [5.0, None]
    assert np.isinf(problem.rate[1])
    assert (problem.planning_unit == [5 / 9, 1.0]).all()


def test_floors_in_the_units_of_kernels() -> None:
    problem = ds.Problem(10, ["a", "b"], minimise="usd", floor={"share:b": 0.25, "reward": 3.0}, reward_max=4.0)
    assert problem.floor_arms.tolist() == [1, -1]
    assert problem.unit_floors.tolist() == [0.25, 0.75]


def test_a_problem_without_floors_is_written_as_before() -> None:
    problem = ds.Problem(horizon=10, arms=2, budget=3.0)
    assert not {"minimise", "floor"} & problem.to_dict().keys()
    assert "floor" not in repr(problem)
    assert (problem.floor, problem.minimise, problem.minimised) == ((), None, -1)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"minimise": "usd"}, SettingError, "minimise needs a floor"),
        ({"floor": 0.9, "budget": 1.0}, SettingError, "a floor needs the resource"),
        ({"minimise": "usd", "floor": 1.5}, OutOfRangeError, "at most reward_max, 1, got 1.5"),
        ({"minimise": "usd", "floor": 0}, OutOfRangeError, "above 0 and at most reward_max"),
        ({"minimise": "usd", "floor": np.nan}, NotFiniteError, "floor must be finite"),
        ({"minimise": "usd", "floor": "high"}, DriftsackError, "floor must be one number"),
        ({"minimise": "usd", "floor": {}}, SettingError, "at least one entry"),
        ({"minimise": "usd", "floor": [("reward", 0.5, 1)]}, SettingError, "a number or a mapping"),
        ({"minimise": "usd", "floor": (("reward", 0.5), ("reward", 0.6))}, NamesError, "one value for each name"),
        ({"minimise": "usd", "floor": {"quality": 0.5}}, NamesError, "'quality'"),
        ({"minimise": "usd", "floor": {"share:z": 0.5}}, NamesError, "must be one of '0', '1', got 'z'"),
        ({"minimise": "usd", "floor": {"share:0": 1.5}}, OutOfRangeError, "at most 1, got 1.5"),
        ({"minimise": "usd", "floor": {"share:0": 0.6, "share:1": 0.6}}, OutOfRangeError, "at most 1, got 1.2"),
        ({"minimise": 3, "floor": 0.9, "budget": 1.0}, OutOfRangeError, "minimise must be at least 0 and at most 0"),
        ({"minimise": " ", "floor": 0.9}, NamesError, "minimise must be non-empty"),
        ({"budget": [np.inf], "resource_names": ["usd"]}, NotFiniteError, "budget must be finite"),
        (
            {"budget": [np.inf, 1.0], "resource_names": ["s", "usd"], "minimise": "usd", "floor": 0.9},
            NotFiniteError,
            "budget must be finite",
        ),
    ],
)
def test_contradictions_are_refused(change: dict[str, Any], error: type[DriftsackError], words: str) -> None:
    with pytest.raises(error, match=words):
        ds.Problem(**{"horizon": 10, "arms": 2, **change})


def test_an_instance_keeps_its_floors_in_a_file(tmp_path: Any) -> None:
    world = ds.Instance.stationary([0.5, 0.9], [[0.1, 0.6], [0.2, 0.1]], horizon=20, budget=[8.0, 9.0])
    changed = world.with_floor({"reward": 0.8, "share:0": 0.1}, minimise="cost_0")
    assert changed.problem.budget == (np.inf, 9.0)
    assert world.with_floor(0.8, minimise=1, budget={"cost_1": 3.0}).problem.budget == (8.0, 3.0)
    changed.save(tmp_path / "world.npz")
    assert ds.Instance.load(tmp_path / "world.npz") == changed
    assert ds.Instance.from_dict(json.loads(json.dumps(changed.to_dict()))) == changed
