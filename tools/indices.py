"""Indices of formulas in text: ``μ_{t,i}``, ``LP_t`` and ``V^⅓`` become subscripts and superscripts."""

from __future__ import annotations

import re

BASE = r"(?<![A-Za-zΑ-ω_.`])([A-Za-zΑ-ωℓ∫ṼÃ]{1,3}[\d₀-₉]?[\u0300-\u036f′]?)"  # what may have an index without braces
WORD = re.compile(BASE + r"\\?_([A-Za-z0-9Α-ω]{1,6})(?![A-Za-z0-9Α-ω_]|\.\w*_)")
LETTER = re.compile(BASE + r"\\?_([a-z])(?![A-Za-z0-9Α-ω_])")
BRACES = re.compile(r"(?<=\S)\\?([_^])\{([^{}]*)\}")
POWER = re.compile(r"(?<=[\w)\]‖₀-₉\u0304])\^([⅓⅔½¾*Σ]|-?\w+(?:\.\d+)?)")


def indexed(text: str, words: bool = True) -> str:
    """Convert the indices of formulas that are written as text; without ``words``, only letters, as names have words.

    >>> indexed("μ_{t,i} ≤ LP_t, (mV)^⅓ T^0.55; a file_name")
    'μ<sub>t,i</sub> ≤ LP<sub>t</sub>, (mV)<sup>⅓</sup> T<sup>0.55</sup>; a file_name'
    """
    text = (WORD if words else LETTER).sub(r"\1<sub>\2</sub>", text)
    before = ""
    while text != before:  # indices of indices: from the inside out
        before, text = text, BRACES.sub(lambda found: placed(found[1], found[2]), text)
    return POWER.sub(r"<sup>\1</sup>", text)


def placed(sign: str, index: str) -> str:
    """An index below or above its base; a sign for "less than" is no tag."""
    tag = "sub" if sign == "_" else "sup"
    escaped = re.sub(r"<(?!/?su[bp]>)", "&lt;", index)
    return f"<{tag}>{escaped}</{tag}>"
