"""Open a campaign of a service from its settings, which may come from a TOML file."""

from __future__ import annotations

import tomllib
import urllib.parse
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from driftsack.client.transport import Transport
from driftsack.core.errors import SettingError

AMOUNTS: Final = ("budget", "cost_max", "refuse_above", "limits")  # settings that the service takes as decimal strings


def open_campaign(
    url: str, key: str, name: str, config: Mapping[str, Any], patience: float = 120.0, timeout: float = 60.0
) -> dict[str, Any]:
    """Open a campaign. Repeating the call changes nothing.

    Args:
        url: The address of the service, such as ``http://localhost:8787``.
        key: An API key with the scope ``admin``.
        name: The name of the campaign.
        config: Its settings, as in the API.
        patience: Seconds for which the request is retried.
        timeout: Timeout of one attempt, in seconds; the first campaign with a policy may compile its kernels.

    Returns:
        The campaign, as the service describes it.

    Raises:
        ServiceError: The service refused the settings, or has a campaign of this name with other ones.
        ServiceUnavailableError: The service cannot be reached.
    """
    transport = Transport(url, key, "", patience, timeout)
    try:
        found: dict[str, Any] = transport.post("", {"name": name, "config": config})
    finally:
        transport.disconnect()
    return found


def read_accounts(
    url: str, key: str, campaign: str, by: str, label: str, patience: float = 10.0, timeout: float = 5.0
) -> list[dict[str, Any]]:
    """Read what a label has spent, reserved and left of the limits of a campaign.

    Args:
        url: The address of the service.
        key: An API key with the scope ``read``.
        campaign: The name of the campaign.
        by: The name of the label, such as ``user``.
        label: The label, such as ``ann``.
        patience: Seconds for which the request is retried.
        timeout: Timeout of one attempt, in seconds.

    Returns:
        One account for each resource of each limit, with amounts as decimal strings.

    Raises:
        ServiceError: No limit of the campaign is by labels of this name, or the key does not allow this.
        ServiceUnavailableError: The service cannot be reached.
    """
    transport = Transport(url, key, campaign, patience, timeout)
    try:
        found = transport.get(f"/limits?{urllib.parse.urlencode({'by': by, 'label': label})}")
    finally:
        transport.disconnect()
    accounts: list[dict[str, Any]] = found["accounts"]
    return accounts


def read_campaign(path: Path) -> tuple[str, dict[str, Any]]:
    """Read name and settings of a campaign from a TOML file.

    Args:
        path: The file. Its settings are those of the API, and ``name``; without a name, it is that of the file.

    Returns:
        The name, and the settings with amounts as decimal strings.

    Raises:
        SettingError: The file is not TOML in UTF-8, or has a date or a time.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} must be TOML in UTF-8: {error}.") from error
    name = str(content.pop("name", path.stem))
    return name, {key: _plain(value, str if key in AMOUNTS else float) for key, value in content.items()}


def _plain(value: Any, number: type[str] | type[float]) -> Any:
    """Return a value with its decimal numbers as strings or floats."""
    if isinstance(value, Mapping):
        return {key: _plain(one, number) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one, number) for one in value]
    if isinstance(value, Decimal):
        return f"{value:f}" if number is str else float(value)
    if isinstance(value, (date, time)):
        raise SettingError(f"settings must be strings, numbers, true, false, lists or tables, got the time {value}.")
    return value
