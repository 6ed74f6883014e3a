"""Features of the requests of a soak: vectors, or mappings with optional values, and what these are encoded as."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.encoder import Encoder
from driftsack.core.problem import Problem

ENCODER: Final = Encoder(
    numbers=["tokens", "age", "score"],
    categories={"kind": ["chat", "code"]},
    optional=["age", "score", "kind"],
)
KINDS: Final = ("chat", "code", "poem")
LARGE: Final = 1e9  # the largest number that is accepted
FORGETTING: Final = 1000  # requests after which a mean follows its feature


class RandomFeatures:
    """Draws the features of requests; the reference of the means that replace missing numbers.

    Attributes:
        missing: How many values were missing.
    """

    def __init__(self, problem: Problem) -> None:
        self._size, self._encoder = problem.features, problem.encoder
        optional = () if self._encoder is None else [self._encoder.numbers[k] for k in self._encoder.missable]
        self._means = dict.fromkeys(optional, (0.0, 0))  # mean and number of values
        self.missing = 0

    def draw(self, rng: Generator) -> Any:
        """Draw the features of one request, sometimes extreme ones."""
        scale = LARGE if rng.random() < 0.02 else 1.0
        if self._encoder is None:
            return scale * rng.uniform(-1.0, 1.0, self._size)
        values = scale * rng.uniform(-1.0, 1.0, 3)
        found: dict[str, Any] = dict(zip(self._encoder.numbers, values.tolist(), strict=True))
        found["kind"] = KINDS[int(rng.integers(len(KINDS)))]
        for name in self._encoder.optional:
            if rng.random() < 0.3:
                found.pop(name) if rng.random() < 0.5 else found.update({name: None})
        return found

    def draw_many(self, rng: Generator, count: int) -> Any:
        """Draw the features of several requests."""
        if self._encoder is None:
            return rng.standard_normal((count, self._size))
        return [self.draw(rng) for _ in range(count)]

    def encoded(self, context: Any) -> Floats:
        """Return the vector of the next request, and count its values."""
        encoder = self._encoder
        if encoder is None:
            return np.asarray(context)
        vector = encoder.encode(context, [mean for mean, _ in self._means.values()])
        for name, (mean, count) in self._means.items():
            if context.get(name) is not None:
                weight = min(count + 1, FORGETTING)
                value = float(vector[encoder.numbers.index(name)])
                self._means[name] = (mean + (value - mean) / weight, weight)
        self.missing += sum(context.get(name) is None for name in encoder.optional)
        return vector
