"""The worst case of requests whose price is easy to take for too little, and bodies that are hard to read."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from driftsack.service.gateways.proxy import offers as offers_module
from driftsack.service.gateways.proxy.attempt import encoded
from driftsack.service.gateways.proxy.formats import wire_format as wf
from driftsack.service.gateways.proxy.formats.registry import FORMATS
from driftsack.service.gateways.proxy.offers import CallerRequest, Offer, offers
from driftsack.service.gateways.proxy.prices import Prices, Usage
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.settings import Upstream
from driftsack.service.gateways.proxy.worst_case import TOOLS
from tests.support.gateways import HELLO, PRICE

SPOKEN = Prices("1", "10", audio_output="80")


def asked(name: str, table: list[Upstream], **body: Any) -> CallerRequest:
    """Return a request of a format."""
    return CallerRequest("", "chat", FORMATS[name], {"model": "m", **body}, table)


def only(name: str, price: Prices = PRICE, **body: Any) -> Offer:
    """Return the offer of the only upstream."""
    table = [Upstream("a", "http://localhost", "m", price, serves=[name])]  # type: ignore[list-item]
    (found,) = offers(asked(name, table, **body))
    return found


def test_audio_in_the_answer_is_reserved_at_its_own_price() -> None:
    offer = only("chat", SPOKEN, messages=HELLO, max_tokens=4000, modalities=["text", "audio"], audio={"voice": "x"})
    limit = offer.fitting(Decimal("0.1"))
    assert limit == 1250
    assert SPOKEN.cost(Usage(0, 0, audio_out=limit)) <= Decimal("0.1")
    assert offer.most() == Decimal("0.32")
    # An answer of text alone has no audio.
    assert only("chat", SPOKEN, messages=HELLO, max_tokens=4000).fitting(Decimal("0.1")) == 4000


def test_each_tool_with_a_description_of_the_vendor_extends_the_prompt() -> None:
    own = {"name": "weather", "input_schema": {}}
    built_in = [{"type": "bash_20250124", "name": "bash"}, {"type": "computer_20250124", "name": "computer"}]
    kinds = ("custom", "bash_", "computer_")
    assert wf.tools_tokens({"tools": [own] * 20}, kinds) == TOOLS
    assert wf.tools_tokens({"tools": [own, *built_in]}, kinds) == 3 * TOOLS


def test_each_prompt_of_a_list_has_answers_of_its_own() -> None:
    given: dict[str, Any] = {"max_tokens": 5, "n": 2}
    assert only("completions", prompt=[1, 2, 3], **given).demand.answers == 2  # the tokens of one prompt
    assert only("completions", prompt=["a", "b"], **given).demand.answers == 4
    assert only("completions", prompt=[1, "a", "b"], **given).demand.answers == 6


def test_a_body_is_encoded_once_for_each_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, sizes = encoded, []

    def counted(body: dict[str, Any]) -> bytes:
        sizes.append(len(usual(body)))
        return usual(body)

    monkeypatch.setattr(offers_module, "encoded", counted)
    table = [Upstream(f"a{k}", "http://localhost", "m", PRICE) for k in range(20)]
    table += [Upstream(f"b{k}", "http://localhost", "m", PRICE, "anthropic") for k in range(20)]
    found = offers(asked("chat", table, messages=HELLO, max_tokens=5))
    assert [offer.upstream.arm for offer in found] == [upstream.arm for upstream in table]
    assert len(sizes) == 2


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize("depth", [700, 50_000])
def test_a_body_that_is_nested_too_deeply_is_the_callers_fault(protocol: Any, depth: int) -> None:
    content: Any = "x"
    for _ in range(depth):
        content = {"type": "tool_result", "content": content}
    body = {"messages": [{"role": "user", "content": content}]}
    with pytest.raises(Rejected) as caught:
        offers(asked("chat", [Upstream("a", "http://localhost", "m", PRICE, protocol)], **body))
    assert caught.value.status == 400
