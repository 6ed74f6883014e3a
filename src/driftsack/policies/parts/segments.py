"""Segments: the values of one categorical feature, one-hot in the context."""

from __future__ import annotations

from typing import NamedTuple

from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError
from driftsack.core.names import default_feature_names
from driftsack.core.problem import Problem
from driftsack.numerics.compiled import kernel


class Segments(NamedTuple):
    """The slots of a category in the context."""

    first: int  # its first slot
    slots: int  # the number of its slots


def segments_of(problem: Problem, feature: str | None) -> Segments:
    """Return the slots of the segments, the values of a category of the problem's encoder.

    If ``feature`` is None, the encoder must have one category only. Without an encoder, or with the default names of a
    log, all features form one one-hot vector. ``SettingError`` is raised if there is no such category, or if it has no
    slot for unknown values.
    """
    encoder = problem.encoder
    categories = [] if encoder is None else [str(pair[0]) for pair in encoder.categories]
    if feature is None and len(categories) > 1:
        raise SettingError(f"the problem has the categories {categories}; name the one that defines the segments.")
    # Without a category, all features form one one-hot vector.
    if encoder is None or not categories:
        if feature is not None:
            raise SettingError(
                f"the problem has no category {feature!r}; declare it with "
                "Problem(features=ds.Encoder(categories={...})), or omit the feature if contexts are one-hot."
            )
        if encoder is not None and encoder.names != default_feature_names(problem.features):
            raise SettingError(
                f"segments are the values of a category, got {list(encoder.inputs)}, which are numbers; declare "
                "Problem(features=ds.Encoder(categories={...})), or use LinearBwK, which uses numbers."
            )
        return Segments(0, problem.features)
    # An unknown value needs a slot, and hence a segment.
    if encoder.spare == 0:
        raise SettingError(
            f"the categories {categories} have no slot for unknown values, which would belong to no segment; declare "
            "ds.Encoder(..., spare=1)."
        )
    return Segments(*encoder.slots(categories[0] if feature is None else feature))


@kernel
def segment_of(segments: Segments, context: Floats) -> int:
    """Return the segment of a request: the slot with the largest entry."""
    best = segments.first
    for f in range(segments.first + 1, segments.first + segments.slots):
        if context[f] > context[best]:
            best = f
    return best - segments.first
