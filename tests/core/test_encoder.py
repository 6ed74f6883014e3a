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
from tests.support.forms import interpret
from tests.support.learner_parts import desk_of

ENCODER = ds.Encoder(numbers=["tokens"], categories={"kind": ["chat", "code"], "tier": ["free"]}, spare=2)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpret kernels, because compiling those of this file takes longer than its tests."""
    interpret(monkeypatch)


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
    desk_of(learner).awaited.contexts[:] = 1e12
    with pytest.raises(FileFormatError, match=r"pending\.contexts"):
        ds.Learner.from_bytes(learner.to_bytes())


def test_an_arm_is_added_to_a_learner_with_contexts() -> None:
    learner = FirstFeature().start(problem(arms=["a", "b"]))
    first = learner.ask(context=[1, 7])
    learner.add_arm("c")
    assert learner.ask(context=[2, 8]).name == "c"
    learner.tell(first, 1.0, [0.1])
    assert learner.state.learnt.tolist() == [1, 7]


LENIENT = ds.Encoder(
    numbers=["tokens", "age"], categories={"kind": ["chat", "code"], "tier": ["free"]}, optional=["age", "kind"]
)


def test_optional_features_may_be_missing() -> None:
    assert LENIENT.names[-1] == "age=?"
    assert LENIENT.size == 2 + 3 + 2 + 1
    full = LENIENT.encode({"tokens": 5, "age": 3, "kind": "code", "tier": "free"})
    assert full.tolist() == [5, 3, 0, 1, 0, 1, 0, 0]
    for context in ({"tokens": 5, "tier": "free"}, {"tokens": 5, "tier": "free", "age": None, "kind": None}):
        assert LENIENT.encode(context).tolist() == [5, 0, 0, 0, 1, 1, 0, 1]
        assert LENIENT.encode(context, means=[40.0]).tolist() == [5, 40, 0, 0, 1, 1, 0, 1]
    with pytest.raises(NamesError, match="'tier' missing"):
        LENIENT.encode({"tokens": 5})
    assert ds.Encoder.from_dict(LENIENT.to_dict()) == LENIENT
    assert Problem(horizon=9, arms=2, budget=3, features=LENIENT).features == LENIENT.size


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"numbers": ["a"], "optional": ["b"]}, NamesError, "optional must be one of 'a', got 'b'"),
        ({"embeddings": {"e": 4}, "optional": ["e"]}, SettingError, "an embedding cannot be optional, got 'e'"),
        ({"categories": {"k": ["x"]}, "spare": 0, "optional": ["k"]}, SettingError, "'k' needs a slot"),
        ({"numbers": ["a"], "optional": ["a", "a"]}, NamesError, "more than once"),
    ],
)
def test_features_that_cannot_be_optional_are_refused(
    settings: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ds.Encoder(**settings)  # type: ignore[arg-type]


def test_a_missing_number_is_its_mean_over_earlier_requests_and_the_means_are_saved() -> None:
    seen = ds.NaiveUCB().start(problem(features=LENIENT), seed=0)
    usual = {"kind": "chat", "tier": "free", "tokens": 1}

    def latest(learner: ds.Learner, **context: object) -> list[float]:
        decision = learner.ask(context={**usual, **context})
        assert decision.context is not None
        return [float(value) for value in decision.context]

    assert latest(seen)[1] == 0.0  # nothing is known yet, and a missing value is none
    for age in (10.0, 20.0, None, 60.0):
        latest(seen, age=age)
    assert latest(seen)[1] == 30.0
    assert latest(seen)[-1] == 1.0
    again = ds.Learner.from_bytes(seen.to_bytes())
    assert again.state_hash() == seen.state_hash()
    assert latest(again, age=None)[1] == 30.0
    # A learner that is given encoded vectors has the same means, and so has one that asks for a batch.
    ages = [1.0, None, 7.5, None, 2.25]
    rows = [{**usual, "age": age} for age in ages]
    one, many, given = (ds.NaiveUCB().start(problem(features=LENIENT), seed=0) for _ in range(3))
    vectors = [latest(one, **row) for row in rows]
    many.ask_many(5, contexts=rows)
    for vector in vectors:
        given.ask(context=vector)
    assert [vector[1] for vector in vectors] == [1.0, 1.0, 7.5, 4.25, 2.25]
    for other in (many, given):
        assert latest(other) == latest(ds.Learner.from_bytes(one.to_bytes()))
    # A mean that is not possible is not read from a file.
    seen._engine.usual.means[0] = np.inf
    with pytest.raises(FileFormatError, match="means of optional features"):
        ds.Learner.from_bytes(seen.to_bytes())


def test_a_refused_request_changes_no_mean() -> None:
    learner = ds.NaiveUCB().start(problem(features=LENIENT, horizon=1), seed=0)
    row = {"kind": "chat", "tier": "free", "tokens": 1, "age": 4}
    learner.ask(context=row)
    before = learner.state_hash()
    for wrong in ({**row, "age": 1e10}, {**row, "tokens": "x"}, row):  # the last one is beyond the horizon
        with pytest.raises(ds.errors.DriftsackError):
            learner.ask(context=wrong)
        assert learner.state_hash() == before


def test_encoded_values_are_single_precision_numbers() -> None:
    wide = ds.Encoder(numbers=["x"], embeddings={"e": 64}, project=8)
    rng = np.random.default_rng(0)
    found = wide.encode({"x": 0.1, "e": rng.standard_normal(64)})
    assert found.tolist() == found.astype(np.float32).astype(float).tolist()
    with pytest.raises(OutOfRangeError, match="'e' must lie within"):
        wide.encode({"x": 0.1, "e": [1e300] * 64})
