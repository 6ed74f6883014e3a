"""The bars of ``Adaptive``: nowhere below another checkout, and few skips after an absurd bill.

Both versions play the same problems in processes of their own. A difference is given in percent of what the other
version earns, with its standard error over problems. A bar of a comparison holds unless the difference is below it by
more than two standard errors. In each section a planted competitor must miss the bar.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError
from driftsack.core.stamp import PACKAGE
from driftsack.core.statistics import standard_error
from lab.adaptive.bills import AFTER, MULTIPLES, ROUNDS, extra_skips
from lab.adaptive.play import SIZES
from lab.adaptive.problems import SECTIONS
from lab.speed.timing import Progress
from lab.speed.versions import environment

LOWEST: Final = -0.2  # percent below the other version
MOST_SKIPS: Final = 0.02 * AFTER
ROOT: Final = Path(__file__).parents[2]
ADAPTIVE, PLANTED = "adaptive", "planted"
TITLE: Final = "Adaptive beside another version"
Row = dict[str, Any]


def adaptive_rows(other: Path, size: str, seed: int, progress: Progress) -> list[Row]:
    """Compare this version with the one in the directory ``other``, the ``src`` of another checkout."""
    if not (other / "driftsack" / "__init__.py").is_file():
        raise SettingError(
            f"the directory {other} must contain the package driftsack, such as src of another checkout."
        )
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for section in SECTIONS:
            played = {}
            for name, version, player in (
                ("other", other.resolve(), ADAPTIVE),
                ("this", PACKAGE.parent, ADAPTIVE),
                (PLANTED, PACKAGE.parent, PLANTED),
            ):
                progress(f"{section}: {name}")
                played[name] = play_in(version, Path(directory) / version.name, section, size, seed, player)
            rows += compared(section, played["this"], played["other"], played[PLANTED])
    return rows + bill_rows(SIZES[size].runs, seed, progress)


def play_in(version: Path, cache: Path, section: str, size: str, seed: int, player: str) -> dict[str, list[float]]:
    """Play a section with a version in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "lab.adaptive.play", section, size, str(seed), player],
        check=True,
        cwd=ROOT,
        env=environment(version, cache),
        capture_output=True,
        text=True,
    )
    played: dict[str, list[float]] = json.loads(done.stdout)
    return played


def compared(
    section: str,
    this: Mapping[str, Sequence[float]],
    other: Mapping[str, Sequence[float]],
    planted: Mapping[str, Sequence[float]],
) -> list[Row]:
    """One row for each group of problems, and one for the planted competitor on all of them."""
    rows = [row_of(group, percent(rewards, other[group])) for group, rewards in this.items()]
    worse = np.concatenate([percent(rewards, other[group]) for group, rewards in planted.items()])
    return [*rows, rejected(row_of(f"{section}: planted, explores too much", worse))]


def percent(rewards: Sequence[float], of: Sequence[float]) -> Floats:
    """By how many percent each reward exceeds another.

    >>> percent([110.0, 45.0], [100.0, 50.0]).round(6).tolist()
    [10.0, -10.0]
    """
    return np.asarray(100.0 * (np.asarray(rewards) / np.asarray(of) - 1.0), dtype=np.float64)


def row_of(figure: str, differences: Floats) -> Row:
    """A row of a comparison.

    >>> row_of("a group", np.array([-1.0, -1.1, -0.9]))["holds"]
    'no'
    """
    error = standard_error(differences) if len(differences) > 1 else 0.0
    mean = float(differences.mean())
    return {
        "figure": figure,
        "problems": len(differences),
        "seen": round(mean, 2),
        "± se": round(error, 2),
        "bar": f"≥ {LOWEST:g}%",
        "holds": "yes" if mean + 2.0 * error >= LOWEST else "no",
    }


def bill_rows(runs: int, seed: int, progress: Progress) -> list[Row]:
    """The mean number of skips after each bill."""
    rows = []
    seeds = range(1_000 * seed, 1_000 * seed + runs)
    for player in (ADAPTIVE, PLANTED):
        for multiple in MULTIPLES if player == ADAPTIVE else MULTIPLES[-1:]:
            for at in ROUNDS:
                progress(f"a bill of {multiple:g} times the mean in round {at}: {player}")
                more = extra_skips(player, seeds, multiple, at)
                mean, error = float(more.mean()), standard_error(more) if runs > 1 else 0.0
                row = {
                    "figure": f"skips after a bill of {multiple:g} times the mean in round {at}",
                    "problems": runs,
                    "seen": round(mean, 2),
                    "± se": round(error, 2),
                    "bar": f"≤ {MOST_SKIPS:g} of {AFTER}",
                    "holds": "yes" if mean - 2.0 * error <= MOST_SKIPS else "no",
                }
                rows.append(row if player == ADAPTIVE else rejected({**row, "figure": f"planted: {row['figure']}"}))
    return rows


def rejected(row: Row) -> Row:
    """The row of a planted competitor, which holds if its bar is missed."""
    return {**row, "bar": f"not {row['bar']}", "holds": "no" if row["holds"] == "yes" else "yes"}
