"""What people can do on the pages. Each act is a route of the API, with the same scope, checks and audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from driftsack.service import messages as ms
from driftsack.service.dashboard.track import Track

Form = dict[str, str]


class Field(NamedTuple):
    """A field of a form.

    Attributes:
        name: Its name.
        label: What it is for.
        kind: The type of the input, or ``select``.
        hint: An example.
        choices: What can be chosen.
    """

    name: str
    label: str
    kind: str = "text"
    hint: str = ""
    choices: tuple[str, ...] = ()


class Act(NamedTuple):
    """Something to do to a campaign.

    Attributes:
        title: What it is called, also on its button.
        method: The method of the route.
        path: What follows the campaign in the path of the route.
        body: The body of the route, from the form.
        says: What will happen; ``{pending}`` and ``{arm}`` are filled in.
        fields: What the form asks for.
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
    """The fields of a grant."""
    return [
        Field("resource", "Budget", "select", choices=tuple(track.resources)),
        Field("amount", "Amount", hint="25.50"),
    ]


def add_fields(track: Track) -> list[Field]:
    """The fields of a new arm."""
    most = [Field(f"most.{name}", f"Most {name} of one request", hint="0.08") for name in track.resources]
    return [Field("name", "Name", hint="medium"), *most]


def added(form: Form) -> ms.AddArm:
    """A new arm from its form."""
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
            "Decisions that wait for an outcome ({pending}) can still be told, and are charged as usual.",
        ),
    ),
    "resume": Act(
        "Resume",
        "PATCH",
        "",
        lambda _: ms.Patch(state="active"),
        ("New requests get decisions again, and spend from the budgets.",),
    ),
    "switch-on": Act(
        "Switch on",
        "PATCH",
        "",
        lambda _: ms.Patch(state="active"),
        (
            "From now on the campaign decides: new requests get decisions, and spend from the budgets.",
            "It begins with what it learnt by watching, the whole budgets and the whole horizon.",
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
            "Decisions that wait for an outcome ({pending}) can still be told until their leases end.",
        ),
        danger=True,
    ),
    "grant": Act(
        "Grant budget",
        "POST",
        "/grants",
        lambda form: ms.Grant({form.get("resource", ""): form.get("amount", "")}),
        (
            "The amount is added to the budget of this season, and may be spent at once.",
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
            "The arm is offered to all requests from now on, and will be tried.",
            "Workers must know what to do with its name. It can be retired, but its name is never used again.",
        ),
        add_fields,
    ),
    "retire-arm": Act(
        "Retire",
        "PATCH",
        "/arms/{arm}",
        lambda _: ms.OfferArm(False),
        (
            "{arm} is not chosen any more, from the next request on.",
            "What was learnt about it is kept, and it can be offered again.",
        ),
        danger=True,
    ),
    "offer-arm": Act(
        "Offer",
        "PATCH",
        "/arms/{arm}",
        lambda _: ms.OfferArm(True),
        ("{arm} may be chosen again, from the next request on.",),
    ),
}
"""The acts, by the end of their address."""


def possible(state: str) -> list[str]:
    """The acts on a whole campaign that make sense in a state.

    >>> possible("paused")
    ['resume', 'grant', 'add-arm', 'close']
    """
    first = {"watching": ["switch-on"], "active": ["pause"], "paused": ["resume"]}.get(state)
    return [] if first is None else [*first, "grant", "add-arm", "close"]
