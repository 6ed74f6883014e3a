"""From trials to tables: pure functions of what a store holds."""

from __future__ import annotations

from typing import Final

import polars as pl

GROUP: Final = ("instance", "policy")


def summary(trials: pl.DataFrame) -> pl.DataFrame:
    """One row a world and policy, in the order of the trials: means with standard errors, and shares.

    ``optimum_share`` is the mean reward over LP-Dynamic, ``optimum_share_se`` its standard error, both null in a world
    that is worth nothing; ``spent_share`` is the share of the budget that was used most. The spread of a single trial
    is not known: its error is 0.
    """
    most = (pl.col("spent") / pl.col("budget")).list.eval(pl.element().fill_nan(0.0)).list.max()
    worth = pl.when(pl.col("optimum").first() > 0).then(pl.col("optimum").first())
    return (
        trials.with_columns(share=most)
        .group_by(*GROUP, maintain_order=True)
        .agg(
            trials=pl.len(),
            reward=pl.col("reward").mean(),
            reward_se=error_of("reward"),
            optimum=pl.col("optimum").first(),
            optimum_share=pl.col("reward").mean() / worth,
            optimum_share_se=error_of("reward") / worth,
            stopping_time=pl.col("stopping_time").mean(),
            stopping_time_se=error_of("stopping_time"),
            spent_share=pl.col("share").mean(),
            fallbacks=pl.col("fallbacks").sum(),
        )
    )


def error_of(column: str) -> pl.Expr:
    """Standard error of the mean."""
    return (pl.col(column).std() / pl.len().sqrt()).fill_null(0.0)
