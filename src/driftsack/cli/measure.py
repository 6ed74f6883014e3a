"""``driftsack measure``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from driftsack.cli.console import (
    JsonOption,
    columns_of,
    messages,
    plain_errors,
    print_json,
    print_table,
    refuse_needless,
    results,
    status_line,
)
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.core.text import number


def measure(
    file: Annotated[
        Path | None, typer.Argument(metavar="[INSTANCE.npz]", help="An instance saved by Instance.save.")
    ] = None,
    example: Annotated[
        int | None, typer.Option(min=1, max=4, help="Measure one of the paper's examples instead.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="The change point of Example 3, as a share of the horizon. Default: 0.5.")
    ] = None,
    periods: Annotated[int | None, typer.Option(min=1, help="Periods of Example 4. Default: 10.")] = None,
    horizon: Annotated[int | None, typer.Option(min=2, help="Rounds of an example. Default: 10,000.")] = None,
    out: Annotated[Path, typer.Option(help="Directory for the figure.")] = Path("out"),
    as_json: JsonOption = False,
) -> None:
    """Measure an instance: its drift, its benchmarks and the bounds of the theory, with an interpretation.

    Writes drift.png, .svg and .pdf to --out: mean rewards and costs over time, and the mix of the best plan.

    Example: driftsack measure --example 3 --alpha 0.6
    """
    from driftsack.measures.overview import measure as compute
    from driftsack.plot import drift_figure, write_figure
    from driftsack.plot.style import make_directory

    with plain_errors():
        make_directory(out)
        instance = named_instance(file, example, alpha, periods, horizon)
        with status_line("measuring") as show:
            page = compute(instance, lambda text: show(f"measuring: {text}"))
        figures = [str(path) for path in write_figure(drift_figure(instance, page.best), out, "drift")]
    if as_json:
        print_json({name: part for name, part in page._asdict().items() if name != "best"} | {"figures": figures})
        return
    for title, rows in tables(page._asdict()).items():
        print_table(rows, columns_of(rows), title)
    results.print(
        "* A rate, its constant taken as 1. Theorem 2 is about the worst instance with these measures.",
        style="dim",
    )
    results.print(f"\n{page.meaning}", style="bold")
    messages.print(f"Figure: {figures[0]} (and .svg, .pdf)")


def named_instance(
    file: Path | None, example: int | None, alpha: float | None, periods: int | None, horizon: int | None
) -> Instance:
    """Build or load the instance that the options name."""
    from driftsack import instances

    if (file is None) == (example is None):
        raise SettingError("name one instance: a file that Instance.save wrote, or --example 1, 2, 3 or 4.")
    if file is not None:
        refuse_needless({"--alpha": alpha, "--periods": periods, "--horizon": horizon}, "on an instance from a file")
        return Instance.load(file)
    ignored = {"--alpha": alpha} if example != 3 else {}
    ignored |= {"--periods": periods} if example != 4 else {}
    refuse_needless(ignored, f"with --example {example}")
    rounds = 10_000 if horizon is None else horizon
    if example == 3:
        return instances.example_3(0.5 if alpha is None else alpha, rounds)
    if example == 4:
        return instances.example_4(10 if periods is None else periods, rounds)
    return instances.example_1(rounds) if example == 1 else instances.example_2(rounds)


def tables(page: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table, by its title."""
    about = page["instance"]
    title = (
        f"Drift of an instance with {about['horizon']:,} rounds, {about['arms']} arms, {about['resources']} resources "
        f"and {about['distinct_rows']:,} distinct rows."
    )
    missing = "too many rows" if min(about["rate"]) > 0 else "without limit, or too many rows"
    # Drift, benchmarks and windows exist for every instance.
    sections = {
        title: [
            {"measure": name, "value": missing if value is None else number(value, digits=6)}
            for name, value in page["measures"].items()
        ],
        "Benchmarks with the gaps of their certificates.": [
            {
                "benchmark": name,
                "value": number(row["value"], digits=6),
                "gap": f"{row['gap']:.0e}",
                "prices": "" if row["prices"] is None else ", ".join(map(number, row["prices"])),
            }
            for name, row in page["benchmarks"].items()
        ],
        "Windows by the formula of the paper.": [
            {"window": name, "rounds": value} for name, value in page["windows"].items()
        ],
    }
    # Bounds are undefined with a budget of zero.
    bounds = page["bounds"]
    if bounds:
        sections["Bounds on the regret, in units of reward_max."] = side_by_side(bounds)
        rounds = bounds["trivial"]["rounds"]
        others = {
            "difference of rewards from the LPs (Lemma 3)": bounds["lemma_3"]["rewards"],
            "difference of costs from the LPs (Lemma 3)": bounds["lemma_3"]["costs"],
            "rounds lost by stopping (Corollary 1)": bounds["corollary_1"]["total"],
        }
        sections["Other bounds of the paper."] = [
            {"bound": name, "at most": rounded(value), "trivial bound": rounded(rounds)}
            for name, value in others.items()
        ]
    return sections


def side_by_side(bounds: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """One row per term; the terms of Theorem 2 belong to three different instances, so they have no sum."""
    upper = bounds["theorem_1"]
    learning = ("stopping_noise", "stopping_learning", "stopping_round", "reward_noise", "reward_learning", "failure")
    columns = {
        "Theorem 1": {**upper, "learning": sum(upper[name] for name in learning)},
        "refined*": bounds["refined"],
        "Theorem 2 (worst instance)*": bounds["theorem_2"],
    }
    rows = [
        {"term": term.replace("_", " "), **{name: rounded(terms.get(term)) for name, terms in columns.items()}}
        for term in ("learning", "reward_drift", "cost_drift", "budget_timing", "total")
    ]
    trivial = rounded(bounds["trivial"]["regret"])
    return [
        *rows,
        {"term": "trivial bound", "Theorem 1": trivial, "refined*": trivial, "Theorem 2 (worst instance)*": ""},
    ]


def rounded(value: float | None) -> str:
    """Round to an integer; empty for a term that a bound does not have."""
    return "" if value is None else f"{value:,.0f}"
