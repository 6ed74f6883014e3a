"""``driftsack keys``: the API keys of the service, in its store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from driftsack.cli.console import (
    Commands,
    JsonOption,
    note,
    plain_errors,
    print_json,
    print_table,
    results,
    text_column,
)
from driftsack.cli.extras import service_extra
from driftsack.cli.serve import StoreOption, store_address
from driftsack.core.errors import SettingError

if TYPE_CHECKING:
    from driftsack.service.store.interface import AuditRow, KeyRow, Store

COLUMNS: Final = ("prefix", "scopes", "campaigns", "labels", "expires", "note")
keys = Commands(no_args_is_help=True, help="Manage the API keys of the service in its store.")


@keys.callback()
def group() -> None:
    """Manage the API keys of the service in its store. The command needs no key, only write access to the store."""


@contextmanager
def opened(address: str | None, read_only: bool = False) -> Iterator[Store]:
    """Open a store that a running service may use at the same time."""
    with plain_errors(), service_extra():
        from driftsack.service.store import open_store

        with closing(open_store(store_address(address), read_only=read_only, shared=not read_only)) as store:
            yield store


def entry_of(action: str, detail: str) -> AuditRow:
    """Return the entry of a change in the audit log."""
    from driftsack.service.store.interface import AuditRow

    return AuditRow(int(1000 * time.time()), "shell", action, None, detail)


@keys.command("list")
def list_keys(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the keys, without their secrets.

    Example: driftsack keys list
    """
    with opened(store, read_only=True) as found:
        rows = [shown(row) for row in found.keys()]  # noqa: SIM118  (a store is not a dictionary)
    if as_json:
        print_json({"keys": rows})
        return
    texts = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
    print_table(texts, [text_column(name) for name in COLUMNS], "The keys of the service.")


def shown(row: KeyRow) -> dict[str, str | None]:
    """Describe a key without its secret."""
    expires = None if row.expires is None else datetime.fromtimestamp(row.expires / 1000, UTC).isoformat()
    campaigns = "all" if row.campaigns is None else " ".join(row.campaigns)
    labels = " ".join(f"{name}={label}" for name, label in row.labels)
    return dict(zip(COLUMNS, (row.prefix, " ".join(row.scopes), campaigns, labels, expires, row.note), strict=True))


def labels_of(given: list[str]) -> dict[str, str]:
    """Return labels that were written as ``NAME=LABEL``."""
    pairs = [each.partition("=") for each in given]
    wrong = [each for each, (name, sign, label) in zip(given, pairs, strict=True) if not (name and sign and label)]
    if wrong:
        raise SettingError(f"a label must look like user=ann, got {wrong[0]!r:.60}.")
    return {name: label for name, _, label in pairs}


@keys.command()
def create(
    scope: Annotated[
        list[str], typer.Option(help="Permission of the key: decide, read, operate or admin; repeat for several.")
    ],
    campaign: Annotated[
        list[str] | None, typer.Option(help="A campaign to which the key is limited; repeat for several. Default: all.")
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Days until the key expires. Default: never.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="A label of all requests with the key, NAME=LABEL; repeat for several.")
    ] = None,
    text: Annotated[str, typer.Option("--note", help="Purpose of the key.")] = "",
    store: StoreOption = None,
) -> None:
    """Create a key and print it once. A running service accepts it within five seconds.

    Use this to replace a lost administrator's key.

    Example: driftsack keys create --scope admin
    Example: driftsack keys create --scope decide --campaign chat --days 90 --note "the chat workers"
    Example: driftsack keys create --scope decide --campaign chat --label user=ann
    """
    with opened(store) as found:
        import msgspec

        from driftsack.service.domain import messages as ms
        from driftsack.service.web.api.keyring import key_for

        labels = labels_of(label or [])
        given = {"scopes": scope, "campaigns": campaign or None, "days": days, "note": text, "labels": labels}
        try:
            body = msgspec.convert(given, ms.NewKey)
        except msgspec.ValidationError as error:
            raise SettingError(
                f"a key needs scopes among decide, read, operate and admin, and labels such as user=ann: {error}."
            ) from error
        key, row = key_for(body)
        found.add_key(row, entry_of(f"keys create {row.prefix}", msgspec.json.encode(body).decode()))
    typer.echo(key)
    note("this key is shown once and not kept; store it in a safe place.")


@keys.command()
def revoke(
    prefix: Annotated[str, typer.Argument(help="Prefix of the key, as shown by keys list.")],
    store: StoreOption = None,
) -> None:
    """Remove a key. A running service refuses it within five seconds.

    Example: driftsack keys revoke 0123456789ab
    """
    with opened(store) as found:
        if not found.remove_key(prefix, entry_of(f"keys revoke {prefix}", "")):
            raise SettingError(f"there is no key {prefix!r:.40}; see driftsack keys list.")
    results.print(f"removed {prefix}")
