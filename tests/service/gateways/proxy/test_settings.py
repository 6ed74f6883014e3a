"""The settings of the proxy are checked when they are read."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from driftsack.core.errors import SettingError
from driftsack.service.gateways.proxy.clients import ClientPool, ServiceAsk
from driftsack.service.gateways.proxy.prices import Prices, Usage, usage_of
from driftsack.service.gateways.proxy.settings import Upstream, read_settings
from driftsack.service.gateways.proxy.worst_case import Demand, fitting_limit, worst_case
from tests.support.gateways import PRICE, gate

ONE = "upstream = [{arm = 'a', url = '%s', model = 'm', price = {input = '1', output = '2'}%s}]"
FINE = ONE % ("http://x", "")


def read(directory: Path, text: str) -> Any:
    (directory / "proxy.toml").write_text(text)
    return read_settings(directory / "proxy.toml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("campaign = 'x'", "upstream"),
        ("campaign = 'x'\nnonsense = 1\nupstream = []", "nonsense"),
        ("campaign = 'x'\n" + ONE % ("ftp://x", ""), "http"),
        ("campaign = 'x'\n" + ONE % ("http://x", ", key_env = 'NO_SUCH_VARIABLE'"), "NO_SUCH_VARIABLE"),
        ("campaign = 'x'\n" + ONE % ("http://x", ", protocol = 'anthropic', serves = ['embeddings']"), "only chat"),
        ("campaign = 'x'\nreward = 'no:such'\n" + FINE, "module:function"),
        ("campaign = ", "proxy"),
        (FINE, "either campaign"),
        ("campaign = 'x'\n" + FINE + "\n[[campaigns]]\nname = 'y'", "either campaign"),
        (FINE + "\n[[campaigns]]\nname = 'y'\narms = ['b']", "'b', which is no upstream's arm"),
        ("campaign = 'x'\n" + FINE.replace("'1'", "1"), "price.input"),
        ("campaign = 'x'\n" + FINE.replace(", price = {input = '1', output = '2'}", ""), "no price"),
        ("campaign = 'x'\nprice_table = 'none.toml'\n" + FINE, "none.toml cannot be read"),
    ],
)
def test_settings_are_checked(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        read(tmp_path, text)


def test_two_upstreams_must_have_two_arms(tmp_path: Path) -> None:
    one = FINE.removeprefix("upstream = [").removesuffix("]")
    with pytest.raises(SettingError, match="different arm"):
        read(tmp_path, f"campaign = 'x'\nupstream = [{one}, {one}]")


def test_prices_come_from_a_table(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('m = { input = "3", output = "4", cached_input = "0.3" }')
    text = FINE.replace(", price = {input = '1', output = '2'}", "")
    found = read(tmp_path, f"campaign = 'x'\nprice_table = 'prices.toml'\n{text}")
    assert found.upstream[0].prices() == Prices("3", "4", cached_input="0.3")


def test_prices_change_on_their_day(tmp_path: Path) -> None:
    dated = "[{input = '1', output = '2'}, {input = '5', output = '6', since = 2026-12-01}]"
    found = read(tmp_path, "campaign = 'x'\n" + FINE.replace("{input = '1', output = '2'}", dated)).upstream[0]
    assert found.prices(datetime.date(2026, 11, 30)).input == "1"
    assert found.prices(datetime.date(2026, 12, 1)).input == "5"
    only = Upstream("a", "http://x", "m", [Prices("7", since=datetime.date(2100, 1, 1))])
    assert only.prices().input == "7"  # the first one, rather than none


def test_each_kind_of_token_has_its_price() -> None:
    prices = Prices("1", "10", "0.1", "2", "20", "30", "40", request="0.01")
    usage = Usage(1, 1, cached=1, written=1, reasoning=1, audio_in=1, audio_out=1)
    assert prices.cost(usage) == Decimal("0.01") + Decimal("103.1") / 10**6
    assert prices.cost(Usage(1, 0)) == Decimal("0.010001")
    assert Prices("0.0001").cost(Usage(1, 0)) == Decimal("0.000000001")  # rounded up
    # The worst case takes the largest price that a token of text may have.
    assert prices.largest(writes_cache=False) == (Decimal(1) / 10**6, Decimal(20) / 10**6)
    assert prices.largest(writes_cache=True)[0] == Decimal(2) / 10**6
    assert Prices("1").largest(writes_cache=True)[0] == Decimal(2) / 10**6


@pytest.mark.parametrize(
    ("into", "out", "parts"),
    [(None, 1, {}), (-1, 1, {}), (1.0, 1, {}), (1, True, {}), (10**12, 1, {}), (1, 1, {"reasoning": 2}), ("1", 1, {})],
)
def test_a_usage_that_contradicts_itself_is_none(into: Any, out: Any, parts: dict[str, Any]) -> None:
    assert usage_of(into, out, parts) is None


@pytest.mark.parametrize("answers", [1, 3])
@pytest.mark.parametrize("most", ["0.0001", "0.002", "0.0123", "1", "50"])
def test_the_fitting_limit_is_the_largest_that_fits(answers: int, most: str) -> None:
    demand, prices, money = Demand(200, None, answers, extra=10), Prices("1", "10", request="0.001"), Decimal(most)
    limit = fitting_limit(demand, prices, 10**6, money)
    if limit is None:
        assert worst_case(demand, prices, 16) > money
        return
    assert worst_case(demand, prices, limit) <= money
    assert limit == 10**6 or worst_case(demand, prices, limit + 1) > money


def test_free_answers_and_embeddings_have_no_limit_to_lower() -> None:
    assert fitting_limit(Demand(100, None), Prices("1"), 10**6, Decimal("0.0001")) == 10**6
    assert fitting_limit(Demand(100, None, answers=0), Prices("1"), 4096, Decimal("0.00001")) is None


def test_the_policy_is_told_of_prices_that_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    today = datetime.datetime.now(datetime.UTC).date()
    later = [Prices("1", "10"), Prices("2", "20", since=today)]
    adaptive = {"policy": {"policy": "Adaptive"}, "fallback": "fine", "horizon": 100}
    asked: list[Any] = []
    usual = ClientPool.ask

    async def noted(self: ClientPool, key: str, campaign: str, terms: ServiceAsk) -> Any:
        asked.append(terms.listed)
        return await usual(self, key, campaign, terms)

    monkeypatch.setattr(ClientPool, "ask", noted)
    cases = {"dated": (later, {"usd": {"fine": Decimal("0.012")}}, 2), "constant": (PRICE, None, 1)}
    for name, (price, expected, factor) in cases.items():
        (tmp_path / name).mkdir()
        with gate(str(tmp_path / name), ["fine"], adaptive, {"price": price}) as found:
            assert found.complete("fine").choices
            assert found.told().spent == factor * found.upstream.charged()
            assert asked.pop() == expected
