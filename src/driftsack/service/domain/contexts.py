"""Contexts: the features of a request, checked and encoded for its event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftsack.core.encoder import Encoder
from driftsack.core.errors import DriftsackError
from driftsack.service.domain.features import LONGEST_VALUE, bytes_of
from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.state import CampaignState


def encoded(state: CampaignState, context: Mapping[str, Any] | None) -> bytes | None:
    """Encode the context of a request; None if the campaign has no features.

    Raises:
        Refusal: A feature is missing, not declared or not valid; the refusal names it.
    """
    encoder = state.problem.encoder
    if encoder is None:
        if context is None:
            return None
        raise _refused("context", "the campaign has no features; omit the context, or open one with features.")
    given = {} if context is None else context
    _check_values(encoder, given)
    try:
        vector = state.learner.encode(given)
    except (DriftsackError, RecursionError) as error:
        raise _refused("context", f"context: {error}") from error
    return bytes_of(vector)


def _check_values(encoder: Encoder, given: Mapping[str, Any]) -> None:
    """Refuse what an encoder would accept from Python, or take long to refuse."""
    if len(given) > len(encoder.inputs):
        unknown = next(name for name in given if name not in encoder.inputs)
        raise _refused(
            unknown,
            f"context has {len(given):,} features, and the campaign declares {len(encoder.inputs)}; {unknown!r:.60} is "
            "not one of them.",
        )
    for name, value in given.items():
        kind = type(value)
        if kind is float:
            continue
        if kind is bool:
            raise _refused(name, f"context: {name!r:.60} must not be true or false; send 1 or 0, or a string.")
        if kind is str and len(value) > LONGEST_VALUE:
            raise _refused(
                name, f"context: {name!r:.60} may have {LONGEST_VALUE} characters, got {len(value):,}; shorten it."
            )


def _refused(name: str, detail: str) -> Refusal:
    refusal = Refusal.invalid(detail)
    place = name[:60].replace("~", "~0").replace("/", "~1")
    refusal.pointer = "/context" if name == "context" else f"/context/{place}"
    return refusal
