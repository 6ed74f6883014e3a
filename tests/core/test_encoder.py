"""Requests with features: how they are declared, encoded, kept until their outcome arrives, and saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import driftsack as ds
from driftsack.authoring import Floats, Generator, Outcome, Policy, Problem, Round, kernel
from driftsack.core.encoder import MOST_FEATURES
from driftsack.core.errors import FileFormatError, NamesError, NotFiniteError, OutOfRangeError, SettingError, ShapeError

ENCODER = ds.Encoder(numbers=["tokens"], categories={"kind": ["chat", "code"], "tier": ["free"]}, spare=2)


class State(NamedTuple):
    """What was seen and learnt."""

    seen: Floats  # (n,) the latest context
    learnt: Floats  # (n,) the context of the latest outcome


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Pull the arm whose number is the first feature."""
    for f in range(round.context.size):
        state.seen[f] = round.context[f]
    arm = int(round.context[0])
    mix[:] = 0.0
    mix[arm] = 1.0
    prices[:] = 0.0
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Keep the context of the outcome."""
    for f in range(outcome.context.size):
        state.learnt[f] = outcome.context[f]


@dataclass(frozen=True)
class FirstFeature(Policy):
    """Pull the arm whose number is the first feature."""

    @property
    def needs_context(self) -> bool:
        return True

    @property
    def forgets(self) -> None:
        return None

    def new_state(self, problem: Problem) -> State:
        return State(np.zeros(problem.features), np.zeros(problem.features))


def problem(**changes: object) -> Problem:
    return Problem(**{"horizon": 50, "arms": 3, "budget": 20, "features": 2, **changes})  # type: ignore[arg-type]


def test_a_mapping_becomes_numbers_and_unknown_values_share_the_spare_slots() -> None:
    assert ENCODER.size == 1 + 4 + 3
    assert ENCODER.names[:5] == ("tokens", "kind=chat", "kind=code", "kind=?", "kind=?1")
    row = ENCODER.encode({"kind": "code", "tier": "free", "tokens": 7})
    assert row.tolist() == [7, 0, 1, 0, 0, 1, 0, 0]
    found = {int(np.argmax(ENCODER.encode({"kind": f"new{k}", "tier": "free", "tokens": 0})[1:5])) for k in range(40)}
    assert found == {2, 3}  # both spare slots, and no known value
    assert ENCODER.encode({"kind": 3, "tier": "free", "tokens": 0}).sum() == 2
    assert ds.Encoder(categories={"kind": ["a"]}, spare=0).encode({"kind": "b"}).tolist() == [0.0]


def test_an_encoder_and_a_problem_with_one_are_plain_data_and_come_back_equal() -> None:
    given = Problem(horizon=9, arms=2, budget=3, features=ENCODER)
    assert Problem.from_dict(given.to_dict()) == given
    assert hash(Problem.from_dict(given.to_dict())) == hash(given)
    assert given.features == ENCODER.size
    assert "Encoder" in repr(given)
    assert Problem(horizon=9, arms=2, budget=3).to_dict().keys() == {"horizon", "arms", "budget", "reward_max"}
    named = Problem(horizon=9, arms=2, budget=3, features=["a", "b"])
    assert named.encoder == ds.Encoder(numbers=("a", "b"))


def test_a_projection_keeps_scalar_products_in_expectation() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 384)) / np.sqrt(384)
    kept = [
        ds.Encoder(embeddings={"e": 384}, project=32, seed=seed).encode({"e": one})
        @ ds.Encoder(embeddings={"e": 384}, project=32, seed=seed).encode({"e": one + other})
        for seed in range(200)
    ]
    true = one @ (one + other)
    assert abs(np.mean(kept) - true) < 4 * np.std(kept) / np.sqrt(200)  # fails once in 16,000 by chance
    again = ds.Encoder(embeddings={"e": 4}, project=2).encode({"e": [1, 0, 0, 0]})
    assert again.tolist() == ds.Encoder(embeddings={"e": 4}, project=2).encode({"e": [1, 0, 0, 0]}).tolist()
    assert np.abs(again).tolist() == pytest.approx([0.5**0.5] * 2)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"tokens": 1, "kind": "chat"}, NamesError, "missing"),
        ({"tokens": 1, "kind": "chat", "tier": "free", "more": 1}, NamesError, "unknown"),
        ({"tokens": "many", "kind": "chat", "tier": "free"}, ShapeError, "^'tokens' must be one number, got 'many'"),
        ({"tokens": None, "kind": "chat", "tier": "free"}, ShapeError, "^'tokens' must be one number, got None"),
        ({"tokens": np.nan, "kind": "chat", "tier": "free"}, NotFiniteError, "finite"),
        ({"tokens": 1, "kind": 0.5, "tier": "free"}, SettingError, "'kind'"),
        ({"tokens": 1e10, "kind": "chat", "tier": "free"}, OutOfRangeError, "another unit"),
        ([1.0, 2.0], ShapeError, "context"),
    ],
)
def test_a_context_that_does_not_fit_is_refused_and_nothing_changes(
    wrong: object, error: type[Exception], message: str
) -> None:
    learner = ds.NaiveUCB().start(problem(features=ENCODER))
    with pytest.raises(error, match=message):
        learner.ask(context=wrong)  # type: ignore[arg-type]
    assert learner.round == 0


def test_declarations_that_make_no_sense_are_refused() -> None:
    for settings, error in (
        ({"numbers": ["a", "a"]}, NamesError),
        ({"numbers": ["a"], "categories": {"a": ["x"]}}, NamesError),
        ({}, NamesError),
        ({"categories": ["kind"]}, SettingError),
        ({"categories": {"kind": "chat"}}, NamesError),  # not the four letters
        ({"categories": {"kind": {"chat", "code"}}}, NamesError),  # which have no order
        ({"categories": {"kind": None}}, NamesError),
        ({"categories": {"kind": 3}}, NamesError),
        ({"categories": [("kind", "chat", "code")]}, SettingError),
        ({"numbers": ["a"], "project": 2}, SettingError),
        ({"embeddings": {"e": 2**20}, "project": 64}, OutOfRangeError),
        ({"embeddings": {"e": MOST_FEATURES + 1}}, OutOfRangeError),
    ):
        with pytest.raises(error):
            ds.Encoder(**settings)
    with pytest.raises(OutOfRangeError):
        problem(features=MOST_FEATURES + 1)
    with pytest.raises(SettingError, match="Encoder"):
        problem(features={"kind": ["chat", "code"]})  # its keys are not names of numbers
    assert ds.Encoder(categories={"hour": range(24)}).encode({"hour": 3}).argmax() == 3


@pytest.mark.parametrize("wrong", ["abc", [1.0, 2.0, 3.0], None, 7])
def test_an_encoder_encodes_mappings_only(wrong: object) -> None:
    with pytest.raises(SettingError, match="mapping from the features"):
        ENCODER.encode(wrong)  # type: ignore[arg-type]


def test_an_unknown_value_may_be_any_text() -> None:
    encoder = ds.Encoder(categories={"kind": ["chat"]})
    for text in ("\ud800", "", "\0", "日本"):  # the first cannot be encoded as UTF-8
        assert encoder.encode({"kind": text}).tolist() == [0.0, 1.0]


def test_policies_without_context_ignore_it_and_those_that_need_it_refuse_its_absence() -> None:
    plain, given = ds.NaiveUCB().start(problem()), ds.NaiveUCB().start(problem())
    for x in np.random.default_rng(0).standard_normal((20, 2)):
        decision, other = plain.ask(), given.ask(context=x)
        assert decision.arm == other.arm
        assert other.context is not None
        assert other.context.tolist() == x.tolist()
        plain.tell(decision, 0.5, [0.1])
        given.tell(other, 0.5, [0.1])
    learner = FirstFeature().start(problem())
    with pytest.raises(SettingError, match="FirstFeature needs the features of each request"):
        learner.ask()
    with pytest.raises(SettingError, match="FirstFeature needs"):
        learner.ask_many(2)
    with pytest.raises(SettingError, match="has no features"):
        ds.NaiveUCB().start(problem(features=0)).ask(context=[1.0])
    assert ds.NaiveUCB().start(problem(features=0)).ask().context is None


@pytest.mark.slow
def test_an_outcome_that_arrives_late_is_learnt_with_its_own_context() -> None:
    learner = FirstFeature().start(problem())
    decisions = [learner.ask(context=[k % 3, k]) for k in range(20)]  # more than the first capacity of the desk
    assert [decision.arm for decision in decisions] == [k % 3 for k in range(20)]
    for k in (3, 19, 0):
        learner.tell(decisions[k], 1.0, [0.1])
        assert learner.state.learnt.tolist() == [k % 3, k]
    assert learner.state.learnt.tolist() != learner.state.seen.tolist()  # what a learner would learn that keeps none


def test_a_batch_has_a_context_for_each_request() -> None:
    learner = FirstFeature().start(problem(features=["arm", "x"]))
    made = learner.ask_many(3, contexts=[{"arm": 2, "x": 5}, {"arm": 0, "x": 6}, {"arm": 1, "x": 7}])
    assert made.arms.tolist() == [2, 0, 1]
    assert made.contexts is not None
    assert made[1].context is not None
    assert made[1].context.tolist() == [0, 6]
    learner.tell_many(made[:2], [1, 1], [[0.1], [0.1]])
    assert learner.state.learnt.tolist() == [0, 6]
    with pytest.raises(ShapeError, match="one for each of 3"):
        learner.ask_many(3, contexts=[[1, 2]])


def test_a_file_carries_encoder_and_contexts_and_a_damaged_one_is_refused() -> None:
    learner = FirstFeature().start(problem(features=["arm", "x"]))
    kept = learner.ask(context={"arm": 1, "x": 4})
    learner.ask(context={"arm": 2, "x": 9})
    other = ds.Learner.from_bytes(learner.to_bytes())
    assert other.problem.encoder == learner.problem.encoder
    assert other.pending[0].context is not None
    assert other.pending[0].context.tolist() == [1, 4]
    other.tell(kept, 1.0, [0.1])
    assert other.state.learnt.tolist() == [1, 4]
    assert other.ask(context={"arm": 0, "x": 0}).arm == 0
    learner._engine.desk.awaited.contexts[:] = 1e12
    with pytest.raises(FileFormatError, match=r"pending\.contexts"):
        ds.Learner.from_bytes(learner.to_bytes())


def test_an_arm_is_added_to_a_learner_with_contexts() -> None:
    learner = FirstFeature().start(problem(arms=["a", "b"]))
    first = learner.ask(context=[1, 7])
    learner.add_arm("c")
    assert learner.ask(context=[2, 8]).name == "c"
    learner.tell(first, 1.0, [0.1])
    assert learner.state.learnt.tolist() == [1, 7]
