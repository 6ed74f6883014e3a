"""The actions on the pages. Each is a route of the API, with the same scope, checks and audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from driftsack.service.domain import messages as ms
from driftsack.service.projections.track import Track

Form = dict[str, str]


class Field(NamedTuple):
    """A field of a form.

    Attributes:
        kind: The type of the input, or ``select``.
        hint: An example.
        choices: The options of a ``select``.
    """

    name: str
    label: str
    kind: str = "text"
    hint: str = ""
    choices: tuple[str, ...] = ()


class Act(NamedTuple):
    """An action on a campaign.

    Attributes:
        title: The title, also shown on its button.
        path: The path of the route after the campaign.
        body: Builds the body from the form.
        says: The consequences, shown before confirmation; ``{pending}`` and ``{arm}`` are filled in.
        fields: Returns the fields of the form.
        danger: Whether it is hard to undo.
    """

    title: str
    method: str
    path: str
    body: Callable[[Form], Any]
    says: tuple[str, ...]
    fields: Callable[[Track], list[Field]] = lambda _: []
    danger: bool = False


def grant_fields(track: Track) -> list[Field]:
    """Return the fields of a grant."""
    return [
        Field("resource", "Budget", "select", choices=tuple(track.resources)),
        Field("amount", "Amount", hint="25.50"),
    ]


def add_fields(track: Track) -> list[Field]:
    """Return the fields of a new arm."""
    most = [Field(f"most.{name}", f"Maximum {name} per request", hint="0.08") for name in track.resources]
    return [Field("name", "Name", hint="medium"), *most]


def added(form: Form) -> ms.AddArm:
    """Return the new arm of a form."""
    given = {name.removeprefix("most."): amount for name, amount in form.items() if name.startswith("most.")}
    most: dict[str, str | int] = {name: amount for name, amount in given.items() if amount}
    return ms.AddArm(form.get("name", ""), most or None)


ACTS: Final = {
    "pause": Act(
        "Pause",
        "PATCH",
        "",
        lambda _: ms.Patch(state="paused"),
        (
            "New requests are answered with “skipped (paused)” until the campaign is resumed.",
            "Pending decisions ({pending}) can still be told and are charged as usual.",
        ),
    ),
    "resume": Act(
        "Resume",
        "PATCH",
        "",
        lambda _: ms.Patch(state="active"),
        ("New requests receive decisions again and spend from the budgets.",),
    ),
    "switch-on": Act(
        "Switch on",
        "PATCH",
        "",
        lambda _: ms.Patch(state="active"),
        (
            "From now on the campaign decides: new requests receive decisions and spend from the budgets.",
            "It starts with what it learnt from watching, its full budgets and its full horizon.",
            "It cannot watch again. Further observations of your own rule are refused.",
        ),
    ),
    "close": Act(
        "Close",
        "PATCH",
        "",
        lambda _: ms.Patch(state="closed"),
        (
            "No more decisions are made. A closed campaign cannot be reopened.",
            "Pending decisions ({pending}) can still be told until their leases end.",
        ),
        danger=True,
    ),
    "grant": Act(
        "Grant budget",
        "POST",
        "/grants",
        lambda form: ms.Grant({form.get("resource", ""): form.get("amount", "")}),
        (
            "The amount is added to the budget of this season and can be spent immediately.",
            "A grant cannot be taken back.",
        ),
        grant_fields,
    ),
    "add-arm": Act(
        "Add arm",
        "POST",
        "/arms",
        added,
        (
            "The arm is offered to all requests from now on and will be tried.",
            "Workers must recognise its name. The arm can be retired, but its name cannot be reused.",
        ),
        add_fields,
    ),
    "retire-arm": Act(
        "Retire",
        "PATCH",
        "/arms/{arm}",
        lambda _: ms.OfferArm(False),
        (
            "{arm} is no longer chosen, starting with the next request.",
            "What was learnt about it is kept, and it can be offered again.",
        ),
        danger=True,
    ),
    "offer-arm": Act(
        "Offer",
        "PATCH",
        "/arms/{arm}",
        lambda _: ms.OfferArm(True),
        ("{arm} can be chosen again, starting with the next request.",),
    ),
}
"""The actions, by the last part of their address."""


def possible(state: str) -> list[str]:
    """Return the actions on a whole campaign that are possible in a state.

    >>> possible("paused")
    ['resume', 'grant', 'add-arm', 'close']
    """
    first = {"watching": ["switch-on"], "active": ["pause"], "paused": ["resume"]}.get(state)
    return [] if first is None else [*first, "grant", "add-arm", "close"]
