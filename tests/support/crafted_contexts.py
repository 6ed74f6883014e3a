"""Crafted contexts: bodies of requests that a campaign with features must refuse by name, without any change.

Each body has one fault, in a feature whose name must be in the answer. The short form is in
tests/service/domain/test_crafted_contexts.py and the large one is ``python -m lab context-requests``.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.service.domain import journal
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.refusals import Refusal
from driftsack.service.web.api.requests import decode
from driftsack.service.web.api.routes import HOT_LIMIT, TABLE
from tests.support.campaigns import START
from tests.support.contextual_campaigns import Traffic, seeing

ASK: Final = TABLE["POST", ("", "v1", "campaigns", "{}", "decisions")]
CHECKED_EVERY: Final = 500  # requests after which the whole state is compared
NUMBERS: Final = ("tokens", "age")
CATEGORIES: Final = ("kind", "tier")


class Crafted(NamedTuple):
    """A body with one fault.

    Attributes:
        body: The JSON text.
        name: The feature that the answer must name.
    """

    body: bytes
    name: str


def text_of(context: dict[str, Any], name: str, value: str) -> Crafted:
    """Return a request in which one feature has a value that is given as JSON text."""
    parts = [f"{json.dumps(key)}: {json.dumps(one)}" for key, one in context.items() if key != name]
    parts.append(f"{json.dumps(name)}: {value}")
    return Crafted(f'{{"context": {{{", ".join(parts)}}}}}'.encode("utf-8", "surrogatepass"), name)


def not_finite(rng: Generator, context: dict[str, Any]) -> Crafted:
    """NaN and infinities, alone or in an embedding, as some libraries write them."""
    value = str(rng.choice(["NaN", "Infinity", "-Infinity"]))
    name = str(rng.choice([*NUMBERS, "prompt"]))
    return text_of(context, name, value if name != "prompt" else f"[0.5, 0.5, {value}, 0.5, 0.5, 0.5]")


def too_large(rng: Generator, context: dict[str, Any]) -> Crafted:
    """Numbers up to the largest float and beyond, in a number or an embedding."""
    digits = int(rng.integers(11, 400))
    number = str(rng.choice(["1e308", "-1e308", f"1e{digits % 300 + 10}", "9" * digits, f"-{'9' * digits}.5"]))
    name = str(rng.choice([*NUMBERS, "prompt"]))
    return text_of(context, name, number if name != "prompt" else f"[0, 0, 0, {number}, 0, 0]")


def wrong_type(rng: Generator, context: dict[str, Any]) -> Crafted:
    """Values of another type than the feature's."""
    name = str(rng.choice([*NUMBERS, *CATEGORIES, "prompt"]))
    values = ["true", "false", '{"a": 1}', "[]", "[[1, 2], [3]]", '[["x"]]', '["1", "2", "3", "4", "5", "6"]', "{}"]
    values += ['"text"', '"12"', "[1]"] if name in NUMBERS or name == "prompt" else ["0.5", "1e3", "[1, 2]"]
    values += ["[0, 0, 0, 0, 0, true]", "[0, 0, 0, 0, 0, null]", "[1, 2, 3]", "7"] if name == "prompt" else []
    values += ["null"] if name in ("tokens", "kind", "prompt") else []
    return text_of(context, name, str(rng.choice(np.array(values, dtype=object))))


def nested(rng: Generator, context: dict[str, Any]) -> Crafted:
    """Deeply nested values."""
    depth, name = int(rng.integers(2, 300)), str(rng.choice([*NUMBERS, *CATEGORIES, "prompt"]))
    begin, end = ("[", "]") if rng.random() < 0.5 else ('{"a":', "}")
    return text_of(context, name, begin * depth + "1" + end * depth)


def many_features(rng: Generator, context: dict[str, Any]) -> Crafted:
    """Up to ten thousand features that were not declared, as far as a body may be large."""
    count = int(rng.integers(1, 10_001))
    extra = {f"f{k}": 1 for k in range(count)}
    body = json.dumps({"context": {**extra, **context}}, separators=(",", ":")).encode()
    if len(body) > HOT_LIMIT:  # is refused by its size before it is parsed
        extra = {f"f{k}": 1 for k in range(4000)}
        body = json.dumps({"context": {**extra, **context}}, separators=(",", ":")).encode()
    return Crafted(body, "f0")


def huge_text(rng: Generator, context: dict[str, Any]) -> Crafted:
    """Long strings, with characters of every kind."""
    name, length = str(rng.choice([*CATEGORIES, *NUMBERS])), int(rng.integers(201, 10_000))
    letter = str(rng.choice(["x", "é", "\u2028", "\U0001f600", "\\", '"', "\x7f"]))
    return text_of(context, name, json.dumps(letter * length))


def missing(rng: Generator, context: dict[str, Any]) -> Crafted:
    """A feature that is not optional is left out."""
    name = str(rng.choice(["tokens", "kind", "prompt"]))
    return Crafted(json.dumps({"context": {k: v for k, v in context.items() if k != name}}).encode(), name)


FAULTS: Final[tuple[Callable[[Generator, dict[str, Any]], Crafted], ...]] = (
    not_finite,
    too_large,
    wrong_type,
    nested,
    many_features,
    huge_text,
    missing,
)


class Outcome(NamedTuple):
    """What became of the requests.

    Attributes:
        refused: The number of refused requests, by fault.
        valid: The number of valid requests in between, all decided.
        failures: Requests that were not refused by name, or changed something.
    """

    refused: Counter[str]
    valid: int
    failures: list[str]


def attack(requests: int, seed: int = 0) -> Outcome:
    """Send crafted contexts to a campaign, with a valid request now and then.

    Args:
        requests: The number of crafted requests.
        seed: Determines the requests.
    """
    rng, traffic, now = np.random.default_rng(seed), Traffic(seed), Now(START, 0)
    campaign = Campaign.open(seeing(horizon=10**9, budget={"usd": "100000000"}), now)
    campaign.take()
    refused, failures, valid = Counter[str](), list[str](), 0
    digest = campaign.learner.state_hash()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning is no way to refuse
        for k in range(requests):
            fault = FAULTS[int(rng.integers(len(FAULTS)))]
            case = fault(rng, traffic.context())
            problem = verdict(campaign, case, now)
            if problem:
                failures.append(f"{fault.__name__} {k}: {problem}; {case.body[:200]!r}")
            refused[fault.__name__] += not problem
            if k % CHECKED_EVERY == 0:
                if campaign.learner.state_hash() != digest:
                    failures.append(f"the state changed before request {k}")
                body = json.dumps({"context": traffic.context()}).encode()
                valid += campaign.handle(decode(ASK, body), now).decision is not None
                campaign.take()
                digest = campaign.learner.state_hash()
    return Outcome(refused, valid, failures)


def verdict(campaign: Campaign, case: Crafted, now: Now) -> str:
    """Say what is wrong with the answer to a crafted request; nothing if it is refused by name."""
    book = campaign.book
    before = (book.seq, book.number, book.pending, len(campaign.events))
    try:
        campaign.handle(decode(ASK, case.body), now)
    except Refusal as refusal:
        if (refusal.status, refusal.kind) != (422, "invalid"):
            return f"refused as {refusal.status} {refusal.kind}: {refusal.detail:.200}"
        if f"'{case.name}'" not in refusal.detail:
            return f"{case.name} is not named: {refusal.detail:.200}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    else:
        return "it was accepted"
    if before != (book.seq, book.number, book.pending, len(campaign.events)):
        return "something changed"
    return "" if len(journal.encode(campaign.events)) == 1 else "events were left"
