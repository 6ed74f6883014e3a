"""Summaries of a store's trials."""

from __future__ import annotations

from typing import Final

import polars as pl

GROUP: Final = ("instance", "policy")


def summary(trials: pl.DataFrame) -> pl.DataFrame:
    """Compute means, standard errors and shares for each instance and policy.

    Args:
        trials: One row per trial, as :func:`driftsack.sweeps.load` returns them.

    Returns:
        One row per instance and policy, in the order of the trials. ``optimum_share`` is the mean reward divided by
        LP-Dynamic and ``optimum_share_se`` its standard error, both null where LP-Dynamic is 0; ``spent_share`` is the
        mean share of the most used budget. The standard errors of a single trial are 0, since its spread is unknown.
    """
    most_used = (pl.col("spent") / pl.col("budget")).list.eval(pl.element().fill_nan(0.0)).list.max()
    optimum = pl.when(pl.col("optimum").first() > 0).then(pl.col("optimum").first())
    return (
        trials.with_columns(share=most_used)
        .group_by(*GROUP, maintain_order=True)
        .agg(
            trials=pl.len(),
            reward=pl.col("reward").mean(),
            reward_se=error_of("reward"),
            optimum=pl.col("optimum").first(),
            optimum_share=pl.col("reward").mean() / optimum,
            optimum_share_se=error_of("reward") / optimum,
            stopping_time=pl.col("stopping_time").mean(),
            stopping_time_se=error_of("stopping_time"),
            spent_share=pl.col("share").mean(),
            lp_rescues=pl.col("lp_rescues").sum(),
        )
    )


def error_of(column: str) -> pl.Expr:
    """Standard error of a column's mean, as a Polars expression; 0 for a single value."""
    return (pl.col(column).std() / pl.len().sqrt()).fill_null(0.0)
