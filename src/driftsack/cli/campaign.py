"""``driftsack campaign``: analyse campaigns of the service."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from driftsack.cli.console import Commands, JsonOption, messages, plain_errors, print_json, results
from driftsack.cli.extras import service_extra
from driftsack.cli.serve import StoreOption, store_address

campaign = Commands(no_args_is_help=True, help="Analyse campaigns of the service.")


@campaign.callback()
def group() -> None:
    """Analyse campaigns of the service."""


@campaign.command("what-if")
def what_if(
    name: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The campaign.")],
    policy: Annotated[str, typer.Option(help="Name of the other policy; it has its default settings.")],
    trials: Annotated[int, typer.Option(min=2, help="Number of replays of the journal.")] = 20,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate what another policy would have earned, from the journal and its propensities, with the error.

    The other policy has the arms that the campaign was opened with. The budgets are those of the campaign, for as many
    requests as the journal has.

    Example: driftsack campaign what-if chat --policy UniformRandom
    """
    with plain_errors(), service_extra():
        from driftsack.service.projections.what_if import what_if as estimate
        from driftsack.service.store import open_store

        with closing(open_store(store_address(store), read_only=True)) as opened, messages.status("replaying"):
            found, own = estimate(opened, name, {"policy": policy}, trials)
    if as_json:
        shown = {"policy": policy, "reward": found.reward, "reward_se": found.reward_se, "campaign": own}
        print_json({**shown, "effective": found.effective, "rounds": found.rounds, "method": found.method})
        return
    results.print(
        f"{policy} would have earned {found.reward:.4g} ± {found.reward_se:.2g} per request; the campaign earned "
        f"{own:.4g} ({found.rounds:,} requests, of which {found.effective:,.0f} count; {found.method})."
    )
