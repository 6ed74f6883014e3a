"""The built-in features of a prompt: ``prompt_features`` computes them, ``PROMPT_FEATURES`` declares them.

They need no model and no download: the size and the style of the request, and its words in :func:`hashed_text`. A
campaign that declares ``PROMPT_FEATURES`` learns from them which prompts are worth a better model.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from driftsack.core.errors import SettingError
from driftsack.service.gateways.prompts.hashed_text import LENGTH, LONGEST, hashed_text
from driftsack.service.gateways.prompts.texts import PromptText, read_prompt

Features = Callable[[dict[str, Any]], Mapping[str, Any]]
PROMPT: Final = "prompt"  # the setting that means the built-in features
GROUPS: Final = 8  # of system prompts
LETTER: Final = re.compile(r"[^\W\d_]")
LATIN: Final = "\u024f"  # the last letter of the Latin alphabets
CHARACTERS: Final = {
    "digits": "0123456789",
    "capitals": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "code": "{}[]()<>;=_`\\",
    "commas": ",",
    "stops": ".",
    "colons": ":",
    "quotes": "'\"",
    "spaces": " \t\n",
}
"""ASCII characters whose share of the latest message is a feature."""
PLACES: Final = {name: np.array([ord(one) for one in characters]) for name, characters in CHARACTERS.items()}
SIZES: Final = ("length", "latest", "turns", "lines", "tools", "media")
PROMPT_FEATURES: Final[dict[str, Any]] = {
    "numbers": [*SIZES, "question", "foreign", *CHARACTERS],
    "categories": {"system": ["none", *(str(group) for group in range(GROUPS))]},
    "embeddings": {"words": LENGTH},
    "spare": 0,
}
"""The ``features`` of a campaign whose contexts are those of :func:`prompt_features`."""


def prompt_features(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the features of a request in any of the wire formats.

    ``length`` is the size of the whole request, ``latest`` and ``lines`` that of the latest message, all of them about
    logarithms, as are the numbers of ``turns``, ``tools`` and ``media``. The others are shares of the latest message:
    of digits, capitals and so on, and of letters beyond the Latin alphabets (``foreign``). ``system`` is a hash of the
    instructions.

    >>> found = prompt_features({"messages": [{"role": "user", "content": "What is 17 + 25?"}]})
    >>> found["digits"], found["question"], found["system"], len(found["words"])
    (0.25, 1.0, 'none', 32)
    """
    prompt = read_prompt(request)
    latest = prompt.texts[-1] if prompt.texts else ""
    shown = latest[:LONGEST]
    return {
        "length": magnitude(sum(map(len, prompt.texts)) + len(prompt.system)),
        "latest": magnitude(len(latest)),
        "turns": magnitude(prompt.turns),
        "lines": magnitude(shown.count("\n")),
        "tools": magnitude(prompt.tools),
        "media": magnitude(prompt.media),
        "question": float("?" in shown),
        "foreign": foreign(shown),
        **shares(shown),
        "system": group_of(prompt),
        "words": hashed_text("\n".join(prompt.texts)),
    }


def features_function(given: str | Features | None) -> Features | None:
    """Return the function that computes features: the built-in one for ``"prompt"``, or the user's own.

    Raises:
        SettingError: It is another string.
    """
    if isinstance(given, str) and given != PROMPT:
        raise SettingError(f"features must be '{PROMPT}' or a function of a request, got {given!r:.60}.")
    return prompt_features if isinstance(given, str) else given


def magnitude(count: int) -> float:
    """Return about the binary logarithm of a count plus one, the same on every machine.

    >>> [magnitude(count) for count in (0, 1, 2, 3, 1023)]
    [0.0, 1.0, 1.5, 2.0, 10.0]
    """
    bits = (count + 1).bit_length() - 1
    return bits + (count + 1) / (1 << bits) - 1


def shares(text: str) -> dict[str, float]:
    """Return the share of each kind of ASCII characters in a text."""
    codes = np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)
    counts = np.bincount(codes, minlength=128)
    return {name: int(counts[places].sum()) / max(len(text), 1) for name, places in PLACES.items()}


def foreign(text: str) -> float:
    """Return the share of the letters that are not Latin.

    >>> foreign("Hello"), foreign("привет, world")
    (0.0, 0.5454545454545454)
    """
    if text.isascii():
        return 0.0
    letters = LETTER.findall(text)
    others = len([letter for letter in letters if letter > LATIN])
    return others / max(len(letters), 1)


def group_of(prompt: PromptText) -> str:
    """Return the group of the system prompt, by its hash; ``"none"`` without one."""
    return str(zlib.crc32(prompt.system.encode("utf-8", "surrogatepass")) % GROUPS) if prompt.system else "none"
