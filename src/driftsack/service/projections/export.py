"""Exports the outcomes in a journal as a log for ``driftsack advise`` and ``ds.logs.read``."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.logs.contexts import plain_columns
from driftsack.service.domain import journal
from driftsack.service.domain.book import Record
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.config import Config
from driftsack.service.domain.features import bytes_of, vector_of
from driftsack.service.runtime.recovery import from_beginning
from driftsack.service.store.interface import CampaignRow, Store, StoreError


def find_row(store: Store, name: str) -> CampaignRow:
    """Return the row of a campaign in a store.

    Raises:
        StoreError: There is no such campaign.
    """
    row = store.campaign(name)
    if row is None:
        raise StoreError(f"the store has no campaign {name!r}; it has {store.names()[:10]}.")
    return row


class Outcomes(NamedTuple):
    """The outcomes in a journal, in the order in which they were observed or asked for.

    Attributes:
        config: The settings of the campaign.
        rows: Time, arm, reward, propensity and costs; the propensity is None if it is not known.
        contexts: (n, f) the encoded features of each request; None without features.
        raw: (n,) the context of each request as it was sent, in JSON, empty where it was deleted; None unless the
            campaign keeps contexts.
    """

    config: Config
    rows: list[tuple[object, ...]]
    contexts: Floats | None
    raw: list[str] | None


def outcomes(store: Store, name: str) -> Outcomes:
    """Return the observations, told decisions and skipped requests of a campaign, without archived events.

    Earlier releases wrote probabilities that exceed 1 by rounding; they are clipped.
    """
    row = find_row(store, name)
    config, base = Config.from_bytes(row.config), store.base(name)
    arms, zeros = list(config.arms), [0.0] * len(config.budget)
    asked: dict[int, journal.Asked | Record] = {}
    rows: dict[int, tuple[object, ...]] = {}
    observed = before = 0
    seen: dict[int, bytes] = {}  # contexts
    if base is not None:
        first, _ = from_beginning(store, row)
        arms, asked = list(first.problem.arm_names), dict(first.book.open)
        seen = open_contexts(first)
        observed = before = -first.book.observed
    # Match outcomes with their decisions. Observations come first, since a campaign watches before it decides.
    for segment in store.segments(name, 0 if base is None else base.seq):
        for event in journal.decode(segment.body):
            if isinstance(event, journal.ArmAdded):
                arms.append(event.name)
            elif isinstance(event, journal.Observed):
                observed -= 1
                rows[observed] = (event.at / 1000, arms[event.arm], event.reward, event.probability, *event.costs)
                seen[observed] = event.context or b""
            elif isinstance(event, journal.Asked):
                seen[event.number] = event.context or b""
                if event.arm == SKIP:
                    rows[event.number] = (event.at / 1000, "", 0.0, event.probability, *zeros)
                else:
                    asked[event.number] = event
            elif isinstance(event, journal.Told):
                choice = asked.pop(event.number)
                arm = arms[choice.arm or 0]
                rows[event.number] = (choice.at / 1000, arm, event.reward, min(choice.probability, 1.0), *event.costs)
    order = [*range(before - 1, observed - 1, -1), *sorted(number for number in rows if number > 0)]
    encoder = config.problem().encoder
    order = order if encoder is None else [number for number in order if number in seen]
    vectors = [vector_of(seen[number]) for number in order] if encoder is not None else []
    contexts = None if encoder is None else np.reshape(vectors, (len(order), encoder.size))
    kept = {} if config.keep_raw is None else store.contexts(name, observed, max(order, default=0))
    raw = None if config.keep_raw is None else [kept.get(number, b"").decode() for number in order]
    return Outcomes(config, [rows[number] for number in order], contexts, raw)


def open_contexts(campaign: Campaign) -> dict[int, bytes]:
    """Return the encoded contexts of the open decisions of a campaign, which its learner keeps."""
    held = ((number, campaign.decisions.get(record.round)) for number, record in campaign.book.open.items())
    return {number: bytes_of(made.context) for number, made in held if made is not None and made.context is not None}


def as_csv(store: Store, name: str) -> str:
    """Return the outcomes of a campaign as CSV, with columns ``context_NAME`` if requests have features.

    The column ``raw_context`` has contexts as they were sent, if the campaign keeps them.
    The column of propensities is omitted if one of them is not known.
    """
    found = outcomes(store, name)
    header = ["time", "arm", "reward", "propensity", *(f"cost_{resource}" for resource in found.config.budget)]
    table = [[*row] for row in found.rows]
    encoder = found.config.problem().encoder
    if encoder is not None and found.contexts is not None:
        columns = plain_columns(encoder, found.contexts)
        header += columns
        table = [[*row, *values] for row, values in zip(table, zip(*columns.values(), strict=True), strict=True)]
    if found.raw is not None:
        header, table = [*header, "raw_context"], [[*row, raw] for row, raw in zip(table, found.raw, strict=True)]
    if any(row[3] is None for row in found.rows):
        header, table = header[:3] + header[4:], [row[:3] + row[4:] for row in table]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    for row in table:  # one call for all rows would not let other threads run
        writer.writerow(row)
    return text.getvalue()
