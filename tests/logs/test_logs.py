"""Logs: each kind of bad row has its own message, reading returns what was written, and memory is bounded."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import driftsack as ds
from driftsack.core.errors import CannotAnswerError, LogError, OutOfRangeError, SettingError
from driftsack.logs import rows, stream
from driftsack.logs.survey import add_rows, new_cells

HEADER = "time,arm,reward,cost_money"
GOOD = ["1,a,0.5,0.1", "2,b,1,0.2", "3,,,", "4,a,0,0.3"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("lines", "kind", "words"),
    [
        (["time,arm,cost_money", "1,a,0.1"], None, "lacks the column reward; it has time, arm, cost_money"),
        ([HEADER, *GOOD, "5,a,NaN,0.1"], "not finite", "line 6: reward must be finite, got 'NaN'"),
        (
            [HEADER, *GOOD, "5,a,1,1.3"],
            "too large",
            "line 6: cost_money goes up to 1.3, above its cost_max 1; pass cost_max=1.3 (--cost-max cost_money=1.3)",
        ),
        (
            [HEADER, *GOOD, "2.5,a,1,0.3"],
            "unsorted",
            "line 6: time '2.5' is earlier than in the row before; sort the log",
        ),
        ([HEADER, *GOOD, "5,z,1,0.3"], "unknown arm", "line 6: arm must be one of a, b, or empty for a skip, got 'z'"),
        ([HEADER], None, "is empty: it has a header and no rows"),
        ([HEADER.replace(",", ";"), "1;a;0.5;0.1"], None, "separated by semicolons; pass separator=';'"),
        ([HEADER, *GOOD, "5,a,often,0.3"], "not a number", "line 6: reward must be a number, got 'often'"),
        (
            [HEADER, *GOOD, "5,a,-0.2,0.3"],
            "negative",
            "line 6: reward must be 0 or more, got -0.2; correct it or add the same",
        ),
        ([HEADER, *GOOD, "5,a,,0.3"], "empty", "line 6: reward is empty although an arm was played"),
        ([HEADER, *GOOD, "5,,0.7,"], "not skipped", "line 6: reward is 0.7 although no arm was played"),
        ([HEADER, *GOOD, "", "6,a,1,0.3"], "empty", "line 6: time is empty"),
        ([HEADER, *GOOD, "noon,a,1,0.3"], "not a number", "line 6: time must be a number or a date, got 'noon'"),
        ([HEADER, *GOOD, "5,a,1,0.3,0.4"], "too many fields", "line 6: the row has 5 fields, the header 4"),
    ],
)
def test_a_bad_log_is_reported_with_line_and_reason(
    lines: list[str], kind: str | None, words: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "log.csv", lines)
    for reader in (ds.logs.read, ds.logs.survey):
        with pytest.raises(LogError) as caught:
            reader(path, arms=["a", "b"], reward_max=1.0, cost_max=1.0)
        assert words in str(caught.value)
        assert [row.kind for row in caught.value.bad] == ([kind] if kind else [])
        assert [row.line for row in caught.value.bad] == ([len(lines) - (lines[-2] == "")] if kind else [])
    repaired = write(tmp_path / "log.csv", [HEADER, *GOOD])  # without this fault the log is valid
    assert ds.logs.check(repaired, arms=["a", "b"]) == ()


def test_an_empty_file_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "log.csv").touch()
    with pytest.raises(LogError, match="it has no header"):
        ds.logs.read(tmp_path / "log.csv")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ds.logs.read(tmp_path / "nothing.csv")
    with pytest.raises(SettingError, match="a log must be a"):
        ds.logs.read([1, 2])
    (tmp_path / "log.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(LogError, match=r"log\.parquet cannot be read"):
        ds.logs.read(tmp_path / "log.parquet")


def test_every_bad_row_is_named_across_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With batches of three rows, line numbers continue and times are compared across batches."""
    monkeypatch.setattr(stream, "ROWS_AT_ONCE", 3)
    lines = [f"{t},a,{-1 if t % 5 == 0 else 1},0.5" for t in range(1, 31)]
    path = write(tmp_path / "log.csv", [HEADER, *lines])
    assert [row.line for row in ds.logs.check(path)] == [6, 11, 16, 21, 26, 31]
    lines[6] = "7,b,1,0.5"
    lines[3] = "2.5,a,1,0.5"
    found = ds.logs.check(write(tmp_path / "log.csv", [HEADER, *lines]))
    assert (5, "unsorted") in {(row.line, row.kind) for row in found}
    with pytest.raises(LogError, match="7 bad values"):
        ds.logs.read(path)


def test_reading_stops_after_too_many_bad_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bad value up to there is listed, and the last entry says where reading stopped."""
    monkeypatch.setattr(stream, "MAX_BAD_VALUES", 25)
    monkeypatch.setattr(stream, "ROWS_AT_ONCE", 10)
    path = write(tmp_path / "log.csv", [HEADER, *(f"{t},a,-1,0.5" for t in range(60))])
    with pytest.raises(LogError, match=r"lines 2, 3, 4, \.\.\. \(\d+\): reward must be") as caught:
        ds.logs.read(path)
    *named, last = caught.value.bad
    assert [row.line for row in named] == list(range(2, 2 + len(named)))
    assert 25 < len(named) < 60
    assert (last.kind, last.line) == ("stopped", 2 + len(named))
    assert ds.logs.check(path)[-1] == last


@pytest.mark.parametrize("arms", [["a"], ["a", "b"]])
def test_unknown_arms_do_not_reach_the_kernel(arms: list[str]) -> None:
    """A negative index must not write to memory before the first arm's cells."""
    frame = pl.DataFrame({"time": range(50), "arm": ["a"] + ["oops"] * 49, "reward": [0.5] * 50, "cost": [0.5] * 50})
    with pytest.raises(LogError, match="unknown arm"):
        ds.logs.survey(frame, arms=arms)
    cells = new_cells(1, 2)
    add_rows(cells, np.array([rows.UNKNOWN, -1, 0], dtype=np.int32), np.ones((3, 2)), 0)
    assert cells.pulls[0] == 1


def test_numbers_as_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Different prices are different arms, integers have no decimal point, and infinite arms are reported."""
    monkeypatch.setattr(stream, "ROWS_AT_ONCE", 2)
    prices = [9.0, None, 9.49, 9.0, 9.1]
    frame = pl.DataFrame({"time": range(5), "arm": prices, "reward": [0.5, 0, 0, 0, 0], "cost": [0.5, 0, 0, 0, 0]})
    log = ds.logs.read(frame)
    assert log.arms == ("9", "9.1", "9.49")
    assert log.arm.tolist() == [0, -1, 2, 0, 1]
    odd = frame.with_columns(arm=pl.Series([1.0, float("nan"), float("inf"), 1.0, None]))
    assert [(row.line, row.kind) for row in ds.logs.check(odd)] == [(2, "not finite"), (3, "not finite")]
    for names in (["1", "²"], ["--5", "6"], ["a[0]", "b"]):
        assert len(ds.logs.read(frame.with_columns(arm=pl.Series([*names, None, *names]))).arms) == 2


def test_a_file_is_read_by_its_name_alone(tmp_path: Path) -> None:
    for name in ("log[1].csv", "log*.parquet"):
        other = tmp_path / name.replace("[1]", "1").replace("*", "2")
        for path, reward in ((tmp_path / name, 0.1), (other, 0.9)):
            frame = pl.DataFrame({"time": [1], "arm": ["a"], "reward": [reward], "cost": [0.5]})
            (frame.write_csv if path.suffix == ".csv" else frame.write_parquet)(path)
        assert ds.logs.read(tmp_path / name).reward.tolist() == [0.1]


def test_a_truncated_row_is_not_a_skip(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", [HEADER, "1,a,0.5,0.1", "2", "3,,,", "4,a,1", "5,"])
    found = [(row.line, row.kind) for row in ds.logs.check(path)]
    assert found == [(3, "too few fields"), (5, "empty"), (6, "too few fields")]
    assert ds.logs.check(write(tmp_path / "log.csv", [HEADER, "1,a,0.5,0.1", "2,,,", "3,,,"])) == ()


def test_nanoseconds_and_invalid_first_times(tmp_path: Path) -> None:
    """Nanoseconds are compared exactly; an invalid first time does not hide the problems of the others."""
    lines = ["1700000000000000100,a,1,0.5", "1700000000000000100,a,1,0.4", "1700000000000000099,a,1,0.5"]
    path = write(tmp_path / "log.csv", [HEADER, *lines])
    assert [(row.line, row.kind) for row in ds.logs.check(path)] == [(4, "unsorted")]
    moments = pl.Series([1_700_000_000_000_000_000, 1_700_000_000_000_000_001]).cast(pl.Datetime("ns"))
    typed = pl.DataFrame({"time": moments, "arm": ["a", "a"], "reward": [1, 1], "cost": [0.5, 0.5]})
    assert ds.logs.check(typed) == ()
    for times in (["n/a", "2", "3"], ["n/a", "2024-01-31", "2024-02-01"]):
        path = write(tmp_path / "log.csv", [HEADER, *(f"{time},a,{-k // 2},0.5" for k, time in enumerate(times))])
        assert ds.logs.check(path)[0][::2] == (2, "not a number")
        assert {row.line for row in ds.logs.check(path)} == {2, 3, 4}


def test_misleading_headers_are_refused(tmp_path: Path) -> None:
    for lines, words in (
        (["time,arm,reward,cost,cost", "1,a,1,0.5,0.5"], "more than one column cost"),
        (["Time, arm,reward,cost", "1,a,1,0.5"], "Did you mean `Time` instead of `time`? Did you mean ` arm` instead"),
        (["Time, arm,reward,cost", "1,a,1,0.5"], "{'time': 'Time', 'arm': ' arm'} (--time Time --arm ' arm')"),
        (["Time,arm,Reward,cost", "1,a,1,0.5"], "lacks the columns time, reward; it has Time, arm, Reward, cost."),
        (["Time,Arm,Reward", "1,a,1"], "lacks the columns time, arm, reward"),
        (["time,reward:a,cost:a,cost:b", "1,1,0.5,0.5"], "lacks the column reward:b"),
        (["time\rarm", "1"], "ends its lines with carriage returns only"),
    ):
        path = tmp_path / "log.csv"
        path.write_text(("\r" if "\r" in lines[0] else "\n").join(lines), newline="")
        with pytest.raises(LogError) as caught:
            ds.logs.read(path)
        assert words in str(caught.value)
    path = write(tmp_path / "log.csv", [HEADER, *GOOD])
    with pytest.raises(LogError, match=r"must be separated by semicolons, but its header .* by commas"):
        ds.logs.read(path, separator=";")
    for separator in ("", "ab", "é", "\n"):
        with pytest.raises(SettingError, match="separator must be one character"):
            ds.logs.read(path, separator=separator)
    tabs = write(tmp_path / "tabs.csv", [line.replace(",", "\t") for line in (HEADER, *GOOD)])
    assert len(ds.logs.read(tabs, separator=r"\t")) == 4
    for wrong, words in (({"resources": []}, "at least one"), ({"arms": "ab"}, "list of names"), ({"arms": []}, "one")):
        with pytest.raises(SettingError, match=words):
            ds.logs.read(path, **wrong)


def test_numbers_in_their_own_units_and_names_in_capitals(tmp_path: Path) -> None:
    """Maxima are taken from the log; a wrong one is one line with a sufficient value; lengths are checked."""
    path = write(tmp_path / "log.csv", ["time,arm,reward,cost_usd,Cost_sec", "1,a,1,47.3,0.5", "2,b,0,12,0.5"])
    with pytest.raises(LogError) as caught:
        ds.logs.read(path, cost_max=[10.0, 1.0])
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert (
        "lines 2, 3 (2): cost_usd goes up to 47.3, above its cost_max 10; pass cost_max={'cost_usd': 47.3" in lines[1]
    )
    assert "(--cost-max cost_usd=47.3)" in lines[1]
    assert len(caught.value.bad) == 2
    for reader in (ds.logs.read, ds.logs.survey):
        taken = reader(path)
        assert (taken.resources, taken.reward_max, taken.cost_max) == (("cost_usd", "Cost_sec"), 1.0, (47.3, 0.5))
        assert taken.inferred == ("reward", "cost_usd", "Cost_sec")
        given = reader(path, cost_max={"Cost_sec": 1.0, "cost_usd": 47.3})  # the value of the message does
        assert (given.cost_max, given.inferred) == ((47.3, 1.0), ("reward",))
    np.testing.assert_allclose(ds.logs.survey(path).series[1].values, [[0.0, 12 / 47.3, 1.0]])
    with pytest.raises(
        SettingError, match=r"cost_max must be given once for each of the log's 2 resources \(cost_usd, "
    ):
        ds.logs.read(path, cost_max=[50.0])
    with pytest.raises(SettingError, match=r"budget must be given once for each .* got 3"):
        ds.advise(path, budget=[1.0, 2.0, 3.0], cost_max=50.0)
    with pytest.raises(SettingError, match="resources must not be reward"):
        ds.logs.read(path, resources=["reward"])


LLM_HEADER = "ts,model,ok,usd,seconds"
LLM_COLUMNS = {"time": "ts", "arm": "model", "reward": "ok"}
LLM_ROWS = [
    "2024-05-01T10:00:00,small,true,0.3,12",
    "2024-05-01T10:00:00,small,true,0.3,12",
    "2024-05-01T10:00:00,large,false,0.1,1.5",
    "2024-05-01T10:00:01,large,,0.2,",
    "2024-05-01T10:00:02,small,1,0.7,99",
]


def test_a_log_with_columns_of_other_names(tmp_path: Path) -> None:
    """Columns are mapped; messages use the names of the file; a column with the name of a mapped role is ignored."""
    path = write(tmp_path / "log.csv", [f"{LLM_HEADER},time", *(f"{row},x" for row in LLM_ROWS)])
    read = partial(ds.logs.read, path, resources=["usd", "seconds"])
    log = read(columns=LLM_COLUMNS, lost=True)
    assert (log.arms, log.resources) == (("large", "small"), ("usd", "seconds"))
    assert log.reward.tolist() == [1.0, 1.0, 0.0, 0.0, 1.0]
    np.testing.assert_array_equal(np.diff(log.time), [0.0, 0.0, 1.0, 1.0])  # equal times keep the order of the file
    assert log.cost_max == (0.7, 99.0)
    with pytest.raises(LogError, match=r"lacks the columns arm, reward; it has .* \(--arm MY_ARM"):
        read()
    with pytest.raises(LogError, match="lacks the column when; it has ts, model"):
        read(columns={"time": "when"})
    with pytest.raises(SettingError, match=r"columns must map time, arm, reward, propensity to .* got usd"):
        read(columns={"usd": "usd_total"})
    path = write(path, [LLM_HEADER, *LLM_ROWS[:3], "2024-04-01,small,often,0.3,12"])
    found = ds.logs.check(path, resources=["usd", "seconds"], columns=LLM_COLUMNS)
    assert {(row.column, row.reason.split()[0]) for row in found} == {("ts", "ts"), ("ok", "ok")}


def test_lost_outcomes_are_rounds_that_nothing_is_learnt_from(tmp_path: Path) -> None:
    """They are refused unless the caller says that outcomes were lost; their costs may be known or not."""
    path = write(tmp_path / "log.csv", [LLM_HEADER, *LLM_ROWS, "2024-05-01T10:00:03,,,,"])
    options = {"resources": ["usd", "seconds"], "columns": LLM_COLUMNS}
    with pytest.raises(LogError, match=r"line 5: ok is empty .* or pass lost=True \(--lost\)"):
        ds.logs.read(path, **options)  # type: ignore[arg-type]
    log = ds.logs.read(path, lost=True, **options)  # type: ignore[arg-type]
    assert log.arm.tolist() == [1, 1, 0, -1, 1, -1]
    assert (log.reward[3], log.costs[3].tolist(), log.lost) == (0.0, [0.0, 0.0], 1)
    for source, settings in ((path, {**options, "lost": True}), (log, {})):
        summary = ds.logs.survey(source, **settings)  # type: ignore[arg-type]
        assert (summary.rows, summary.skipped, summary.lost, summary.pulls.tolist()) == (6, 1, 1, [1, 3])


def test_repeated_rows_are_counted_and_dropped_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row repeats an earlier one if all columns are equal, also if another row or a batch's end is in between."""
    for size in (2, 3, 100):
        monkeypatch.setattr(stream, "ROWS_AT_ONCE", size)
        lines = ["1,a,1,0.5", "1,b,1,0.5", "1,a,1,0.5", "2,a,1,0.5", "2,,,", "2,,,", "3,a,1,0.4", "3,a,1,0.4"]
        path = write(tmp_path / "log.csv", [HEADER, *lines])
        kept, dropped = ds.logs.read(path), ds.logs.read(path, drop_duplicates=True)
        assert (len(kept), kept.repeated, len(dropped), dropped.repeated) == (8, 2, 6, 2)  # skips are not repeats
        assert dropped.arm.tolist() == [0, 1, 0, -1, -1, 0]
        summary = ds.logs.survey(path, drop_duplicates=True)
        assert (summary.rows, summary.repeated, summary.pulls.tolist()) == (6, 2, [3, 1])


def test_types_of_columns() -> None:
    frame = pl.DataFrame({"time": [1, 2], "arm": ["a", "b"], "reward": ["0.5", "1"], "cost": [0, 1]})
    for kind in (pl.Categorical(), pl.Enum(["0.5", "1"])):
        assert ds.logs.read(frame.with_columns(pl.col("reward").cast(kind))).reward.tolist() == [0.5, 1.0]
    for name, strange in (
        ("reward", pl.struct("cost")),
        ("cost", pl.concat_list("cost")),
        ("reward", pl.date(1970, 1, 1)),
        ("time", pl.struct("cost")),
    ):
        with pytest.raises(LogError, match=f"the column {name} must hold numbers"):
            ds.logs.read(frame.with_columns(strange.alias(name)))
    given = frame.with_columns(pl.Series("propensity", [0.5, 7.0]), pl.Series("arm", ["a", None]), reward=0, cost=0)
    assert [(row.line, row.kind) for row in ds.logs.check(given)] == [(2, "not a probability")]


def test_outcomes_must_agree_with_the_table() -> None:
    columns = {"time": [1, 2], "arm": ["a", "b"], "reward": [1.0, 0.3], "cost": [0.5, 0.5]}
    table = {"reward:a": [1.0, 0.0], "cost:a": [0.5, 0.5], "reward:b": [0.0, 0.2], "cost:b": [0.5, 0.5]}
    found = ds.logs.check(pl.DataFrame(columns | table))
    assert [(row.line, row.column, row.kind) for row in found] == [(2, "reward", "not the table's")]


def test_a_written_log_is_read_back(tmp_path: Path) -> None:
    world = ds.Instance.stationary([2.0, 3.0], [[5.0, 1.0]], 300, 99, "uniform", reward_max=4.0, cost_max=10.0)
    log = ds.gather(world, ds.NaiveUCB(scale=0.1), seed=3)
    for name in ("log.csv", "log.parquet"):
        log.write(tmp_path / name)
        again = ds.logs.read(tmp_path / name, reward_max=4.0, cost_max=10.0)
        for field in ("time", "arm", "reward", "costs", "propensity"):
            np.testing.assert_array_equal(getattr(again, field), getattr(log, field))
        assert (again.arms, again.resources) == (log.arms, log.resources)
    with pytest.raises(LogError, match=r"pass reward_max=3\.997 \(--reward-max 3\.997\)"):
        ds.logs.read(tmp_path / "log.csv", reward_max=1.0)


def test_columns_dates_and_numeric_arms(tmp_path: Path) -> None:
    lines = ["time,arm,reward,seconds", "2024-01-31 06:30,10,1,0.5", "2024-01-31T07:00:00Z,9,0,0.5", "2024-02-01,,,"]
    log = ds.logs.read(write(tmp_path / "log.csv", lines), resources=["seconds"])
    assert log.arms == ("9", "10")  # by value, not alphabetically
    np.testing.assert_array_equal(np.diff(log.time), [1800.0, 17 * 3600.0])
    tabs = write(tmp_path / "tabs.csv", [line.replace(",", "\t") for line in lines])
    assert len(ds.logs.read(tabs, resources=["seconds"], separator="\t")) == 3
    typed = pl.DataFrame({"time": [1, 2], "arm": [0.0, None], "reward": [1.0, None], "cost": [1, 0]})
    assert ds.logs.read(typed).arms == ("0",)  # pandas stores integers with missing values as floats
    with pytest.raises(LogError, match="lacks a column for each resource"):
        ds.logs.read(write(tmp_path / "log.csv", lines))
    with pytest.raises(SettingError, match="arms must differ"):
        ds.logs.read(typed, arms=["0", "0"])
    with pytest.raises(OutOfRangeError, match="cost_max must be above 0"):
        ds.logs.read(typed, cost_max=0.0)
    with pytest.raises(LogError, match="not a probability"):
        ds.logs.read(typed.with_columns(propensity=pl.Series([0.0, None])))


def test_a_table_is_replayed_row_by_row() -> None:
    """Every policy's outcome in round t is the table's row t; a log without full information is refused."""
    rng = np.random.default_rng(0)
    table = rng.random((50, 2, 2))
    names = ["reward:a", "cost:a", "reward:b", "cost:b"]
    frame = pl.DataFrame({"time": np.arange(50)} | {name: table.reshape(50, 4)[:, k] for k, name in enumerate(names)})
    log = ds.logs.read(frame)
    world = log.as_instance(budget=1000.0)
    for arm in (0, 1):
        run = ds.simulate(world, ds.policies.AlwaysArm(arm), trials=2, seed=0)
        np.testing.assert_allclose(run.reward, table[:, arm, 0].sum())
        np.testing.assert_allclose(run.spent[:, 0], table[:, arm, 1].sum())
    np.testing.assert_array_equal(log.to_frame(), frame)
    np.testing.assert_array_equal(ds.logs.survey(frame, reward_max=1.0, cost_max=1.0).series[1].values, table[:, 1])
    with pytest.raises(CannotAnswerError, match="a replay needs the outcomes of every arm"):
        ds.gather(ds.instances.example_1(horizon=20)).as_instance(1.0)
    with pytest.raises(LogError, match="lacks the column cost:b"):
        ds.logs.read(frame.drop("cost:b"))


def test_a_table_with_contexts_is_replayed_with_them() -> None:
    """A policy that sees them earns nearly all; shuffled contexts, the planted fault, are worth nothing."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["chat", "code"], size=1_500)
    good = np.where(kind == "chat", 1.0, 0.0)
    columns = {"reward:a": good, "cost:a": 0.5, "reward:b": 1.0 - good, "cost:b": 0.25, "context_kind": kind}
    frame = pl.DataFrame({"time": np.arange(1_500), **columns})
    log = ds.logs.read(frame, cost_max=1.0)
    world = log.as_instance(budget={"cost": 1_000.0})
    assert isinstance(world, ds.ContextualInstance)
    assert (world.noise, world.problem.arm_names, world.problem.encoder) == ("deterministic", log.arms, log.features)
    run = ds.simulate(world, ds.policies.AlwaysArm("a"), trials=1)
    assert (run.reward[0], run.spent[0, 0]) == (good.sum(), 750.0)
    ours = ds.simulate(world, ds.LinearBwK(), trials=2).reward.mean() / 1_500
    assert log.contexts is not None
    shuffled = dataclasses.replace(log, contexts=rng.permutation(log.contexts)).as_instance(1_000.0)
    assert ours > 0.9
    assert ds.simulate(shuffled, ds.LinearBwK(), trials=2).reward.mean() / 1_500 < 0.6
    plain = dataclasses.replace(log, contexts=None, features=None).as_instance(1_000.0)
    assert isinstance(plain, ds.Instance)


@pytest.mark.parametrize("size", [7, 64, 65, 200, 1000])
def test_cells_against_a_simple_implementation(size: int) -> None:
    """At most 64 cells, each with the same number of pulls, in order; the last pulls are in a partial cell."""
    rng = np.random.default_rng(size)
    arm, outcomes = rng.integers(-1, 2, size).astype(np.int32), rng.random((size, 2))
    cells = new_cells(2, 2, most=64)
    for first in range(0, size, 10):
        add_rows(cells, arm[first : first + 10], outcomes[first : first + 10], first)
    for i in range(2):
        pulls = np.flatnonzero(arm == i)
        width = 1
        while len(pulls) // width >= 64:
            width *= 2
        full = len(pulls) // width
        expected = outcomes[pulls[: full * width]].reshape(full, width, 2).sum(axis=1)
        np.testing.assert_allclose(cells.sums[i, :full], expected)
        np.testing.assert_allclose(cells.rounds[i, :full], pulls[: full * width].reshape(full, width).sum(axis=1))
        counts = (cells.full[i], cells.partial[i], cells.size[i], cells.pulls[i])
        assert counts == (full, len(pulls) - full * width, width, len(pulls))


def test_survey_of_file_frame_and_log_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "ROWS_AT_ONCE", 111)
    log = ds.gather(ds.instances.example_2(horizon=1_000), seed=0)
    log.write(tmp_path / "log.csv")
    summaries = [ds.logs.survey(source, most_cells=256) for source in (log, log.to_frame(), tmp_path / "log.csv")]
    for summary in summaries[1:]:
        assert (summary.rows, summary.skipped, summary.arms) == (1_000, 0, ("0", "1"))
        for one, other in zip(summary.series, summaries[0].series, strict=True):
            np.testing.assert_array_equal(one.values, other.values)
            np.testing.assert_array_equal(one.rounds, other.rounds)
    with pytest.raises(CannotAnswerError, match="arm 7 was never played"):
        ds.logs.survey(log.to_frame(), arms=["0", "1", "7"])
    idle = pl.DataFrame({"time": [1], "arm": pl.Series([None], dtype=pl.String), "reward": [0.0], "cost": [0.0]})
    with pytest.raises(CannotAnswerError, match="all 1 rounds of the log were skipped or lost"):
        ds.logs.survey(idle)


def test_a_gathered_log_has_the_means_of_its_instance() -> None:
    """Means are within 5 standard errors (each fails once in 10^6 seeds), and no round is skipped."""
    world = ds.instances.example_2(horizon=4_000)
    log = ds.gather(world, seed=5)
    for phase in (0, 1):
        for arm in (0, 1):
            rows = (world.phase == phase) & (log.arm == arm)
            means = np.column_stack([log.reward, log.costs])[rows].mean(axis=0)
            true = np.array([world.rewards[phase, arm], *world.costs[phase, :, arm]])
            assert (np.abs(means - true) <= 5 * np.sqrt(true * (1 - true) / rows.sum())).all()
    np.testing.assert_array_equal(log.propensity, 0.5)
    assert (log.arm >= 0).all()


def test_import_loads_no_heavy_packages() -> None:
    """Polars, ruptures, Matplotlib, SciPy's solvers and pandas are imported where they are used."""
    heavy = ("polars", "ruptures", "matplotlib", "scipy.optimize", "pandas")
    code = f"import sys, driftsack; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
