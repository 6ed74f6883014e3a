"""Exports the outcomes in a journal as a log for ``driftsack advise`` and ``ds.logs.read``."""

from __future__ import annotations

import csv
import io

from driftsack.core.decision import SKIP
from driftsack.service.domain import journal
from driftsack.service.domain.book import Record
from driftsack.service.domain.config import Config
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


def as_csv(store: Store, name: str) -> str:
    """Return the observations, told decisions and skipped requests of a campaign as CSV, without archived events.

    Earlier releases wrote probabilities that exceed 1 by rounding; they are clipped.

    Rows are in the order in which they were observed or asked, with time, arm, reward, propensity and costs. The column
    of propensities is omitted if one of them is not known.
    """
    row = find_row(store, name)
    config, base = Config.from_bytes(row.config), store.base(name)
    arms, zeros = list(config.arms), [0.0] * len(config.budget)
    asked: dict[int, journal.Asked | Record] = {}
    if base is not None:
        first, _ = from_beginning(store, row)
        arms, asked = list(first.problem.arm_names), dict(first.book.open)
    rows: dict[int, tuple[object, ...]] = {}
    observed: list[tuple[object, ...]] = []  # before the first decision
    # Match outcomes with their decisions.
    for segment in store.segments(name, 0 if base is None else base.seq):
        for event in journal.decode(segment.body):
            if isinstance(event, journal.ArmAdded):
                arms.append(event.name)
            elif isinstance(event, journal.Observed):
                observed.append((event.at / 1000, arms[event.arm], event.reward, event.probability, *event.costs))
            elif isinstance(event, journal.Asked) and event.arm == SKIP:
                rows[event.number] = (event.at / 1000, "", 0.0, event.probability, *zeros)
            elif isinstance(event, journal.Asked):
                asked[event.number] = event
            elif isinstance(event, journal.Told):
                choice = asked.pop(event.number)
                arm = arms[choice.arm or 0]
                rows[event.number] = (choice.at / 1000, arm, event.reward, min(choice.probability, 1.0), *event.costs)
    # Write observations first, since a campaign watches before it decides.
    text = io.StringIO()
    writer = csv.writer(text)
    table: list[tuple[object, ...]] = [
        ("time", "arm", "reward", "propensity", *(f"cost_{resource}" for resource in config.budget)),
        *observed,
        *(rows[number] for number in sorted(rows)),
    ]
    if any(each[3] is None for each in observed):
        table = [(*each[:3], *each[4:]) for each in table]
    writer.writerows(table)
    return text.getvalue()
