"""What is derived from the journal of a campaign with features: explanations, exports and estimates."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import driftsack as ds
from driftsack.cli import app
from driftsack.core.errors import CannotAnswerError
from driftsack.policies.parts import contributions
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.projections import export
from driftsack.service.projections.explain import replay, why
from driftsack.service.projections.what_if import what_if
from driftsack.service.store.sqlite import SQLiteStore
from tests.service.runtime.test_archives import archived_and_pruned
from tests.support.contextual_campaigns import Traffic, played, seeing


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("contexts") / "s.db"
    played(found, 500)
    return found


def test_a_replay_is_the_same(path: Path) -> None:
    with closing(SQLiteStore(path, read_only=True)) as store:
        found = replay(store, "chat")
    assert (found.same, found.divergences, found.decisions) == (True, 0, 500)


def test_an_export_has_the_contexts_and_advise_reads_it(path: Path, tmp_path: Path) -> None:
    with closing(SQLiteStore(path, read_only=True)) as store:
        text, found = export.as_csv(store, "chat"), export.outcomes(store, "chat")
    (tmp_path / "log.csv").write_text(text)
    log = ds.logs.read(tmp_path / "log.csv")
    assert log.features is not None
    assert set(log.features.numbers) == {"tokens", "age", "prompt_0", "prompt_1", "prompt_2", "age=?"}
    assert dict(log.features.categories) == {"kind": ("?", "chat", "code"), "tier": ("7", "?", "free")}
    assert found.contexts is not None
    assert log.contexts is not None
    numbers = [log.features.numbers.index(name) for name in ("tokens", "age", "age=?")]
    np.testing.assert_array_equal(log.contexts[:, numbers], found.contexts[:, [0, 1, -1]])
    result = CliRunner().invoke(app, ["advise", str(tmp_path / "log.csv"), "--budget", "20", "--trials", "2", "--json"])
    assert result.exit_code == 0, result.output


def test_the_effects_of_features_add_up_to_the_estimates(path: Path) -> None:
    with closing(SQLiteStore(path, read_only=True)) as store:
        events = [e for s in store.segments("chat") for e in journal.decode(s.body) if isinstance(e, journal.Asked)]
        number = next(e.number for e in events[400:] if e.context is not None and np.frombuffer(e.context, "<f4")[3])
        found = why(store, "chat", number)
    effects = {each.feature: each for each in found.features}
    assert effects.keys() == {"tokens", "age", "kind", "tier", "prompt"}
    assert effects["kind"].value == "code"
    for arm in found.arms:
        assert arm.reward is not None
        usual = arm.reward - sum(each.reward[arm.arm] for each in found.features)
        assert 0.0 < usual < 1.2
    # Code needs the large arm, and that is the first thing that is said.
    assert effects["kind"].reward["small"] < -0.2
    assert abs(effects["kind"].reward["large"]) < 0.2
    assert found.words[0].startswith("kind (code) speaks for large rather than small, by 0.")
    result = CliRunner().invoke(app, ["why", "chat", str(number), "--store", str(path)])
    assert result.exit_code == 0, result.output
    assert "kind (code) speaks for" in result.output


def test_effects_in_other_units_do_not_add_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: coefficients without the vector of the request."""
    whole = contributions.linear_contributions

    def without_vector(bank: object, x: object) -> contributions.Contributions:
        parts = whole(bank, x)  # type: ignore[arg-type]
        return parts._replace(effects=parts.effects * 0.0 + 0.3)

    monkeypatch.setattr("driftsack.policies.contextual.linear_contributions", without_vector)
    with pytest.raises(AssertionError):
        test_the_effects_of_features_add_up_to_the_estimates(path)


def test_what_if_is_doubly_robust(tmp_path: Path) -> None:
    """The journal of a policy that chooses uniformly has correct propensities and plays everything everywhere."""
    played(tmp_path / "s.db", 1500, seeing(policy={"policy": "UniformRandom"}))
    with closing(SQLiteStore(tmp_path / "s.db", read_only=True)) as store:
        found, own = what_if(store, "chat", {"policy": "LinearBwK"})
        blind, _ = what_if(store, "chat", {"policy": "AlwaysArm", "arm": 0})
    assert found.method == blind.method == "doubly robust"
    # The best choice earns 0.9 everywhere; the small arm 0.9 for chat and 0.1 for the rest.
    assert abs(blind.reward - 0.58) < 4 * blind.reward_se
    assert found.reward > blind.reward + 4 * found.reward_se
    assert found.reward_se < 0.05
    assert 0.2 < own < 0.8


def test_what_if_answers_for_a_policy_that_draws_means(tmp_path: Path) -> None:
    """Its recorded mixes are 0 or 1 and refused, unless it explores; those over its draws answer, within 4 errors."""
    played(tmp_path / "s.db", 1200, seeing(explore=0.1))
    with closing(SQLiteStore(tmp_path / "s.db", read_only=True)) as store:
        found, _ = what_if(store, "chat", {"policy": "AlwaysArm", "arm": 0})
        log = export.outcomes(store, "chat")
    recorded = {round(row[3], 9) for row in log.rows if row[1] and isinstance(row[3], float)}
    assert recorded == {0.05, 0.95}
    assert abs(found.reward - 0.58) < 4 * found.reward_se
    assert found.reward_se < 0.15


def test_an_answer_needs_enough_outcomes(tmp_path: Path) -> None:
    played(tmp_path / "s.db", 10)
    with (
        closing(SQLiteStore(tmp_path / "s.db", read_only=True)) as store,
        pytest.raises(CannotAnswerError, match="100 outcomes"),
    ):
        what_if(store, "chat", {"policy": "AlwaysArm", "arm": 0})


def test_an_export_after_an_archive_has_the_contexts_of_its_rows(tmp_path: Path) -> None:
    """A decision that was open when the events before it were archived has its context from the learner."""
    one = played(tmp_path / "s.db", 60)
    row = {**Traffic(8).context(), "tokens": 77.0}
    found = one.do(ms.Ask(context=row))
    while found.skipped:
        found = one.do(ms.Ask(context=row))
    one.wait(5_000)
    with closing(SQLiteStore(tmp_path / "s.db")) as store:
        archived_and_pruned(store, tmp_path / "one.db", before=one.now.at)
        one.do(ms.Tell(1.0, {"usd": "0.01"}), found.decision)
        left = export.outcomes(store, "chat")
        assert len(left.rows) == 1
        assert left.contexts is not None
        assert left.contexts[:, 0].tolist() == [77.0]
        assert replay(store, "chat").same
