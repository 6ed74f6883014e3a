"""The settings of ``driftsack serve`` from options, the environment and a file, checked before anything starts."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from driftsack.core.errors import SettingError

LEVELS: Final = ("debug", "info", "warning", "error")


class Rule(NamedTuple):
    """A rule for the values of a setting."""

    expected: str  # the accepted values in words
    read: Callable[[Any], Any]  # converts a string of the environment or a value of a TOML file; raises ValueError


class Given(NamedTuple):
    """A setting that was given."""

    place: str  # its name where it was given
    value: Any  # not checked yet


def merged(given: dict[str, Any], config: Path | None, names: Iterable[str]) -> dict[str, Any]:
    """Return the checked settings: options (None if not given) first, then the environment, then the TOML file."""
    names = list(names)
    found = {} if config is None else _from_file(config)
    unknown = sorted(set(found) - set(names))
    if unknown:
        raise SettingError(f"settings of [serve] in {config} are {', '.join(names)}; got {', '.join(unknown)}.")
    for name in names:
        variable = f"DRIFTSACK_{name.upper()}"
        if variable in os.environ:
            found[name] = Given(variable, os.environ[variable])
    found |= {name: Given(f"--{name}", value) for name, value in given.items() if value is not None}
    return {name: _checked(name, one) for name, one in found.items()}


def _from_file(config: Path) -> dict[str, Given]:
    """The settings in a TOML file."""
    try:
        content = tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{config} must be TOML in UTF-8: {error}.") from error
    other = sorted(set(content) - {"serve"})
    if other:
        raise SettingError(f"{config} must have one table, [serve], with the settings; got {', '.join(other)}.")
    table = content.get("serve", {})
    if not isinstance(table, dict):
        raise SettingError(f"serve in {config} must be a table, [serve], with the settings; got {table!r:.40}.")
    return {name: Given(f"{name} in {config}", value) for name, value in table.items()}


def _checked(name: str, given: Given) -> Any:
    """The value of a setting."""
    rule = RULES.get(name, TEXT)
    try:
        return rule.read(given.value)
    except (TypeError, ValueError, OverflowError) as error:
        raise SettingError(f"{given.place} must be {rule.expected}, got {given.value!r:.60}.") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _level(value: Any) -> str:
    if _text(value).lower() not in LEVELS:
        raise ValueError
    return str(value).lower()


def _whole(least: int, most: float = math.inf) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool | float) or not least <= int(value) <= most:
            raise ValueError
        return int(value)

    return read


def _real(fits: Callable[[float], bool]) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not (math.isfinite(float(value)) and fits(float(value))):
            raise ValueError
        return float(value)

    return read


TEXT: Final = Rule("a string", _text)
RULES: Final = {
    "port": Rule("an integer from 0 to 65535", _whole(0, 65535)),
    "lease": Rule("a number of seconds above 0", _real(lambda seconds: seconds > 0)),
    "rate": Rule("a number of requests a second, or 0 for no limit", _real(lambda rate: rate >= 0)),
    "work": Rule("a number of seconds of work a second, or 0 for no limit", _real(lambda share: share >= 0)),
    "snapshot_every": Rule("an integer of at least 1", _whole(1)),
    "log_level": Rule(f"one of {', '.join(LEVELS)}", _level),
}
