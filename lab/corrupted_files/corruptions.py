"""Ways to corrupt a file, and to write a malicious one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from driftsack.core import file_format
from driftsack.policies.learner import file as learner_file
from tests.support.learner_files import opened

NUMBERS: Final = (0, 1, -1, 2, 3, 7, 255, 10**5, 10**9, 2**31, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63))
SETTINGS: Final[tuple[Any, ...]] = (
    *NUMBERS,
    10**30,
    1e308,
    -0.5,
    float("nan"),
    float("inf"),
    None,
    True,
    "",
    "x" * 99,
    [],
    {},
    [[1]],
    [1e9],
)

Content = dict[str, Any]
Arrays = dict[str, Any]


@lru_cache(maxsize=64)
def _opened_once(data: bytes) -> tuple[Content, Arrays]:
    return opened(data)


def flip_bits(data: bytes, rng: Generator) -> bytes:
    """Flip a few bits."""
    damaged = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def splice(data: bytes, rng: Generator) -> bytes:
    """Remove, repeat, move or overwrite a part, or truncate the file."""
    first, last, place = sorted(int(k) for k in rng.integers(len(data), size=3))
    part = data[first:last]
    ways = (
        data[:first] + data[last:],
        data[:place] + part + data[place:],
        data[:last] + part + data[last:],
        data[:first] + bytes(last - first) + data[last:],
        data[:first] + rng.bytes(last - first) + data[last:],
        data[:last],
    )
    return ways[int(rng.integers(len(ways)))]


def overwrite_word(data: bytes, rng: Generator) -> bytes:
    """Overwrite a few bytes by an extreme number, often a length in the ZIP directory at the end."""
    damaged = bytearray(data)
    place = int(rng.integers(max(len(data) - 2_000, 0) if rng.random() < 0.5 else 0, len(data) - 8))
    width = int(rng.choice([2, 4, 8]))
    value = NUMBERS[int(rng.integers(len(NUMBERS)))] % 2 ** (8 * width)
    damaged[place : place + width] = value.to_bytes(width, "little")
    return bytes(damaged)


def forged(data: bytes, change: Callable[[Content, Arrays, Generator], None], rng: Generator) -> bytes:
    """Change content or arrays, and recompute the digest."""
    content, arrays = copy.deepcopy(_opened_once(data))
    change(content, arrays, rng)
    return file_format.encode(learner_file.KIND, learner_file.LAYOUT, content, arrays)


def any_name(arrays: Arrays, rng: Generator) -> str:
    """Choose the name of an array that is not empty."""
    names = sorted(name for name, array in arrays.items() if array.size)
    return names[int(rng.integers(len(names)))]


def change_numbers(content: Content, arrays: Arrays, rng: Generator) -> None:
    """Replace entries of an array by extreme numbers, or add small ones to them."""
    array = arrays[any_name(arrays, rng)]
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(array.size))
        if array.dtype == np.bool_:
            array.view(np.uint8).flat[place] = int(rng.integers(256))
        elif rng.random() < 0.3:
            array.flat[place] += int(rng.integers(-3, 4))
        elif array.dtype.kind == "i":
            array.flat[place] = NUMBERS[int(rng.integers(len(NUMBERS)))]
        else:
            extreme = (np.nan, np.inf, -np.inf, -1.0, 1e308, 5e-324, 1e18, -1e-9, 0.0)
            array.flat[place] = extreme[int(rng.integers(len(extreme)))]


def change_integers(content: Content, arrays: Arrays, rng: Generator) -> None:
    """Replace an entry of an integer array, which may be an index or a size."""
    names = sorted(name for name, array in arrays.items() if array.size and array.dtype.kind == "i")
    if names:
        array = arrays[names[int(rng.integers(len(names)))]]
        near, far = int(rng.integers(-2, 12)), NUMBERS[int(rng.integers(len(NUMBERS)))]
        array.flat[int(rng.integers(array.size))] = near if rng.random() < 0.5 else far


def change_shape(content: Content, arrays: Arrays, rng: Generator) -> None:
    """Change the shape or the type of an array, remove it, or add another one."""
    name = any_name(arrays, rng)
    array = arrays[name]
    others = (
        lambda: np.resize(array, array.size + 1),
        lambda: array.reshape(-1)[:-1],
        lambda: array[None],
        lambda: array.astype(np.float32),
        lambda: array.astype(">f8"),
        lambda: array.astype(np.int64 if array.dtype != np.int64 else np.float64),
        lambda: np.resize(array, 100_000),
        lambda: np.array("text"),
    )
    kind = int(rng.integers(len(others) + 2))
    if kind == len(others):
        del arrays[name]
    elif kind > len(others):
        arrays[f"{name}.more"] = array
    else:
        arrays[name] = others[kind]()


def change_setting(content: Content, arrays: Arrays, rng: Generator) -> None:
    """Change a value at any depth of the header."""
    place: Any = content
    key: Any = None
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[int(rng.integers(len(keys)))]
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.1:
            break
        place = inner
    if rng.random() < 0.1 and isinstance(place, dict):
        del place[key]
    else:
        place[key] = copy.deepcopy(SETTINGS[int(rng.integers(len(SETTINGS)))])


def change_much(content: Content, arrays: Arrays, rng: Generator) -> None:
    """Make several changes at once, such as a size and the arrays that go with it."""
    for _ in range(int(rng.integers(2, 5))):
        change = (change_numbers, change_integers, change_setting)[int(rng.integers(3))]
        change(content, arrays, rng)


CORRUPTIONS: Final[tuple[Callable[[bytes, Generator], bytes], ...]] = (
    flip_bits,
    splice,
    overwrite_word,
    lambda data, rng: forged(data, change_numbers, rng),
    lambda data, rng: forged(data, change_integers, rng),
    lambda data, rng: forged(data, change_shape, rng),
    lambda data, rng: forged(data, change_setting, rng),
    lambda data, rng: forged(data, change_much, rng),
)
