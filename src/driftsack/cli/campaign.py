"""``driftsack campaign``: create and analyse campaigns of the service."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from driftsack.cli.console import (
    Commands,
    JsonOption,
    messages,
    plain_errors,
    print_json,
    print_table,
    results,
    text_column,
)
from driftsack.cli.extras import service_extra
from driftsack.cli.serve import StoreOption, store_address
from driftsack.client import open_campaign, read_accounts, read_campaign
from driftsack.core.errors import SettingError

ADDRESS: Final = "http://127.0.0.1:8787"

campaign = Commands(no_args_is_help=True, help="Create and analyse campaigns of the service.")


@campaign.callback()
def group() -> None:
    """Create and analyse campaigns of the service."""


@campaign.command("create")
def create(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The settings, in TOML.")],
    url: Annotated[str, typer.Option(envvar="DRIFTSACK_URL", help="The address of the service.")] = ADDRESS,
    key: Annotated[str, typer.Option(envvar="DRIFTSACK_KEY", help="A key with the scope admin.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Open a campaign on a running service, with the settings of a TOML file.

    The settings are those of the API. Its name is the setting name, or that of the file. Repeating the command changes
    nothing.

    Example: driftsack campaign create chat.toml
    """
    with plain_errors():
        if not key:
            raise SettingError("a key with the scope admin is needed; pass it as --key, or set DRIFTSACK_KEY.")
        name, config = read_campaign(file)
        found = open_campaign(url, key, name, config)
    if as_json:
        print_json(found)
        return
    features = found["config"].get("features")
    policy = found["config"]["policy"]["policy"]
    by = f"by the features of requests ({policy})" if features else f"with {policy}"
    results.print(f"{found['name']} is {found['state']}; it decides {by}.", markup=False)


@campaign.command("limits")
def limits(
    name: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The campaign.")],
    label: Annotated[str, typer.Argument(metavar="NAME=LABEL", help="The label, such as user=ann.")],
    url: Annotated[str, typer.Option(envvar="DRIFTSACK_URL", help="The address of the service.")] = ADDRESS,
    key: Annotated[str, typer.Option(envvar="DRIFTSACK_KEY", help="A key with the scope read.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Show what a label has spent, reserved and left of the limits of a campaign.

    Example: driftsack campaign limits chat user=ann
    """
    by, sign, given = label.partition("=")
    with plain_errors():
        if not (by and sign and given):
            raise SettingError(f"the label must look like user=ann, got {label!r:.60}.")
        if not key:
            raise SettingError("a key with the scope read is needed; pass it as --key, or set DRIFTSACK_KEY.")
        found = read_accounts(url, key, name, by, given)
    if as_json:
        print_json({"accounts": found})
        return
    columns = ("resource", "every", "amount", "spent", "reserved", "left", "resets")
    rows = [{column: shown(row, column) for column in columns} for row in found]
    print_table(rows, [text_column(column) for column in columns], f"{label} in {name}.")


def shown(account: dict[str, Any], column: str) -> str:
    """Format an entry of an account."""
    value = account[column]
    if column == "resets" and value is not None:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="minutes")
    return "-" if value is None else str(value)


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
