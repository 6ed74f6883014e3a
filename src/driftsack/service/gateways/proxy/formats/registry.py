"""The formats by name and by path, and the translation between a caller's format and an upstream's."""

from __future__ import annotations

from typing import Final

from driftsack.service.gateways.proxy.formats.chat import Chat
from driftsack.service.gateways.proxy.formats.chat_to_messages import ChatToMessages
from driftsack.service.gateways.proxy.formats.completions import Completions
from driftsack.service.gateways.proxy.formats.embeddings import Embeddings
from driftsack.service.gateways.proxy.formats.messages import Messages
from driftsack.service.gateways.proxy.formats.messages_to_chat import MessagesToChat
from driftsack.service.gateways.proxy.formats.responses import Responses
from driftsack.service.gateways.proxy.formats.translation import Translation
from driftsack.service.gateways.proxy.formats.wire_format import WireFormat
from driftsack.service.gateways.proxy.settings import Upstream

FORMATS: Final = {wire.name: wire for wire in (Chat(), Completions(), Embeddings(), Responses(), Messages())}
BY_PATH: Final = {f"/v1{wire.path}": wire for wire in FORMATS.values()}


def translation_of(wire: WireFormat, upstream: Upstream) -> Translation:
    """Return the translation between the format of a caller and that of an upstream."""
    if upstream.protocol == "anthropic" and wire.name == "chat":
        return ChatToMessages(wire, FORMATS["messages"])
    if upstream.protocol == "openai" and wire.name == "messages":
        return MessagesToChat(wire, FORMATS["chat"])
    return Translation(wire)
