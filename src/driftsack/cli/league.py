"""``driftsack league``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftsack.cli.console import (
    JsonOption,
    SeedOption,
    messages,
    note,
    number_column,
    plain_errors,
    print_json,
    print_table,
    progress_bar,
    refuse_needless,
    results,
    share_column,
    single_line,
    text_column,
)
from driftsack.cli.run import AddressOption, EngineOption, WorkersOption
from driftsack.core.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

    from driftsack.sweeps.league_report import LeagueReport


def league(
    trials: Annotated[int, typer.Option(min=1, help="Trials of each policy on each instance.")] = 20,
    horizon: Annotated[int, typer.Option(min=100, help="Rounds of a trial.")] = 10_000,
    seed: SeedOption = 0,
    held_out: Annotated[
        int | None,
        typer.Option(
            "--held-out",
            min=0,
            metavar="SEED",
            help="Draw new instances of every family from this seed, instead of the league's fixed ones.",
        ),
    ] = None,
    per_family: Annotated[
        int | None, typer.Option(min=1, help="Instances of each family, with --held-out only. Default: 4.")
    ] = None,
    delay: Annotated[int, typer.Option(min=0, help="Delay of the outcomes, in rounds, with --held-out only.")] = 0,
    arms: Annotated[int | None, typer.Option(min=1, help="Arms of every instance, with --held-out only.")] = None,
    resources: Annotated[
        int | None, typer.Option(min=1, help="Resources of every instance, with --held-out only.")
    ] = None,
    loose: Annotated[
        float,
        typer.Option(
            min=1.0,
            help="Factor by which reward_max and cost_max exceed the true maxima, with --held-out only.",
        ),
    ] = 1.0,
    out: Annotated[Path, typer.Option(help="Directory for the tables, the heat map and the trials.")] = Path(
        "out/league"
    ),
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare all policies on instances on which learning pays: the paper's, one of each of 15 families, and others.

    Rewards are given as shares of the best plan (LP-Dynamic). A policy that cannot run on an instance gets a
    dash and the reason. Writes league.csv and league.png, .svg and .pdf to --out; trials are kept in --out/store, so
    running the command again simulates only the missing ones.

    A policy that was developed on some instances is fitted to them. To judge it, draw new ones with --held-out and an
    unused seed. The report then has means per family, and standard errors over instances instead of trials.
    With --delay, --arms, --resources and --loose it compares policies under harder conditions.

    Example: driftsack league --trials 5 --out quick

    Example: driftsack league --held-out 7 --per-family 2 --trials 4

    Example: driftsack league --held-out 7 --per-family 2 --trials 4 --delay 200
    """
    from driftsack.sweeps.engines import make_engine
    from driftsack.sweeps.held_out import Conditions, HeldOut
    from driftsack.sweeps.league_report import run_held_out, run_league

    conditions = Conditions(delay, arms, resources, loose)
    with plain_errors():
        refuse_needless({"--address": address if engine == "local" else None}, "without --engine ray")
        if held_out is None:
            needless = [*(["per-family"] if per_family is not None else []), *conditions.changed]
            if needless:
                raise SettingError(f"--{needless[0]} needs --held-out SEED, since the league's instances are fixed.")
    with plain_errors(), progress_bar() as bar:
        chosen, show = make_engine(engine, workers, address), single_line(bar)
        if held_out is None:
            found = run_league(out, trials, horizon, seed, chosen, show, note)
        else:
            worlds = HeldOut(held_out, per_family or 4, horizon, conditions)
            found = run_held_out(out, worlds, trials, seed, chosen, show, note)
    if as_json:
        print_json(found.to_dict())
        return
    print_overview(found, trials)
    print_present(found.present)
    if found.leaders:
        print_leaders(found)
    if found.leads is not None and found.against_best is not None:
        print_leads(found.leads, found.against_best)
    if found.poorer:
        print_poorer(found)
    messages.print(f"Table: {found.csv}   Heat map: {found.figures[0]} (and .svg, .pdf)   {found.seconds:.1f} s")


def print_overview(found: LeagueReport, trials: int) -> None:
    """Print the shares of all policies."""
    columns = [
        text_column("policy"),
        share_column("mean_share", "mean", error="mean_share_se"),
        share_column("least_share", "worst instance"),
        share_column("most_share", "best instance"),
        number_column("refused"),
    ]
    over = "trials" if found.conditions is None else "instances"
    under = f", {found.conditions}" if found.conditions is not None and found.conditions.changed else ""
    count = f"{found.instances} instances, {trials} trials each{under}"
    title = f"Shares of LP-Dynamic on {count}, ± standard errors over {over}."
    print_table(found.overview.iter_rows(named=True), columns, title)


def print_present(present: pl.DataFrame) -> None:
    """Print what knowledge of the present means earns, which tells lack of foresight from lack of learning."""
    even, two_speeds = (100 * present[name].to_numpy().mean() for name in ("even_pace", "two_speeds"))
    results.print(
        f"A policy that knew the present means but not the future would earn {even:.1f}% at the even pace and "
        f"{two_speeds:.1f}% at two speeds, on average over the instances: more needs foresight, and what a policy "
        "earns less is the cost of learning and of random outcomes."
    )


def print_leaders(found: LeagueReport) -> None:
    """Print the best policies of each family."""
    columns = [
        text_column("family"),
        text_column("first_policy", "best"),
        share_column("first_share", "share", error="first_share_se"),
        text_column("second_policy", "second"),
        share_column("second_share", "share"),
        share_column("baseline_share", "uniform"),
    ]
    print_table(
        found.leaders,
        columns,
        "The best policies of each family that are told nothing of the instance, ± standard errors.",
    )


def print_leads(leads: pl.DataFrame, against_best: Mapping[str, float]) -> None:
    """Print the leads of Adaptive over each rival, and its distance from the best setting of each instance."""
    columns = [
        text_column("policy", "rival"),
        share_column("lead", "Adaptive leads by", error="lead_se"),
        share_column("ahead", "ahead in"),
    ]
    title = "Leads of Adaptive in % of LP-Dynamic, paired by instance, ± standard errors; and where it is ahead."
    print_table(leads.head(8).iter_rows(named=True), columns, title)
    best = {name: 100 * value for name, value in against_best.items()}
    results.print(
        f"Against the best of twelve tuned settings, picked for each instance in hindsight: {best['mean']:+.1f}% "
        f"on average; at most 1% below it in {best['within_1']:.0f}% of {against_best['worlds']:.0f} "
        f"instances, at most 5% below it in {best['within_5']:.0f}%."
    )


def print_poorer(found: LeagueReport) -> None:
    """Print the instances that get poorer."""
    columns = [
        text_column("world", "instance"),
        share_column("second_half", "second half"),
        text_column("best", "best setting"),
        share_column("difference", "Adaptive"),
    ]
    title = (
        "Listed apart: instances that get poorer, where spending too early by accident wins. Value of a round of "
        "the second half in relation to the first, and Adaptive against the best of the twelve."
    )
    print_table(found.poorer, columns, title)
