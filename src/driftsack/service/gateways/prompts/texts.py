"""``read_prompt``: the texts of a request in any of the wire formats, and what it has besides texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

SYSTEM: Final = ("system", "developer")  # roles of instructions
INSTRUCTIONS: Final = ("system", "instructions")  # fields of instructions
PROMPTS: Final = ("messages", "input", "prompt")
TEXTS: Final = ("text", "content", "output", "arguments")  # fields of a part that hold text, or further parts
MEDIA: Final = ("image", "audio", "file", "document", "video")  # beginnings of the types of other parts


class PromptText(NamedTuple):
    """What a request consists of.

    Attributes:
        system: The instructions.
        texts: The texts of the conversation, oldest first.
        turns: The number of its messages.
        media: The number of images, recordings and files.
        tools: The number of tools that the model may call.
    """

    system: str
    texts: list[str]
    turns: int
    media: int
    tools: int


def read_prompt(request: Mapping[str, Any]) -> PromptText:
    """Return what a request consists of; values of other types than expected are left out.

    >>> read_prompt({"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello?"}]})
    PromptText(system='Be short.', texts=['Hello?'], turns=1, media=0, tools=0)
    """
    system, texts, turns, media = [], [], 0, 0
    for name in INSTRUCTIONS:
        system += _read(request.get(name))[0]
    for name in PROMPTS:
        given = request.get(name)
        for message in given if isinstance(given, list) else [given]:
            found, others = _read(message)
            if isinstance(message, dict) and message.get("role") in SYSTEM:
                system += found
            elif message is not None:
                texts += found
                turns, media = turns + 1, media + others
    tools = request.get("tools")
    return PromptText("\n".join(system), texts, turns, media, len(tools) if isinstance(tools, list) else 0)


def _read(content: Any) -> tuple[list[str], int]:
    """Return the texts of some content in their order, and the number of its other parts; without recursion."""
    found, media, left = [], 0, [content]
    while left:
        part = left.pop()
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, list):
            left += part[::-1]
        elif isinstance(part, dict):
            kind = part.get("type")
            media += isinstance(kind, str) and kind.removeprefix("input_").startswith(MEDIA)
            left += [part[name] for name in reversed(TEXTS) if name in part]
    return found, media
