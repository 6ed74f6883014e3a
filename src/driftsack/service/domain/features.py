"""The features of a campaign's requests: their declaration, and the vector that the journal keeps of a context.

A vector has single precision: it is rounded before the learner sees it, so a replay of the journal has the same
numbers. The context itself, which may hold personal data, is not part of the journal (see
:class:`driftsack.service.domain.journal.RawContext`).
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.encoder import MOST_FEATURES, Encoder
from driftsack.core.errors import DriftsackError
from driftsack.service.domain.refusals import Refusal

LONGEST_VALUE: Final = 200  # of a category, in characters
VECTOR: Final = np.dtype("<f4")  # of an event
FeatureName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$(?!\n)")]
CategoryValue = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_VALUE)] | int
Context = Annotated[
    dict[str, Any],
    msgspec.Meta(
        description="The features of the request, by name.",
        extra_json_schema={
            "additionalProperties": {
                "anyOf": [
                    {"type": "number"},
                    {"type": "string", "maxLength": LONGEST_VALUE},
                    {"type": "array", "items": {"type": "number"}},
                    {"type": "null"},
                ]
            }
        },
    ),
]


class Features(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The features of a campaign's requests.

    Attributes:
        numbers: The names of numeric features.
        categories: The known values of each categorical feature; others share the slots for unknown values.
        embeddings: The length of each vector feature.
        project: The dimension to which each embedding is projected; None for no projection.
        spare: The number of slots of each category for unknown values.
        seed: The seed of the projection.
        optional: The numbers and categories that requests may leave out, or give as null.
    """

    numbers: Annotated[list[FeatureName], msgspec.Meta(max_length=MOST_FEATURES)] = []
    categories: dict[FeatureName, Annotated[list[CategoryValue], msgspec.Meta(min_length=1)]] = {}
    embeddings: dict[FeatureName, Annotated[int, msgspec.Meta(ge=1, le=2**16)]] = {}
    project: Annotated[int, msgspec.Meta(ge=1, le=MOST_FEATURES)] | None = None
    spare: Annotated[int, msgspec.Meta(ge=0, le=MOST_FEATURES)] = 1
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    optional: Annotated[list[FeatureName], msgspec.Meta(max_length=MOST_FEATURES)] = []

    def encoder(self) -> Encoder:
        """Build the encoder.

        Raises:
            Refusal: The declaration contradicts itself.
        """
        settings = {name: getattr(self, name) for name in self.__struct_fields__}
        try:
            return Encoder(**settings)
        except DriftsackError as error:
            raise Refusal.invalid(f"features: {error}") from error


def bytes_of(vector: Floats) -> bytes:
    """Return an encoded context, which has single precision, as an event keeps it."""
    return vector.astype(VECTOR).tobytes()


def vector_of(context: bytes) -> Floats:
    """(n,) the vector in an event."""
    return np.frombuffer(context, VECTOR).astype(np.float64)
