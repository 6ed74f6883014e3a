"""Route the prompts of ParetoBandit's wheel through the real proxy, with the built-in features of prompts and without.

Service, proxy and clients are those that users have, in processes of their own; the upstream answers from the table of
the wheel, whose rewards and costs :mod:`lab.routing` describes: the text of an answer is its reward, and its usage
costs, at the prices of the models, exactly what the table says. The proxy has two campaigns for each order of the
prompts: one with ``features = "prompt"``, and one with ``Adaptive``, which sees no context.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import uvicorn

from driftsack.core.arrays import Floats
from driftsack.core.seeding import generator
from driftsack.core.statistics import standard_error
from driftsack.service.gateways.prompts.features import PROMPT_FEATURES
from driftsack.service.web.asgi import read_parts
from lab.contexts import bar_row
from lab.routing.routers import BUDGETS, MODELS, PER_MILLION, Requests, Task, Told, fixed_entrant
from lab.routing.routing import drifted, outcomes_of, read_rows
from lab.service.processes import Process, call, free_port, open_campaign
from tests.support.asgi_server import running

Row = dict[str, Any]
RATE: Final = BUDGETS[0]
SEEING: Final = "prompt"
BLIND: Final = "blind"
LEAST: Final = 1.04
MILLION: Final = 10**6
HERE: Final = "lab.service.prompt_routing"


class PromptTable(NamedTuple):
    """Prompts, and what each model would answer.

    Attributes:
        prompts: (N,) the prompts, all different.
        rewards: (N, 3) the rewards.
        dollars: (N, 3) the costs.
    """

    prompts: list[str]
    rewards: Floats
    dollars: Floats

    def usage(self, row: int, arm: int) -> tuple[int, int]:
        """Return the tokens of prompt and answer that cost exactly what the table says.

        Raises:
            ValueError: No numbers of tokens do.
        """
        into, out = (Decimal(str(price)) for price in PER_MILLION[arm])
        units = Decimal(repr(float(self.dollars[row, arm]))) * MILLION / into
        whole, ratio = int(units), int(out / into)
        if whole != units or ratio * into != out:
            raise ValueError(f"no tokens cost {self.dollars[row, arm]} dollars at {into} and {out} a million.")
        written = max(whole - len(self.prompts[row]) // 4, 0) // ratio
        return whole - ratio * written, written

    def most_written(self, arm: int) -> int:
        """Return the largest number of tokens in an answer of a model."""
        return max(self.usage(row, arm)[1] for row in range(len(self.prompts)))


def table_of_wheel() -> PromptTable:
    """Return the prompts of the wheel."""
    rows, _ = read_rows()
    outcomes = outcomes_of(rows)
    return PromptTable([row["prompt"] for row in rows], outcomes[:, 0], outcomes[:, 1])


class TableUpstream:
    """An upstream that answers from a table; an ASGI application.

    Args:
        table: The table.
    """

    def __init__(self, table: PromptTable) -> None:
        self._table = table
        self._rows = {prompt: row for row, prompt in enumerate(table.prompts)}

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer a chat completion."""
        if scope["type"] != "http":
            return
        request = json.loads(await read_parts(receive, 2**24))
        row, arm = self._rows[request["messages"][-1]["content"]], MODELS.index(request["model"])
        read, written = self._table.usage(row, arm)
        message = {"role": "assistant", "content": repr(float(self._table.rewards[row, arm]))}
        answer = {
            "id": str(row),
            "object": "chat.completion",
            "created": 1,
            "model": MODELS[arm],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
        }
        body = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def reward_of(request: dict[str, Any], answer: dict[str, Any], seconds: float) -> float:
    """Return the reward of an answer, which is its text: the reward function of the proxy."""
    return float(answer["choices"][0]["message"]["content"])


def upstreams_toml(table: PromptTable, address: str) -> str:
    """Return the upstreams of the proxy in TOML."""
    entries = []
    for arm, model in enumerate(MODELS):
        into, out = PER_MILLION[arm]
        price = f'{{ input = "{into}", output = "{out}" }}'
        most = max(table.most_written(arm), 1)
        entries.append(
            f'[[upstream]]\narm = "{model}"\nmodel = "{model}"\nurl = "{address}/v1"\nmax_tokens = {most}\n'
            f"price = {price}\n"
        )
    return "\n".join(entries)


def most_dollars(table: PromptTable) -> dict[str, str]:
    """Return the maximum cost of a request by model: that of the longest prompt and the longest answer."""
    longest = max(len(prompt.encode()) for prompt in table.prompts) + 200  # and what is around it
    found = {}
    for arm, model in enumerate(MODELS):
        into, out = (Decimal(str(price)) for price in PER_MILLION[arm])
        found[model] = f"{(longest * into + table.most_written(arm) * out) / MILLION:f}"
    return found


def campaign_of(table: PromptTable, kind: str, seed: int) -> Row:
    """Return the settings of a campaign."""
    features = {"features": PROMPT_FEATURES, "policy": None} if kind == SEEING else {"policy": {"policy": "Adaptive"}}
    return {
        "arms": list(MODELS),
        "budget": {"usd": f"{Decimal(str(RATE)) * len(table.prompts):f}"},
        "cost_max": {"usd": most_dollars(table)},
        "horizon": len(table.prompts),
        "seed": seed,
        **features,
    }


class PromptClient:
    """Sends prompts to the proxy, each client on a connection of its own.

    Args:
        url: The address of the proxy.
        key: The driftsack key.
        campaign: The campaign.
    """

    def __init__(self, url: str, key: str, campaign: str) -> None:
        self._parts, self._campaign = urllib.parse.urlsplit(url), campaign
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def send_all(self, prompts: Sequence[str], clients: int) -> float:
        """Send prompts in about their order, and return the sum of the rewards."""
        left, model = iter(prompts), f"driftsack/{self._campaign}"

        def client(_: int) -> float:
            connection, earned = http.client.HTTPConnection(self._parts.hostname or "", self._parts.port, 60), 0.0
            for prompt in left:  # shared by the threads
                body = {"model": model, "messages": [{"role": "user", "content": prompt}]}
                connection.request("POST", "/v1/chat/completions", json.dumps(body), self._headers)
                answer = connection.getresponse()
                content = json.loads(answer.read())
                if answer.status == 200:
                    earned += reward_of(body, content, 0.0)
                elif answer.status not in (402, 429):
                    raise RuntimeError(f"status {answer.status}: {content}")
            connection.close()
            return earned

        with ThreadPoolExecutor(clients) as threads:
            return sum(threads.map(client, range(clients)))


@contextmanager
def proxy(directory: Path, table: PromptTable, service: str, upstream: str, names: dict[str, str]) -> Iterator[str]:
    """Run a proxy with several campaigns, each with its kind."""
    port, path = free_port(), directory / "proxy.toml"
    routes = [
        f'[[campaigns]]\nname = "{name}"\nfeatures = "{SEEING if kind == SEEING else ""}"\n'
        for name, kind in names.items()
    ]
    head = f'service = "{service}"\nport = {port}\nreward = "{HERE}:reward_of"\nfallback = false\n'
    path.write_text("\n".join([head, *routes, upstreams_toml(table, upstream)]))
    with (directory / "proxy.err").open("wb") as errors:
        command = [sys.executable, "-m", "driftsack", "proxy", str(path)]
        process = subprocess.Popen(command, stdout=errors, stderr=errors)
    url = f"http://127.0.0.1:{port}"
    try:
        while call(url, "", "GET", "/healthz")[0] != 200:
            if process.poll() is not None:
                raise RuntimeError((directory / "proxy.err").read_text()[-2000:])
        yield url
    finally:
        process.terminate()
        process.wait()


def spent_of(service: Process, campaign: str) -> float:
    """Return the share of its budget that a campaign has spent, once no decision is open."""
    while call(service.url, service.key, "GET", f"/v1/campaigns/{campaign}")[1]["pending"]:
        pass
    budget = call(service.url, service.key, "GET", f"/v1/campaigns/{campaign}/budgets")[1]["budgets"][0]
    return float(Decimal(budget["spent"]) / Decimal(budget["granted"]))


def played(
    table: PromptTable, seeds: Sequence[int], clients: int, directory: Path, progress: Callable[[str], None]
) -> list[Row]:
    """Route all prompts in an order for each seed, with and without features; return a row for each order."""
    names = {f"{kind}-{seed}": kind for seed in seeds for kind in (BLIND, SEEING)}
    requests, rows = Requests(np.empty((0, 0)), np.empty((0, 0)), table.rewards, table.dollars), []
    service = Process(directory, str(directory / "prompts.db"))
    config = uvicorn.Config(TableUpstream(table), log_level="critical", timeout_keep_alive=3600)
    with running(None, config) as upstream, proxy(directory, table, service.url, upstream, names) as url:
        for seed in seeds:
            order = generator(seed).permutation(len(table.prompts))
            row: Row = {"order": seed, **fixed_rewards(requests, order, seed)}
            for kind in (BLIND, SEEING):
                name = f"{kind}-{seed}"
                progress(f"order {seed}: {kind}")
                open_campaign(service.url, service.key, name, **campaign_of(table, kind, seed))
                earned = PromptClient(url, service.key, name).send_all([table.prompts[k] for k in order], clients)
                row |= {kind: earned / len(order), f"{kind}: spent": spent_of(service, name)}
            rows.append(row)
    service.stop()
    return rows


def fixed_rewards(requests: Requests, order: Any, seed: int) -> Row:
    """Return the reward per request of the best single model, until its money is gone."""
    task = Task(requests, order, *drifted(requests, "none"), RATE, "none", seed, None)
    told: list[Told] = [fixed_entrant(arm).route(task) for arm in range(len(MODELS))]
    return {"best model": max(one.reward for one in told)}


def prompt_bars(rows: Sequence[Row]) -> list[Row]:
    """Compare the rows of :func:`played` with what must hold.

    >>> row = {"order": 0, "blind": 0.8, "prompt": 0.9, "best model": 0.85, "blind: spent": 0.9, "prompt: spent": 1.0}
    >>> [bar["holds"] for bar in prompt_bars([row, row])]
    ['yes', 'yes', 'yes']
    """
    seeing, blind, fixed = (np.array([row[name] for row in rows]) for name in (SEEING, BLIND, "best model"))
    spent = max(row[f"{kind}: spent"] for row in rows for kind in (BLIND, SEEING))
    ratios = seeing / blind.mean()
    return [
        bar_row(
            "reward with features over Adaptive without", float(ratios.mean()), LEAST, error=standard_error(ratios)
        ),
        bar_row("reward with features over the best model", float(seeing.mean() / fixed.mean()), 1.0),
        bar_row("most spent over budget", spent, 1.0, at_least=False),
    ]
