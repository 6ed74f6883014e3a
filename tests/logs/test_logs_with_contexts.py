"""Logs whose requests have features: how they are read, kept and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import driftsack as ds
from driftsack.core.errors import LogError, SettingError
from driftsack.logs import contexts, stream

ROWS = {"time": [1, 2, 3, 4], "arm": ["a", None, "b", "a"], "reward": [1, 0, 0, 1], "cost": [0.5, 0, 1, 1]}
FEATURES: dict[str, list[Any]] = {"context_kind": ["code", "chat", "code", "poem"], "context_tokens": [812, 3.5, 7, -2]}


def frame(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({**ROWS, **FEATURES, **columns}, strict=False)


def test_numbers_and_categories_are_recognised() -> None:
    log = ds.logs.read(frame())
    assert log.features == ds.Encoder(numbers=["tokens"], categories={"kind": ["chat", "code", "poem"]})
    assert log.contexts is not None
    expected = [
        log.features.encode({"tokens": n, "kind": k}) for n, k in zip(*reversed(FEATURES.values()), strict=True)
    ]
    np.testing.assert_array_equal(log.contexts, expected)
    assert "contexts tokens, kind" in repr(log)
    assert ds.logs.read(pl.DataFrame(ROWS)).contexts is None


def test_declared_features_decide_what_is_read() -> None:
    declared = ds.Encoder(categories={"kind": ["code"], "segment": ["1", "7"]}, spare=3)
    log = ds.logs.read(frame(context_segment=[1, 7, 9, 7], context_secret=["x", "", "y", "z"]), features=declared)
    assert log.features == declared
    requests = zip(FEATURES["context_kind"], [1, 7, 9, 7], strict=True)
    np.testing.assert_array_equal(log.contexts, [declared.encode({"kind": k, "segment": s}) for k, s in requests])
    bare = ds.logs.read(frame(), features=ds.Encoder(categories={"kind": ["code"]}, spare=0))
    np.testing.assert_array_equal(bare.contexts, [[1.0], [0.0], [1.0], [0.0]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_written_and_read_in_batches_agree(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [f"kind {k % 5}" for k in range(40)]
    rows = {"time": range(40), "arm": ["a", "b"] * 20, "reward": [0.5] * 40, "cost": [0.1] * 40}
    late_text = [*map(str, range(39)), "many"]  # numbers until the last row: a category all the same
    log = ds.logs.read(pl.DataFrame({**rows, "context_kind": kinds, "context_size": late_text}))
    assert log.features is not None
    assert log.features.numbers == ()
    log.write(tmp_path / f"log{suffix}")
    monkeypatch.setattr(stream, "ROWS_AT_ONCE", 7)
    again = ds.logs.read(tmp_path / f"log{suffix}")
    assert again.features == log.features
    np.testing.assert_array_equal(again.contexts, log.contexts)


def test_contexts_follow_their_rows_through_filters() -> None:
    rows = frame(context_tokens=[1, 2, 3, 4])
    doubled = pl.concat([rows[:3], rows[2:]])
    log = ds.logs.read(doubled, drop_duplicates=True)
    assert log.contexts is not None
    np.testing.assert_array_equal(log.contexts[:, 0], [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("columns", "line", "kind", "reason"),
    [
        ({"context_tokens": [1, None, 2, 3]}, 2, "empty", "context_tokens is empty; fill it in"),
        ({"context_kind": ["a", "b", " ", "c"]}, 3, "empty", "context_kind is empty"),
        ({"context_tokens": [1, 2, 3, float("inf")]}, 4, "not finite", "must be finite, got inf"),
        ({"context_tokens": [1, 2e9, 3, 4]}, 2, "out of range", "within 1e[+]09 of 0, got 2e[+]09; use another unit"),
    ],
)
def test_bad_features_are_reported(columns: dict[str, Any], line: int, kind: str, reason: str) -> None:
    (bad,) = ds.logs.check(frame(**columns))
    assert (bad.line, bad.kind) == (line, kind)
    with pytest.raises(LogError, match=reason):
        ds.logs.read(frame(**columns))


def test_texts_that_are_no_category_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "MOST_VALUES", 2)
    with pytest.raises(LogError, match="more than 2 different values, such as 'code', too many for a category"):
        ds.logs.read(frame())
    with pytest.raises(LogError, match="line 2: context_tokens must be a number, as in most rows, got '12a'"):
        ds.logs.read(frame(context_kind=["x"] * 4, context_tokens=["1", "12a", "2", "3"]))


def test_declarations_that_do_not_fit_are_refused() -> None:
    with pytest.raises(LogError, match="lacks the column context_city"):
        ds.logs.read(frame(), features=ds.Encoder(numbers=["city"]))
    with pytest.raises(LogError, match="context_kind must be a number, got 'code'"):
        ds.logs.read(frame(), features=ds.Encoder(numbers=["kind"]))
    with pytest.raises(SettingError, match="must not have embeddings"):
        ds.logs.read(frame(), features=ds.Encoder(embeddings={"prompt": 3}))
    with pytest.raises(SettingError, match=r"features must be a ds\.Encoder"):
        ds.logs.read(frame(), features=["kind"])  # type: ignore[arg-type]


def test_a_gathered_log_has_the_contexts_of_its_rounds() -> None:
    means = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    world = ds.ContextualInstance.by_table(
        np.eye(3), means, np.full((3, 1, 2), 0.5), budget=50, horizon=300, noise="deterministic"
    )
    log = ds.gather(world, seed=3)
    assert log.contexts is not None
    np.testing.assert_array_equal(log.reward, means[log.contexts.argmax(axis=1), log.arm])
    assert log.features == ds.Encoder(numbers=["0", "1", "2"])
    assert len(np.unique(log.contexts, axis=0)) == 3


def test_optional_features_may_be_empty(tmp_path: Path) -> None:
    lenient = ds.Encoder(numbers=["tokens"], categories={"kind": ["chat"]}, optional=["tokens", "kind"])
    rows = frame(context_tokens=[1, None, 3, None], context_kind=["chat", None, "code", ""])
    log = ds.logs.read(rows, features=lenient)
    np.testing.assert_array_equal(log.contexts, [[1, 1, 0, 0], [2, 0, 1, 1], [3, 0, 1, 0], [2, 0, 1, 1]])
    log.write(tmp_path / "log.parquet")
    again = ds.logs.read(tmp_path / "log.parquet", features=lenient)
    np.testing.assert_array_equal(again.contexts, log.contexts)
