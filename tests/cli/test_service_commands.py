"""The commands of the service, called as from a shell."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

import driftsack.policies
from driftsack.cli import app
from driftsack.cli.serve_settings import merged
from driftsack.service.projections import what_if
from driftsack.service.store import open_store
from driftsack.service.store.interface import StoreError
from driftsack.service.web.server import Settings
from tests.support.live_service import Live, serving
from tests.support.paths import ROOT

EXCHANGE = "/v1/campaigns/chat/exchange"


class BackedUp(NamedTuple):
    """Backups of a store that was in use, and what it had acknowledged."""

    path: str
    early: str  # before the outcomes were told
    key: str
    acknowledged: dict[int, tuple[str, str, float | None, str]]  # state, arm, reward and costs by decision


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> BackedUp:
    """A store with some decisions, copied while it was in use."""
    directory = tmp_path_factory.mktemp("cli")

    def copied(name: str) -> str:
        result = CliRunner().invoke(app, ["backup", str(directory / name), "--store", str(directory / "s.db")])
        assert result.exit_code == 0, result.output
        return str(directory / name)

    with serving(str(directory / "s.db")) as live:
        live.open("chat", budget={"usd": "100"})
        asked = [d for d in live.call("POST", EXCHANGE, {"ask": 30})[1]["decisions"] if not d["skipped"]]
        early = copied("early.db")
        told = {d["decision"]: (k / 100, f"0.0{k % 9 + 1}") for k, d in enumerate(asked[:-3])}
        tells = [{"decision": n, "reward": reward, "costs": {"usd": usd}} for n, (reward, usd) in told.items()]
        assert all(one["problem"] is None for one in live.call("POST", EXCHANGE, {"tells": tells})[1]["told"])
        acknowledged: dict[int, tuple[str, str, float | None, str]] = {
            d["decision"]: ("told", d["arm"], *told[d["decision"]])
            if d["decision"] in told
            else ("pending", d["arm"], None, "0")
            for d in asked
        }
        path = copied("copy.db")
        again = CliRunner().invoke(app, ["backup", path, "--store", str(directory / "s.db")])
        assert again.exit_code == 1
    return BackedUp(path, early, live.key, acknowledged)


@pytest.fixture(scope="module")
def store(backed_up: BackedUp) -> str:
    """The file of a backup."""
    return backed_up.path


@pytest.mark.parametrize("too_early", [False, True])
def test_a_restored_backup_goes_on(backed_up: BackedUp, tmp_path: Path, too_early: bool) -> None:
    """The drill: serve a copy of the backup; every decision that was acknowledged is there, with its outcome.

    The planted fault: a backup from before the outcomes were told.
    """
    copy = tmp_path / "restored.db"
    copy.write_bytes(Path(backed_up.early if too_early else backed_up.path).read_bytes())
    with serving(str(copy)) as live:
        assert live.app.service.keeper.owned["chat"].campaign.book.divergences == 0
        found = {}
        for number in backed_up.acknowledged:
            status, one = live.call("GET", f"/v1/campaigns/chat/decisions/{number}", key=backed_up.key)
            assert status == 200, one
            found[number] = (one["state"], one["arm"], one["reward"], one["charged"]["usd"])
        assert {state for state, *_ in backed_up.acknowledged.values()} == {"told", "pending"}
        assert (found == backed_up.acknowledged) != too_early
        status, decision = live.call("POST", "/v1/campaigns/chat/decisions", {}, key=backed_up.key)
        assert status == 200
        assert decision["decision"] == 31


def test_the_systemd_unit_calls_commands_that_exist() -> None:
    """It compiles before it serves."""
    unit = (ROOT / "deploy" / "driftsack.service").read_text()
    calls = [line.partition("=")[2].lstrip("-").split() for line in unit.splitlines() if line.startswith("Exec")]
    assert [call[1] for call in calls] == ["compile", "serve"]
    for call in calls:
        assert call[0] == "/opt/driftsack/bin/driftsack"
        assert CliRunner().invoke(app, [call[1], "--help"]).exit_code == 0
    assert all(policy in driftsack.policies.__all__ for policy in calls[0][2:])
    assert CliRunner().invoke(app, ["precompile", "--help"]).exit_code != 0


def test_why_and_replay(store: str) -> None:
    found = CliRunner().invoke(app, ["why", "chat", "3", "--store", store])
    assert found.exit_code == 0, found.output
    assert "is the recorded one" in found.stdout
    page = json.loads(CliRunner().invoke(app, ["why", "chat", "3", "--store", store, "--json"]).stdout)
    assert (page["decision"], page["same"], page["open"]) == (3, True, ["small", "large"])
    whole = json.loads(CliRunner().invoke(app, ["replay", "chat", "--store", store, "--json"]).stdout)
    assert (whole["decisions"], whole["divergences"], whole["same"]) == (30, 0, True)


def test_replay_notices_a_changed_journal(store: str, tmp_path: Path) -> None:
    """The planted fault: one byte of an outcome is changed."""
    copy = tmp_path / "changed.db"
    copy.write_bytes(Path(store).read_bytes())
    with closing(sqlite3.connect(copy)) as file, file:
        file.execute("DROP TRIGGER segment_kept")
        body = file.execute("SELECT body FROM segment WHERE first = 2").fetchone()[0]
        file.execute("UPDATE segment SET body = ? WHERE first = 2", (body.replace(b"\x00", b"\x01", 1),))
    found = CliRunner().invoke(app, ["replay", "chat", "--store", str(copy)])
    assert found.exit_code == 1
    assert "was changed" in " ".join(found.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["why", "nobody", "3"], "has no campaign"),
        (["why", "chat", "999"], "has made decisions 1 to 30"),
        (["replay", "chat", "--store", "nothing.db"], "does not exist"),
        (["compile", "Nobody"], "policy must be one of"),
        (["serve", "--config", "nothing.toml"], "nothing.toml"),
    ],
)
def test_wrong_input_gives_one_line(arguments: list[str], words: str, store: str) -> None:
    given = (
        arguments if "--store" in arguments or arguments[0] in ("compile", "serve") else [*arguments, "--store", store]
    )
    found = CliRunner().invoke(app, given)
    assert found.exit_code == 1
    assert words in " ".join(found.stderr.split())
    assert "Traceback" not in found.output


@pytest.mark.parametrize("command", ["serve", "why", "replay", "backup", "archive", "compile"])
def test_help_shows_an_example(command: str) -> None:
    assert "Example" in CliRunner().invoke(app, [command, "--help"]).stdout


def test_settings_come_from_options_the_environment_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "driftsack.toml"
    file.write_text('[serve]\nport = 1\nhost = "a"\nrate = 5\n')
    monkeypatch.setenv("DRIFTSACK_PORT", "2")
    monkeypatch.setenv("DRIFTSACK_LEASE", "20")
    found = Settings(**merged({"host": "b", "store": None}, file, Settings._fields))
    assert (found.host, found.port, found.rate, found.lease) == ("b", 2, 5.0, 20.0)
    assert merged({"port": 0, "rate": 0.0}, None, Settings._fields)["port"] == 0


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("DRIFTSACK_LOG_LEVEL", "foo", "DRIFTSACK_LOG_LEVEL must be one of debug, info, warning, error, got 'foo'."),
        ("DRIFTSACK_PORT", "99999", "DRIFTSACK_PORT must be an integer from 0 to 65535, got '99999'."),
        ("DRIFTSACK_PORT", "many", "DRIFTSACK_PORT must be an integer from 0 to 65535, got 'many'."),
        ("DRIFTSACK_LEASE", "-1", "DRIFTSACK_LEASE must be a number of seconds above 0, got '-1'."),
        ("DRIFTSACK_LEASE", "nan", "DRIFTSACK_LEASE must be a number of seconds above 0, got 'nan'."),
        ("DRIFTSACK_RATE", "-1", "DRIFTSACK_RATE must be a number of requests a second, or 0 for no limit, got '-1'."),
        (
            "DRIFTSACK_SNAPSHOT_EVERY",
            "0",
            "DRIFTSACK_SNAPSHOT_EVERY must be an integer of at least 1, got",
        ),
    ],
)
def test_a_wrong_variable_is_named_in_one_line(
    variable: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["serve"])
    assert found.exit_code == 1
    assert words in " ".join(found.stderr.split())
    assert not list(tmp_path.iterdir())  # nothing was started


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"serve = 3", "must be a table, [serve], with the settings; got 3."),
        (b"[serv]\nport = 1", "must have one table, [serve], with the settings; got serv."),
        (b"port = 1\n[serve]", "must have one table, [serve], with the settings; got port."),
        (b"[serve]\nprot = 1", "got prot."),
        (b"[serve]\nport = true", "must be an integer from 0 to 65535, got True."),
        (b"[serve]\nport = 80.5", "must be an integer from 0 to 65535, got 80.5."),
        (b"[serve]\nhost = 3", "must be a string, got 3."),
        (b"[serve]\nhost = 'caf\xe9'", "must be TOML in UTF-8"),
        (b"[serve", "must be TOML in UTF-8"),
    ],
)
def test_a_wrong_file_of_settings_is_named_in_one_line(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "driftsack.toml"
    file.write_bytes(content)
    found = CliRunner().invoke(app, ["serve", "--config", str(file)])
    assert found.exit_code == 1
    said = " ".join(found.stderr.split())
    assert words in said
    assert file.name in said.replace(" ", "")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_backup_into_a_folder_that_does_not_exist_is_one_line(store: str, tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["backup", str(tmp_path / "nowhere" / "b.db"), "--store", store])
    assert found.exit_code == 1
    assert "the backup must be a file that can be written" in " ".join(found.stderr.split())
    with (
        closing(open_store(store, read_only=True)) as opened,
        pytest.raises(StoreError, match="could not be written"),
    ):
        opened.backup(tmp_path / "nowhere" / "b.db")


def test_the_image_compiles_policies_with_and_without_default_settings() -> None:
    """The command of the Dockerfile, which failed on a policy that needs settings."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    words = next(line.split() for line in lines if line.startswith("RUN driftsack compile"))
    found = CliRunner().invoke(app, words[2:])
    assert found.exit_code == 0, found.output
    assert words[3:] == ["Adaptive", "LinearBwK", "SlidingWindowUCB"]
    assert [line.partition(":")[0] for line in found.stdout.splitlines()] == words[3:]


def test_everything_of_a_policy_is_compiled_in_processes() -> None:
    """The command of ``make kernels``, here for two policies."""
    found = CliRunner().invoke(app, ["compile", "--all", "UniformRandom", "AlwaysArm"])
    assert found.exit_code == 0, found.output
    assert {line.partition(":")[0] for line in found.stdout.splitlines()} == {"AlwaysArm", "UniformRandom"}
    wrong = CliRunner().invoke(app, ["compile", "--all", "AlwaysLeg"])
    assert wrong.exit_code == 1
    assert "AlwaysLeg" in wrong.stderr


def play(live: Live, times: int, usd: str = "0.01") -> int:
    """Ask a thousand times and tell that every arm but the small one earns 1; return how often the large one was."""
    large = 0
    for _ in range(times):
        found = live.call("POST", EXCHANGE, {"ask": 1000})[1]["decisions"]
        tells = [
            {"decision": d["decision"], "reward": float(d["arm"] != "small"), "costs": {"usd": usd}}
            for d in found
            if not d["skipped"]
        ]
        assert all(told["problem"] is None for told in live.call("POST", EXCHANGE, {"tells": tells})[1]["told"])
        large += sum(d["arm"] == "large" for d in found)
    return large


def test_what_if_leaves_out_arms_that_were_added_later(tmp_path: Path) -> None:
    """The same policy on the first arms earns what it did before the third one came, within 5 standard errors.

    One that took the outcomes of the third arm as its own would earn half as much again.
    """
    path = str(tmp_path / "s.db")
    with serving(path) as live:
        live.open("chat", budget={"usd": "1000"}, horizon=8000, slots=3)
        before = play(live, 2) / 2000
        assert live.call("POST", "/v1/campaigns/chat/arms", {"name": "another"})[0] in (200, 201)
        play(live, 6)
    command = ["campaign", "what-if", "chat", "--policy", "UniformRandom", "--trials", "5", "--store", path, "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["rounds"] == 8000
    assert abs(found["reward"] - before) < 5 * max(found["reward_se"], 0.01)
    assert found["campaign"] > before + 0.05
    with pytest.MonkeyPatch.context() as patch:  # the planted fault: the outcomes stay, as those of the large arm
        patch.setattr(
            what_if, "_without_added", lambda log, _: replace(log, arms=log.arms[:2], arm=log.arm.clip(max=1))
        )
        fault = CliRunner().invoke(app, command)
    assert fault.exit_code == 1
    assert "propensities" in " ".join(fault.stderr.split())


def test_what_if_accepts_a_cost_above_its_maximum(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with serving(path) as live:
        live.open("chat", budget={"usd": "1000"}, horizon=8000)
        play(live, 1, usd="0.25")  # more than its maximum, 0.1
    command = ["campaign", "what-if", "chat", "--policy", "UniformRandom", "--trials", "2", "--store", path, "--json"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["rounds"] == 1000


def test_what_if_agrees_with_what_was_earned(tmp_path: Path) -> None:
    """The policy that wrote the journal would earn what it earned, within 5 standard errors."""
    path = str(tmp_path / "s.db")
    with serving(path) as live:
        live.open("chat", budget={"usd": "1000"}, horizon=4000)
        play(live, 4)
    command = ["campaign", "what-if", "chat", "--trials", "5", "--store", path, "--json"]
    same = json.loads(CliRunner().invoke(app, [*command, "--policy", "UniformRandom"]).stdout)
    assert abs(same["reward"] - same["campaign"]) < 5 * max(same["reward_se"], 0.01)
    found = CliRunner().invoke(app, ["campaign", "what-if", "chat", "--policy", "Nobody", "--store", path])
    assert found.exit_code == 1
    assert "policy must be one of" in " ".join(found.stderr.split())
