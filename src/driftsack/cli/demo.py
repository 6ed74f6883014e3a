"""``driftsack demo``: a simulated week of requests to language models, in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from driftsack.cli.console import plain_errors
from driftsack.cli.extras import service_extra


def demo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8787,
    requests: Annotated[int, typer.Option(min=100, help="Requests in the week.")] = 12_000,
    seconds: Annotated[float, typer.Option(min=0, help="Seconds that the simulated week takes.")] = 120.0,
    browser: Annotated[bool, typer.Option(help="Whether to open a browser.")] = True,
) -> None:
    """Watch the service spend a budget: a week of requests to three language models in two minutes.

    The costs are heavy-tailed, the price of one model changes, and later the same model fails for a day. Everything is
    simulated except the service: the workers ask and tell over HTTP. Nothing is kept afterwards.

    Example: driftsack demo
    Example: driftsack demo --no-browser --seconds 30
    """
    with plain_errors(), service_extra():
        from driftsack.service.demo.show import show

        show(port, requests, seconds, browser, typer.echo)  # links are not wrapped
