"""The intervals of the advice hold the truth as often as they say; see ``python -m lab advice-intervals``."""

from __future__ import annotations

import pytest

from driftsack.benchmarks import lp_dynamic
from lab.advice_intervals import optimum_interval, optimum_rows, worlds


@pytest.mark.slow
def test_the_optimum_lies_in_its_interval() -> None:
    """Of 36 intervals of 95%, fewer than 30 hold the truth in 1 of 300 cases; with a third of the width, about 17."""
    rows = optimum_rows(12, progress=lambda _: None)
    assert sum(float(row["covered"]) * 12 for row in rows) > 29.5, rows


def test_the_interval_is_about_four_standard_errors_wide() -> None:
    """That of one log of Example 3, whose optimum has a standard error of about 19."""
    low, high = optimum_interval(worlds()["when"], seed=0)
    assert low < lp_dynamic(worlds()["when"]).value < high
    assert 55 < high - low < 110
