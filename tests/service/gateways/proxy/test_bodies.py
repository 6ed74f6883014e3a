"""Bodies of every shape: they are offered to upstreams or rejected, and nothing else happens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftsack.service.gateways.proxy import offers as offers_module
from driftsack.service.gateways.proxy.formats.registry import FORMATS
from driftsack.service.gateways.proxy.offers import CallerRequest, Offer
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.settings import Upstream
from driftsack.service.gateways.proxy.worst_case import worst_case
from tests.support.gateways import PRICE
from tests.support.upstream_formats import FORMATS as SPOKEN

NAMES = (
    "text image tool_use tool_result user assistant tool system type role content name id input function arguments "
    "source url base64 {} [] input_schema parameters message image_url tool_calls tool_call_id"
)
HALF_EMOJI = "\ud83d"
WORDS = st.sampled_from([*NAMES.split(), HALF_EMOJI])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


def offers(name: str, body: dict[str, Any]) -> list[Offer]:
    """Return the offers of upstreams of both protocols for a body; none if it is rejected."""
    every = [format_name for format_name in FORMATS if format_name != name] + [name]
    table = [
        Upstream("a", "http://localhost", "m", PRICE, serves=every),  # type: ignore[arg-type]
        Upstream("b", "http://localhost", "m", PRICE, "anthropic"),
    ]

    try:
        return offers_module.offers(CallerRequest("", "chat", FORMATS[name], body, table))
    except Rejected:
        return []


@pytest.mark.parametrize("name", sorted(FORMATS))
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_body_is_offered_or_rejected(name: str, data: st.DataObject) -> None:
    fields = sorted(FORMATS[name].fields)
    chosen = data.draw(st.lists(st.sampled_from(fields), max_size=4, unique=True))
    body = {field: data.draw(JSON) for field in chosen}
    message = st.fixed_dictionaries({"role": WORDS, "content": JSON}, optional={"tool_calls": JSON})
    if name in ("chat", "messages") and "messages" not in body:
        body |= {"messages": data.draw(st.lists(message, min_size=1, max_size=3)), "max_tokens": 5}
    spoken = next(found for path, found in SPOKEN.items() if FORMATS[name].path == f"/{path}")
    for offer in offers(name, body):
        # The bytes of all text are at most those that are reserved.
        assert offer.demand.size >= spoken.bytes_of(body)
        assert worst_case(offer.demand, PRICE, 5) > 0 or not offer.demand.bounded


def test_a_translation_that_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: values of other types are not expected."""
    body = {"messages": [{"role": "user", "content": "x", "tool_calls": 5}]}
    assert [offer.upstream.arm for offer in offers("chat", body)] == ["a"]
    monkeypatch.setattr(offers_module, "UNREADABLE", ())
    with pytest.raises(TypeError):
        offers("chat", body)
