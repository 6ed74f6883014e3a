"""Problems, instances, files and seeds: valid input is kept, invalid input raises an error that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core import file_format
from driftsack.core.errors import (
    DriftsackError,
    FileFormatError,
    NegativeBudgetError,
    NotFiniteError,
    OutOfRangeError,
    SettingError,
    ShapeError,
)
from driftsack.core.seeding import generator, trial_seeds

GOOD: dict[str, Any] = {"horizon": 10, "arms": 2, "budget": [3.0, 4.0]}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"horizon": 0}, OutOfRangeError, "horizon must be at least 1, got 0"),
        ({"horizon": 2.5}, SettingError, "horizon must be an integer, got 2.5"),
        ({"arms": 0}, OutOfRangeError, "arms must be at least 1"),
        ({"budget": []}, OutOfRangeError, "at least one resource"),
        ({"budget": [3, -1]}, NegativeBudgetError, "budget must be 0 or more, got -1"),
        ({"budget": [3, np.nan]}, NotFiniteError, "budget must be finite, got nan"),
        ({"budget": [3, np.inf]}, NotFiniteError, "budget must be finite, got inf"),
        ({"budget": [[3, 1]]}, ShapeError, "budget must be an array of numbers with 1 axis, got shape"),
        ({"cost_max": [1, 2, 3]}, ShapeError, r"cost_max must be numbers of shape \(2,\), got shape \(3,\)"),
        ({"cost_max": 0}, OutOfRangeError, "cost_max must be above 0"),
        (
            {"cost_max": [[0, 0], [1, 1]]},
            OutOfRangeError,
            "cost_max must be above 0 for at least one arm of each resource, got 0",
        ),
        ({"cost_max": [[-1, 1], [1, 1]]}, OutOfRangeError, "cost_max of an arm must be 0 or more, got -1"),
        ({"reward_max": -1}, OutOfRangeError, "reward_max must be above 0"),
        ({"reward_max": np.nan}, NotFiniteError, "reward_max must be finite"),
        ({"horizon": 1e4}, SettingError, "horizon must be an integer, got 10000.0; write 10_000"),
        ({"horizon": True}, SettingError, "horizon must be an integer, got True"),
        ({"budget": None}, ShapeError, "budget must be an array of numbers with 1 axis, got None"),
        ({"budget": "5"}, ShapeError, "budget must be an array of numbers with 1 axis, got '5'"),
        ({"budget": [1, [2]]}, ShapeError, "budget must be an array of numbers"),
        ({"budget": [10**400]}, ShapeError, "budget must be an array of numbers"),
        ({"cost_max": [1, [2]]}, ShapeError, "cost_max of 'cost_1' must be numbers of shape"),
    ],
)
def test_bad_problem(change: dict[str, Any], error: type[DriftsackError], words: str) -> None:
    ds.Problem(**GOOD)
    with pytest.raises(error, match=words):
        ds.Problem(**{**GOOD, **change})


def test_problem_is_a_value() -> None:
    problem = ds.Problem(**GOOD, cost_max=2.0)
    assert problem == ds.Problem(**problem.to_dict())
    assert len({problem, ds.Problem(**problem.to_dict())}) == 1
    np.testing.assert_array_equal(problem.unit_budget, [1.5, 2.0])
    np.testing.assert_array_equal(problem.rate, [0.15, 0.2])
    with pytest.raises(AttributeError):
        problem.horizon = 11  # type: ignore[misc]


def world(**change: Any) -> ds.Instance:
    settings: dict[str, Any] = {"rewards": [[0.5, 0.25]] * 4, "costs": [[[0.1, 0.2]]] * 4, "budget": [1.0]}
    return ds.Instance.from_arrays(**{**settings, **change})


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"rewards": [[0.5, 1.2]] * 4}, OutOfRangeError, r"mean rewards must lie in \[0, 1\], got 1.2 at index"),
        ({"rewards": [[0.5, -0.1]] * 4}, OutOfRangeError, "mean rewards must lie in"),
        ({"costs": [[[0.1, 2.0]]] * 4}, OutOfRangeError, "mean costs must lie in"),
        ({"rewards": [[0.5, np.nan]] * 4}, NotFiniteError, "rewards must be finite, got nan"),
        ({"costs": [[[0.1, np.inf]]] * 4}, NotFiniteError, "costs must be finite, got inf"),
        ({"rewards": [0.5, 0.25]}, ShapeError, "rewards must be an array of numbers with 2 axes"),
        ({"costs": [[[0.1, 0.2]]] * 3}, ShapeError, "costs must be numbers of shape"),
        ({"budget": [1.0, 2.0]}, ShapeError, r"budget must be numbers of shape \(1,\), got shape \(2,\)"),
        ({"budget": [-1.0]}, NegativeBudgetError, "budget must be 0 or more"),
        ({"noise": "gauss"}, SettingError, "noise must be one of 'deterministic', 'bernoulli'"),
        ({"rewards": np.zeros((0, 2)), "costs": np.zeros((0, 1, 2))}, ShapeError, "at least one round"),
    ],
)
def test_bad_instance(change: dict[str, Any], error: type[DriftsackError], words: str) -> None:
    world()
    with pytest.raises(error, match=words):
        world(**change)


def test_equal_neighbours_are_merged_and_nothing_is_lost() -> None:
    rng = np.random.default_rng(0)
    rewards, costs = rng.integers(0, 2, (200, 2)) / 2, rng.integers(0, 2, (200, 3, 2)) / 4
    instance = ds.Instance.from_arrays(rewards, costs, budget=5.0)
    assert len(instance.rewards) < 200
    np.testing.assert_array_equal(instance.rewards[instance.phase], rewards)
    np.testing.assert_array_equal(instance.costs[instance.phase], costs)
    assert instance.problem.budget == (5.0, 5.0, 5.0)


def test_builders_agree() -> None:
    rewards, costs = np.array([[0.5, 0.1], [0.2, 0.9]]), np.array([[[0.1, 0.2]], [[0.3, 0.4]]])
    phases = ds.Instance.piecewise(rewards, costs, [3, 2], budget=1.0)
    rounds = ds.Instance.from_arrays(rewards[[0, 0, 0, 1, 1]], costs[[0, 0, 0, 1, 1]], budget=1.0)
    called = ds.Instance.from_function(lambda t: (rewards[int(t > 3)], costs[int(t > 3)]), 5, budget=1.0)
    for other in (rounds, called):
        np.testing.assert_array_equal(other.phase, phases.phase)
        np.testing.assert_array_equal(other.rewards, phases.rewards)
        np.testing.assert_array_equal(other.costs, phases.costs)
    assert len(ds.Instance.stationary([0.5], [[0.1]], horizon=10**7, budget=1.0).rewards) == 1
    assert len(ds.Instance.piecewise(rewards, costs, [5, 0], budget=1.0).rewards) == 1
    with pytest.raises(ShapeError, match="lengths must have shape"):
        ds.Instance.piecewise(rewards, costs, [5], budget=1.0)
    with pytest.raises(ShapeError, match="lengths must have shape"):
        ds.Instance.piecewise(rewards, costs, 5, budget=1.0)  # type: ignore[arg-type]
    with pytest.raises(OutOfRangeError, match="horizon must be at least 1"):
        ds.Instance.piecewise(rewards, costs, [0, 0], budget=1.0)
    with pytest.raises(ShapeError, match="must return a pair"):
        ds.Instance.from_function(lambda _: 5, 3, budget=1.0)  # type: ignore[arg-type,return-value]
    with pytest.raises(ShapeError, match="rewards must be an array of numbers"):
        ds.Instance.from_function(lambda t: ([0.5] * (1 + t % 2), [[0.5]]), 3, budget=1.0)


def test_arrays_inside_are_read_only_copies() -> None:
    rewards = np.array([[0.5, 0.25]])
    instance = ds.Instance.piecewise(rewards, np.full((1, 1, 2), 0.1), [4], budget=1.0)
    rewards[:] = 0.0
    assert instance.rewards[0, 0] == 0.5
    for array in (instance.rewards, instance.costs, instance.phase):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_phase_must_name_rows() -> None:
    good = world()
    with pytest.raises(OutOfRangeError, match="phase must lie in"):
        ds.Instance(good.problem, good.rewards, good.costs, np.array([0, 0, 0, 1], dtype=np.int32))
    for wrong in (np.zeros(3, dtype=np.int32), np.full(4, 0.7), np.array(["a"] * 4)):
        with pytest.raises(ShapeError, match="phase must be integers of shape"):
            ds.Instance(good.problem, good.rewards, good.costs, wrong)


def test_instance_file(tmp_path: Path) -> None:
    path = tmp_path / "world.npz"
    instance = ds.instances.example_4(periods=3, horizon=100, noise="beta")
    instance.save(path)
    back = ds.Instance.load(path)
    assert (back.problem, back.noise) == (instance.problem, "beta")
    np.testing.assert_array_equal(back.rewards, instance.rewards)
    np.testing.assert_array_equal(back.costs, instance.costs)
    np.testing.assert_array_equal(back.phase, instance.phase)
    assert [p.name for p in tmp_path.iterdir()] == ["world.npz"]  # no temporary file remains


def test_foreign_truncated_and_future_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "world.npz"
    world().save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="not a complete driftsack instance file"):
            ds.Instance.load(path)
    path.write_bytes(b"hello")
    with pytest.raises(FileFormatError, match="not a complete driftsack instance file"):
        ds.Instance.load(path)
    np.savez(path, rewards=np.zeros(3))
    with pytest.raises(FileFormatError, match="not a complete driftsack instance file"):
        ds.Instance.load(path)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(FileFormatError, match="not a complete driftsack instance file"):
        ds.Instance.load(tmp_path / "array.npy")
    file_format.write(path, "instance", 99, {}, {})
    with pytest.raises(FileFormatError, match="must be of instance version 1, got version 99"):
        ds.Instance.load(path)
    file_format.write(path, "learner", 1, {}, {})
    with pytest.raises(FileFormatError, match="must hold a driftsack instance, got a file of kind 'learner'"):
        ds.Instance.load(path)
    file_format.write(path, "instance", 1, {"problem": {}, "noise": "beta"}, {})
    with pytest.raises(FileFormatError, match="contains an inconsistent instance"):
        ds.Instance.load(path)
    path.write_text("just some text")
    with pytest.raises(FileFormatError, match="another program wrote it"):
        ds.Instance.load(path)
    with pytest.raises(FileNotFoundError):
        ds.Instance.load(tmp_path / "nothing.npz")
    for load in (ds.Instance.load, ds.Learner.load):
        with pytest.raises(FileFormatError, match=f"{tmp_path} is a directory; pass a driftsack"):
            load(tmp_path)
    with pytest.raises(FileNotFoundError, match="name a file in an existing directory"):
        world().save(tmp_path / "no" / "such" / "directory.npz")
    with pytest.raises(FileNotFoundError, match="is a directory"):
        world().save(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "world.npz"
    world().save(path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        file_format.write(path, "instance", 1, {"noise": object()}, {})
    with pytest.raises(ValueError, match="allow_pickle"):
        file_format.write(path, "instance", 1, {}, {"bad": np.array([object()])})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["world.npz"]


def test_seeds_depend_on_seed_and_trial_alone() -> None:
    draws = {
        (seed, trial, stream): generator(trial_seeds(seed, trial)[stream]).random()
        for seed in range(3)
        for trial in range(4)
        for stream in range(2)
    }
    assert len(set(draws.values())) == len(draws)
    assert generator(trial_seeds(2, 3)[1]).random() == draws[2, 3, 1]
    with pytest.raises(OutOfRangeError, match="seed must be at least 0"):
        generator(-1)
    with pytest.raises(SettingError, match="seed must be an integer"):
        generator("x")  # type: ignore[arg-type]


def test_units_are_normalised() -> None:
    """An instance in cents and seconds equals the normalised one."""
    units = ds.Instance.stationary(
        [200.0, 50.0], [[3.0, 1.0]], horizon=50, budget=40.0, reward_max=400.0, cost_max=[5.0]
    )
    plain = ds.Instance.stationary([0.5, 0.125], [[0.6, 0.2]], horizon=50, budget=8.0)
    np.testing.assert_array_equal(units.unit_rewards, plain.unit_rewards)
    np.testing.assert_allclose(units.unit_costs, plain.unit_costs, rtol=1e-15)
    np.testing.assert_array_equal(units.problem.unit_budget, plain.problem.unit_budget)
