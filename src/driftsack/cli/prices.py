"""``driftsack prices``: a table of prices for the proxy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftsack.cli.console import JsonOption, plain_errors, print_json, results
from driftsack.cli.extras import service_extra


def prices(
    models: Annotated[list[str] | None, typer.Argument(help="The models; all if omitted.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="A TOML file with prices by model. Default: the table of an installed LiteLLM.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print prices of models, in dollars per million tokens, as a TOML file that driftsack proxy reads.

    The prices come from a file or from the table inside an installed LiteLLM, and never from the network. Where LiteLLM
    knows a higher price for long prompts, it is that one, so that no request costs more. Compare them with your bill.

    Example: driftsack prices gpt-4o-mini claude-sonnet-4-5 > prices.toml
    """
    with plain_errors(), service_extra():
        import msgspec

        from driftsack.service.gateways import price_sources

        if table is None:
            known, source = price_sources.prices_of_litellm()
            found = price_sources.chosen({**known}, models or [])
        else:
            source = str(table)
            found = price_sources.chosen(price_sources.prices_of_file(table), models or [])
        if as_json:
            print_json({"source": source, "unit": "dollars per million tokens", "prices": msgspec.to_builtins(found)})
        else:
            text = f"# Dollars per million tokens, from {source}.\n{price_sources.as_toml(found)}"
            results.print(text, markup=False, highlight=False, soft_wrap=True)
