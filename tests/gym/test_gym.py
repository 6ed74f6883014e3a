"""Environments follow the rules of ``simulate``, adapters work in both directions, and Gymnasium's checker passes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.random import SeedSequence

import driftsack as ds
from driftsack.core.errors import (
    BudgetExhaustedError,
    DriftsackError,
    HorizonReachedError,
    OutOfRangeError,
    SettingError,
)
from driftsack.core.instance import NOISES, Noise
from driftsack.gym import EXAMPLES, AgentPolicy, BudgetEnv, play, register_examples
from driftsack.instances.contextual import linear_contexts

ROUNDS = 60


class FixedList:
    """A policy that plays a given list of arms."""

    def __init__(self, arms: list[int]) -> None:
        self.arms = arms

    def start(self, problem: ds.Problem, seed: SeedSequence) -> FixedList:
        self.ask = iter(self.arms).__next__
        return self

    def tell(self, decision: int, reward: float, costs: Any) -> None:
        """Ignore the outcome."""


def world(noise: Noise, budget: float = 10.0, reward_max: float = 1.0) -> ds.Instance:
    rewards = np.array([[0.3, 0.7, 0.55], [0.1, 0.2, 0.9]]) * reward_max
    costs = [[[0.2, 0.6, 0.1], [0.0, 1.4, 0.7]], [[0.9, 0.3, 0.4], [1.1, 0.6, 0.2]]]
    return ds.Instance.piecewise(rewards, costs, [35, 25], [budget, 2 * budget], noise, reward_max, cost_max=[1.0, 2.0])


def some_arms(seed: int) -> list[int]:
    return [int(arm) for arm in np.random.default_rng(seed).integers(-1, 3, ROUNDS)]


def episode(env: BudgetEnv, arms: list[int], seed: int) -> tuple[float, int, dict[str, Any]]:
    """Total reward, stopping time and last info of playing a list of arms."""
    env.reset(seed=seed)
    total = 0.0
    for arm in arms:
        seen, reward, terminated, truncated, info = env.step(3 if arm == ds.SKIP else arm)
        assert env.observation_space.contains(seen)
        total += reward
        if terminated or truncated:
            break
    return total, info["round"] if terminated else ROUNDS + 1, info


def same_as_simulate(env: BudgetEnv, arms: list[int], seed: int) -> bool:
    run = ds.simulate(env.instance, FixedList(arms), trials=1, seed=seed)
    total, stopped, info = episode(env, arms, seed)
    return total == run.reward[0] and stopped == run.stopping_time[0] and np.array_equal(info["spent"], run.spent[0])


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("budget", [10.0, 100.0])
def test_same_rewards_as_simulate_bit_for_bit(noise: Noise, budget: float) -> None:
    env = BudgetEnv(world(noise, budget))
    assert all(same_as_simulate(env, some_arms(seed), seed) for seed in range(5))


def test_a_reward_for_the_round_that_exceeds_a_budget_would_be_noticed() -> None:
    class Generous(BudgetEnv):
        """The planted fault: the round that exceeds a budget earns a reward."""

        def _pull(self, arm: int) -> float:
            super()._pull(arm)
            return float(self._world.rewards[self._world.phase[self._round], arm])

    assert not any(same_as_simulate(Generous(world("deterministic")), some_arms(seed), seed) for seed in range(5))


def test_rewards_are_in_the_problems_units() -> None:
    env = BudgetEnv(world("deterministic", reward_max=40.0))
    env.reset(seed=0)
    seen, reward, _, _, info = env.step(1)
    assert reward == pytest.approx(28.0)
    assert info["costs"] == pytest.approx([0.6, 1.4])
    np.testing.assert_allclose(seen, [9.4 / 10, 18.6 / 20, 59 / 60, 0.7, 0.6, 0.7], rtol=1e-6)
    seen, reward, _, _, info = env.step(3)
    assert reward == 0.0
    np.testing.assert_allclose(seen, [9.4 / 10, 18.6 / 20, 58 / 60, 0.0, 0.0, 0.0], rtol=1e-6)
    assert info["spent"] == pytest.approx([0.6, 1.4])


def test_terminated_by_a_budget_truncated_by_the_horizon() -> None:
    env = BudgetEnv(ds.Instance.stationary([1.0], [[1.0]], horizon=5, budget=2, noise="deterministic"))
    env.reset(seed=0)
    ends = [env.step(0)[1:4] for _ in range(3)]
    assert ends == [(1.0, False, False), (1.0, False, False), (0.0, True, False)]
    with pytest.raises(BudgetExhaustedError, match="exceeded in round 3; call reset"):
        env.step(0)
    env.reset()
    ends = [env.step(1)[1:4] for _ in range(5)]
    assert ends[-2:] == [(0.0, False, False), (0.0, False, True)]
    with pytest.raises(HorizonReachedError, match="all 5 rounds have been played; call reset"):
        env.step(0)


def test_the_remaining_share_of_a_budget_of_zero_is_zero() -> None:
    env = BudgetEnv(ds.Instance.stationary([1.0], [[0.0]], horizon=2, budget=0))
    np.testing.assert_array_equal(env.reset(seed=0)[0], [0.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("name", EXAMPLES)
def test_gymnasiums_checker_accepts_the_examples(name: str) -> None:
    check_env(gymnasium.make(name, horizon=100).unwrapped)  # warnings are errors here


def test_gymnasiums_checker_accepts_other_instances() -> None:
    for noise in NOISES:
        check_env(BudgetEnv(world(noise)), skip_render_check=True)  # it cannot be rendered and has no registered name


def test_make_by_name_with_settings() -> None:
    env = gymnasium.make("driftsack.gym:driftsack/Example3-v0", alpha=0.25, horizon=80, noise="beta")
    assert isinstance(env.unwrapped, BudgetEnv)
    assert env.unwrapped.instance == ds.instances.example_3(0.25, horizon=80, noise="beta")
    register_examples()  # a second time; a warning would be an error


def test_a_seed_repeats_an_episode_and_reset_continues_its_stream() -> None:
    env = BudgetEnv(world("uniform", budget=100.0))
    arms = [1] * ROUNDS
    first, again, other = (episode(env, arms, seed)[0] for seed in (7, 7, 8))
    assert first == again != other

    def two_episodes() -> tuple[float, float]:
        env.reset(seed=7)
        before = env.step(1)[1]
        env.reset()
        return before, env.step(1)[1]

    before, after = two_episodes()
    assert before != after
    assert two_episodes() == (before, after)


@pytest.mark.parametrize("action", [-1, 4, 1.0, True, None, "1", [1], np.nan])
def test_bad_actions_are_refused_and_change_nothing(action: Any) -> None:
    env = BudgetEnv(world("deterministic"))
    env.reset(seed=0)
    with pytest.raises(OutOfRangeError, match=r"integer in \[0, 3\], where 3 skips, got"):
        env.step(action)
    assert env.step(np.array(1))[4]["round"] == 1


def test_an_error_for_skip_names_the_right_action() -> None:
    env = BudgetEnv(world("deterministic"))
    env.reset(seed=0)
    with pytest.raises(OutOfRangeError, match="SKIP is action 3 here"):
        env.step(ds.SKIP)


def test_misuse_raises_errors() -> None:
    with pytest.raises(SettingError, match="instance must be a driftsack Instance"):
        BudgetEnv("example_2")  # type: ignore[arg-type]
    with pytest.raises(DriftsackError, match="must begin with reset"):
        BudgetEnv(world("beta")).step(0)
    with pytest.raises(SettingError, match="policy must be a driftsack Policy"):
        play(FixedList([0]), BudgetEnv(world("beta")))  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="env must be a BudgetEnv"):
        play(ds.NaiveUCB(), gymnasium.make("CartPole-v1"))
    with pytest.raises(SettingError, match="act must be a function"):
        AgentPolicy(3)  # type: ignore[arg-type]
    with pytest.raises(OutOfRangeError, match="SKIP is action 3 here"):
        ds.simulate(world("beta"), AgentPolicy(lambda _: -1), trials=1)


@pytest.mark.parametrize(
    "policy", [ds.NaiveUCB(scale=0.1), ds.ThompsonBwK(), ds.policies.DualDescent(), ds.policies.UniformRandom()]
)
@pytest.mark.parametrize("noise", NOISES)
def test_a_policy_plays_an_environment_as_it_plays_simulate(policy: ds.Policy, noise: Noise) -> None:
    instance = world(noise)
    for seed in range(3):
        assert play(policy, BudgetEnv(instance), seed) == ds.simulate(instance, policy, trials=1, seed=seed).reward[0]


def test_a_policy_plays_a_wrapped_environment() -> None:
    env = gymnasium.make("driftsack/Example2-v0", horizon=200)
    policy = ds.SlidingWindowUCB(windows=(50, 50), scale=0.1)
    assert play(policy, env, seed=5) == ds.simulate(ds.instances.example_2(200), policy, trials=1, seed=5).reward[0]


class RandomAgent:
    """An agent with random actions that skips when a budget is low; it records its observations."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def reset(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.seen = []

    def __call__(self, observation: Any) -> int:
        self.seen.append(observation)
        return int(self.rng.integers(4)) if observation[:2].min() > 0.1 else 3


@pytest.mark.parametrize("noise", ["deterministic", "beta"])
def test_an_agent_has_the_same_observations_in_simulate_and_in_the_environment(noise: Noise) -> None:
    agent, instance = RandomAgent(), world(noise)
    run = ds.simulate(instance, AgentPolicy(agent), trials=1, seed=4)
    in_simulate = np.array(agent.seen)
    again = ds.simulate(instance, AgentPolicy(agent), trials=1, seed=4)
    assert again.reward[0] == run.reward[0]

    learner_seed = ds.core.seeding.trial_seeds(4, 0)[1]
    agent.reset(int(learner_seed.generate_state(1)[0]))
    env = BudgetEnv(instance)
    seen, _ = env.reset(seed=4)
    total, over = 0.0, False
    while not over:
        seen, reward, terminated, truncated, _ = env.step(agent(seen))
        total += reward
        over = terminated or truncated
    assert total == run.reward[0]
    np.testing.assert_allclose(in_simulate, np.array(agent.seen), atol=1e-6)
    assert run.reward[0] > 0.0


def test_the_library_loads_without_gymnasium() -> None:
    code = "import sys, driftsack; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_gymnasium_is_reported() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import driftsack.gym"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "SettingError: driftsack.gym needs Gymnasium: pip install 'driftsack[gym]'" in done.stderr


def test_an_environment_with_contexts_follows_simulate() -> None:
    """The features of each round are observed, a contextual policy plays trial 0, and an agent sees the same."""
    world = linear_contexts(horizon=150, arms=3, features=4, pool=20, seed=2)
    env = BudgetEnv(world)
    check_env(env, skip_render_check=True)
    seen, _ = env.reset(seed=5)
    assert env.observation_space.contains(seen)
    np.testing.assert_array_equal(seen[-4:], env.context.astype(np.float32))
    contexts = [env.context]
    for _ in range(150):
        env.step(3)
        contexts.append(env.context)
    assert len({context.tobytes() for context in contexts}) > 10
    policy = ds.LinearBwK()
    assert play(policy, env, seed=5) == ds.simulate(world, policy, trials=1, seed=5).reward.item()
    noted: list[Any] = []

    def act(observation: Any) -> int:
        noted.append(observation[-4:])
        return 0

    agent = AgentPolicy(act)
    ds.simulate(world, agent, trials=1, seed=5)
    np.testing.assert_array_equal(noted[0], contexts[0].astype(np.float32))
