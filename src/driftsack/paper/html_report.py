"""Write the report on the reproduced paper: ``report.html``, ``claims.csv`` and ``table.csv``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from driftsack.core.text import number
from driftsack.paper.experiments import SELECTION_SEED
from driftsack.paper.figures import CAPTIONS
from driftsack.paper.judging import JudgedClaim, Verdict
from driftsack.plot.page import Badge, heading, page, paragraph, picture, table, versions

if TYPE_CHECKING:
    from driftsack.paper.reproduction import Reproduction

BADGES: Final = {
    Verdict.HOLDS: Badge("✓ holds", "good"),
    Verdict.FAILS: Badge("✗ fails", "bad"),
    Verdict.UNDECIDED: Badge("? undecided", "neutral"),
}


def write_report(reproduction: Reproduction, directory: Path) -> None:
    """Write the report and the tables to the directory of the figures."""
    claims_table(reproduction.claims).write_csv(directory / "claims.csv")
    reproduction.table.write_csv(directory / "table.csv")
    rewards = reproduction.table.select(
        "setting", "instance", "policy", "reward", "reward_se", "optimum", "stopping_time"
    )
    parts = [
        heading("What was run"),
        table([], facts(reproduction)),
        heading("Claims"),
        paragraph(
            "A claim holds or fails at two standard errors; in between it is undecided. The printed setting uses the "
            "constants of the paper; the calibrated setting was selected, once for the whole paper, as the point of a "
            f"grid at which most claims hold with seed {SELECTION_SEED}; its counts with that seed are biased upwards."
        ),
        side_by_side(reproduction.claims, list(reproduction.settings)),
        heading("Figures"),
        *(picture(directory / f"{name}.png", caption) for name, caption in CAPTIONS.items()),
        heading("Rewards"),
        table(rewards.columns, rewards.iter_rows()),
    ]
    lead = "S. Liu, J. Jiang and X. Li, Non-stationary Bandits with Knapsacks (2022): figures and claims, recomputed."
    reproduction.report.write_text(page("The paper's experiments", lead, parts), encoding="utf-8")


def claims_table(claims: Sequence[JudgedClaim]) -> pl.DataFrame:
    """The claims as a table, one row per claim and setting."""
    rows = [
        (claim.setting or "both", claim.name, str(claim.verdict), claim.sentence, claim.numbers_text())
        for claim in claims
    ]
    return pl.DataFrame(rows, schema=["setting", "claim", "verdict", "sentence", "numbers"], orient="row")


def facts(reproduction: Reproduction) -> list[tuple[str, str]]:
    """Settings, seed, versions and time taken."""
    speed = reproduction.speed
    cells = f"{reproduction.cells_played} cells were played, {reproduction.cells_kept} were kept from earlier runs"
    rows = [(f"setting: {name}", str(setting)) for name, setting in reproduction.settings.items()]
    rows += [
        ("trials of each policy on each instance", number(reproduction.trials)),
        ("rounds", number(reproduction.horizon)),
        ("seed", str(reproduction.seed)),
        ("time taken", f"{reproduction.seconds:.1f} s; {cells}"),
        ("versions", versions()),
    ]
    if speed.ratio is not None:
        hours = (
            f"about {number(speed.plain_seconds / 3600, digits=2)} h for the {number(speed.rounds)} rounds with an LP"
        )
        measured = f"{number(1e3 * speed.plain_round_seconds, digits=2)} ms per round, measured on a slice"
        rows.append(("a Python + linprog loop", f"{hours}, {number(speed.ratio)} times as long ({measured})"))
    return rows


def side_by_side(claims: Sequence[JudgedClaim], settings: Sequence[str]) -> str:
    """A table with one row per claim and one verdict per setting."""
    rows: dict[str, list[Any]] = {}
    for claim in claims:
        row = rows.setdefault(claim.name, [claim.sentence])
        row += [BADGES[claim.verdict], claim.numbers_text()]
        if claim.setting is None:
            row += [BADGES[claim.verdict], "the same"] * (len(settings) - 1)
    columns = [title for name in settings for title in (name, "numbers, ± standard errors")]
    return table(["claim of the paper", *columns], rows.values())
