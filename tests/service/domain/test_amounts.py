"""An integer means whole units everywhere, and only stored settings of earlier releases count in millionths."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.amounts import amount_of
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.config import Config
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.recovery import encode_config
from tests.support.campaigns import START, Desk, small

NOW = Now(START, 0)
INTEGERS: dict[str, Any] = {"budget": {"usd": 200}, "cost_max": {"usd": {"small": 1, "large": 2}}}
TEXTS: dict[str, Any] = {"budget": {"usd": "200"}, "cost_max": {"usd": {"small": "1", "large": "2"}}}


def test_an_integer_means_whole_units() -> None:
    assert amount_of(200) == amount_of("200") == 200.0
    desk = Desk(small(**INTEGERS))
    assert desk.budget().granted == "200"
    number = desk.ask(caps={"usd": 1}).decision
    assert desk.do(ms.Tell(1.0, {"usd": 1}), number).charged == {"usd": "1"}
    desk.do(ms.Grant({"usd": 50}))
    assert desk.budget().granted == "250"


def test_new_campaigns_store_decimal_strings() -> None:
    campaign = Campaign.open(small(**INTEGERS), NOW)
    assert campaign.config == small(**TEXTS)
    assert Config.from_bytes(encode_config(campaign.config)) == campaign.config
    (event,) = journal.decode(journal.encode(campaign.take()))
    assert event.config == campaign.config


def test_integers_in_stored_settings_are_still_micro_units() -> None:
    """Such settings were written by releases that read an integer as micro-units."""
    row = msgspec.msgpack.encode(small(budget={"usd": 200_000}, cost_max={"usd": 1_000}))
    old = Config.from_bytes(row)
    assert (old.budget, old.cost_max) == ({"usd": "0.2"}, {"usd": "0.001"})
    event = {"type": "opened", "at": START, "tick": 0, "config": msgspec.msgpack.decode(row)}
    (opened,) = journal.decode(msgspec.msgpack.encode([event]))
    assert opened.config == old


@pytest.mark.parametrize("given", ["0.01\n", "1\n", "", "-1", "1e3", " 1", -1, "1.", ".5", "٣"])
def test_other_forms_are_refused(given: str | int) -> None:
    with pytest.raises(Refusal):
        amount_of(given)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"amounts": {"usd": given}}, ms.Grant)


@pytest.mark.parametrize("rollover", ["0.5\n", "1\n"])
def test_a_share_has_no_line_break(rollover: str) -> None:
    settings = {**msgspec.to_builtins(small()), "refill": {"rollover": rollover}}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, Config)
