"""Prices by model from a TOML file or from the table inside an installed LiteLLM, never from the network."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from driftsack.core.errors import MissingExtraError, SettingError
from driftsack.service.gateways.proxy.prices import FINEST, MILLION, Prices
from driftsack.service.gateways.proxy.settings import PriceTable, read_toml

TABLE: Final = "model_prices_and_context_window_backup.json"
FIELDS: Final = {
    "input": ("input_cost_per_token",),
    "output": ("output_cost_per_token",),
    "cached_input": ("cache_read_input_token_cost",),
    "cache_write": ("cache_creation_input_token_cost", "cache_creation_input_token_cost_above_1hr"),
    "reasoning": ("output_cost_per_reasoning_token",),
    "audio_input": ("input_cost_per_audio_token",),
    "audio_output": ("output_cost_per_audio_token",),
}
"""The names that LiteLLM's table has for each price."""
LONG: Final = re.compile(r"_above_\d+k_tokens$")  # the price of long prompts


def prices_of_litellm() -> tuple[dict[str, Prices], str]:
    """Return the prices in the table of an installed LiteLLM, which is not imported, and where they are from.

    Raises:
        MissingExtraError: LiteLLM is not installed.
    """
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("litellm is not installed: pip install 'driftsack[litellm]', or give a --table.")
    path = Path(spec.submodule_search_locations[0]) / TABLE
    found = json.loads(path.read_text(), parse_float=Decimal, parse_int=Decimal)
    day = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).date()
    return table_of(found), f"LiteLLM {importlib.metadata.version('litellm')}, installed on {day}"


def table_of(found: Mapping[str, Any]) -> dict[str, Prices]:
    """Return the prices in LiteLLM's table: of the models that are paid by token, the highest that may apply.

    >>> table_of({"m": {"input_cost_per_token": Decimal("1.5e-7"), "input_cost_per_token_above_200k_tokens":
    ...                 Decimal("3e-7")}, "image": {"output_cost_per_image": Decimal(1)}})
    {'m': Prices(input='0.3', output='0', cached_input=None, ..., since=None)}
    """
    table = {}
    for model, entry in found.items():
        prices: dict[str, Any] = {}
        for field, names in FIELDS.items():
            given = [v for name, v in entry.items() if LONG.sub("", name) in names and isinstance(v, Decimal)]
            if given:
                prices[field] = per_million(max(given))
        if "input" in prices:
            table[model] = Prices(**prices)
    return table


def per_million(price: Decimal) -> str:
    """Return the price of a token as that of a million tokens, rounded up.

    >>> per_million(Decimal("1.5e-7")), per_million(Decimal(0))
    ('0.15', '0')
    """
    text = f"{(price * MILLION).quantize(FINEST, rounding='ROUND_CEILING'):f}"
    return text.rstrip("0").rstrip(".")


def chosen(table: PriceTable, models: Iterable[str]) -> PriceTable:
    """Return the prices of some models; of all if none is given.

    Raises:
        SettingError: The table has no price for one of them.
    """
    wanted = list(models)
    for model in wanted:
        if model not in table:
            like = [name for name in table if model.lower() in name.lower()][:5]
            raise SettingError(f"the table has no price for {model!r}; it has {like or 'nothing like it'}.")
    return {model: table[model] for model in wanted or table}


def prices_of_file(path: Path) -> PriceTable:
    """Return the prices in a TOML file."""
    found: PriceTable = read_toml(path, PriceTable, "prices by model")
    return found


def as_toml(table: PriceTable) -> str:
    """Return a table of prices in the format that ``price_table`` of the proxy reads.

    >>> print(as_toml({"m": Prices("1", "2", since=datetime.date(2027, 1, 1))}))
    "m" = [{ input = "1", output = "2", since = 2027-01-01 }]
    """
    lines = []
    for model, given in table.items():
        entries = ", ".join(inline(prices) for prices in ([given] if isinstance(given, Prices) else given))
        single = isinstance(given, Prices) and given.since is None
        lines.append(f"{json.dumps(model)} = {entries if single else f'[{entries}]'}")
    return "\n".join(lines)


def inline(prices: Prices) -> str:
    """Return prices as an inline table."""
    given = {field: getattr(prices, field) for field in msgspec.structs.asdict(prices)}
    usual = Prices("")
    shown = {field: value for field, value in given.items() if value != getattr(usual, field)}
    texts = [f"{name} = {value if name == 'since' else json.dumps(value)}" for name, value in shown.items()]
    return "{ " + ", ".join(texts) + " }"
