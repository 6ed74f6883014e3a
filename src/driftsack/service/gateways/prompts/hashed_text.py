r"""``hashed_text``: 32 numbers that are similar for similar texts, without a model and without a download.

Words and trigrams of characters are counted in hashed slots (the *hashing trick* of Weinberger et al. 2009). The square
roots of the counts, which keep frequent ones from drowning the others, are multiplied by random signs, which keep
scalar products in expectation (Achlioptas 2003), and the result is divided by its length:

.. math:: y = S \sqrt{c} \,/\, \lVert S \sqrt{c} \rVert .

The numbers are the same with every version of Python and NumPy and on every processor: hashes are integers, each
operation on floats is one that IEEE 754 rounds exactly, and sums are added in a fixed order and not by BLAS.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from functools import cache
from typing import Final

import numpy as np

from driftsack.core.arrays import Floats, Ints

LENGTH: Final = 32  # numbers
SLOTS: Final = 2**12
LONGEST: Final = 16_384  # characters that are read, half of them at each end
WORD: Final = re.compile(r"\w+")
MIX: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F)  # odd constants of xxHash


def hashed_text(text: str) -> list[float]:
    """Return the numbers of a text; zeros if it has no letters and no digits.

    >>> cat, dog, sum_ = (hashed_text(text) for text in ("Where is the cat?", "Where is the dog?", "Add 17 to 25."))
    >>> bool(np.dot(cat, dog) > 0.5 > np.dot(cat, sum_))
    True
    """
    half = LONGEST // 2
    words = WORD.findall((text if len(text) <= LONGEST else f"{text[:half]} {text[-half:]}").lower())
    if not words:
        return [0.0] * LENGTH
    counts = np.bincount(np.concatenate([word_slots(words), trigram_slots(words)]), minlength=SLOTS)
    (used,) = np.nonzero(counts)
    found = (np.sqrt(counts[used])[:, None] * signs()[used]).sum(axis=0)  # row by row
    length = math.sqrt(math.fsum(value * value for value in found.tolist()))
    return [round(value / length, 6) for value in found.tolist()] if length else [0.0] * LENGTH


def word_slots(words: list[str]) -> Ints:
    """Return the slot of each word."""
    hashes = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words]
    return np.array(hashes, dtype=np.int64) % SLOTS


def trigram_slots(words: list[str]) -> Ints:
    """Return the slots of the trigrams of characters, with spaces around the words."""
    codes = np.frombuffer(f" {' '.join(words)} ".encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32)
    first, second, third, last = (np.uint32(constant) for constant in MIX)
    hashes = codes[:-2] * first ^ codes[1:-1] * second ^ codes[2:] * third  # modulo 2**32
    hashes = (hashes ^ hashes >> np.uint32(15)) * last
    found: Ints = (hashes >> np.uint32(20)).astype(np.int64)
    return found


@cache
def signs() -> Floats:
    """(SLOTS, LENGTH) random signs, which come from a hash and not from a generator."""
    data = hashlib.shake_256(b"driftsack/hashed_text").digest(SLOTS * LENGTH // 8)
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8)).reshape(SLOTS, LENGTH)
    return np.asarray(2.0 * bits - 1.0, dtype=np.float64)
