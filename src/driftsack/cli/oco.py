"""``driftsack reproduce --oco``: section 4 of the paper."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl

from driftsack.cli.show import make_folder, messages, plain_errors, print_json, results, rich_table


def reproduce_oco(out: Path, as_json: bool) -> None:
    """Measure Theorem 3 and Proposition 2; write oco.png, .svg, .pdf and oco.csv; show a verdict for each claim."""
    from driftsack.paper import oco, oco_claims  # noqa: PLC0415  (Matplotlib and cvxpy load only where used)
    from driftsack.plot import oco_figure, write_figure  # noqa: PLC0415

    with plain_errors():
        make_folder(out)
        begun = time.perf_counter()
        with messages.status("measuring") as status:
            found = oco.run(oco.HORIZONS, oco.DRAWS, said=lambda text: status.update(f"measuring: {text}"))
        claims = [claim._asdict() for claim in oco_claims.claims(found)]
        figure = oco_figure(oco_claims.panels(found), oco_claims.caption(found))
        figures = [str(path) for path in write_figure(figure, out, "oco")]
        frame = pl.DataFrame(oco_claims.table(found))
        frame.write_csv(out / "oco.csv")
        seconds = time.perf_counter() - begun
    if as_json:
        print_json({"claims": claims, "table": frame.to_dicts(), "figures": figures, "seconds": seconds})
        return
    results.print(rich_table(frame, "Section 4: means over the draws"))
    for claim in claims:
        results.print(
            f"[bold]{claim['verdict']:<9}[/] {claim['claim']}\n          {claim['measured']}", highlight=False
        )
    messages.print(f"Figure: {figures[0]} (and .svg, .pdf)   Table: {out / 'oco.csv'}   {seconds:.1f} s")
