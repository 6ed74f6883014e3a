"""The pages: campaigns, one campaign, one decision, actions, keys, audit."""

from __future__ import annotations

import re
import secrets
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from driftsack.service.domain import messages as ms
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections import explain
from driftsack.service.projections.charts import figures
from driftsack.service.projections.choice import chosen
from driftsack.service.store.interface import KeyRow
from driftsack.service.web.api import handlers
from driftsack.service.web.api.context import Context, Service
from driftsack.service.web.api.requests import Target, authorise, check_needed_key, decode, find_target
from driftsack.service.web.pages import view
from driftsack.service.web.pages.acts import ACTS, Act, possible
from driftsack.service.web.pages.numbers import number as formatted
from driftsack.service.web.pages.numbers import when
from driftsack.service.web.pages.responses import PageResponse, page, redirect
from driftsack.service.web.pages.sessions import Sessions
from driftsack.service.web.pages.visit import Visit

CARDS: Final = 20  # campaigns on a page
LONGEST_PAGE: Final = 6  # digits of the number of a page
JSON: Final = b"application/json"
LINK_DAYS: Final = 30


class Pages:
    """The pages of a service.

    Args:
        service: Campaigns, keys and projections.
        sessions: The sessions of the visitors.
    """

    def __init__(self, service: Service, sessions: Sessions) -> None:
        self._service, self._watcher, self._sessions = service, service.watcher, sessions

    async def answer(self, visit: Visit) -> PageResponse:
        """Answer a request for a page.

        Raises:
            Refusal: There is no such page, or the visitor may not see it.
        """
        for method, pattern, handler in ROUTES:
            found = pattern.fullmatch(visit.path)
            if found and method == visit.method:
                names = {name: urllib.parse.unquote(value) for name, value in found.groupdict().items()}
                return await handler(self, visit, **names)
        raise Refusal("not-found", f"there is no page at {visit.path[:200]}.")

    # Log in and out

    async def login(self, visit: Visit) -> PageResponse:
        """Show the login form."""
        if visit.session and visit.path == "/login":
            return redirect("/")
        return page("login.html", problem="", **visit.common())

    async def log_in(self, visit: Visit) -> PageResponse:
        """Start a session."""
        try:
            cookie = self._sessions.start(visit.form.get("key", ""), visit.secure)
        except Refusal as refusal:
            said = "This key is not valid." if refusal.kind == "unauthenticated" else refusal.detail
            return page("login.html", refusal.status, problem=said, **visit.common())
        return redirect(after_login(visit.form.get("next", "/")), cookie)

    async def log_out(self, visit: Visit) -> PageResponse:
        """End the session."""
        return redirect("/login", self._sessions.end(visit.known))

    # Read

    async def campaigns(self, visit: Visit) -> PageResponse:
        """Show the campaigns, a page at a time; damaged ones come first."""
        visit.principal.check("read", None, limited_ok=True)
        limited, damaged = visit.principal.campaigns, self._service.keeper.damaged
        names = [name for name in await self._watcher.names() if limited is None or name in limited]
        names.sort(key=lambda name: (name not in damaged, name))
        start = min(page_number(visit.query.get("page", "")), max(len(names) - 1, 0) // CARDS) * CARDS
        cards = [card for name in names[start : start + CARDS] if (card := await self._card(name)) is not None]
        template = "_campaigns.html" if visit.is_part else "campaigns.html"
        pages = {"now": start // CARDS, "last": max(len(names) - 1, 0) // CARDS, "campaigns": len(names)}
        return page(template, cards=cards, pages=pages, **visit.common())

    async def _card(self, name: str) -> dict[str, Any] | None:
        """Return the values of a campaign in the list; None if it was deleted in the meantime."""
        damaged = self._service.keeper.damaged
        if name not in damaged:
            try:
                return await self._watcher.shown(name, view.card)
            except Refusal as refusal:
                if refusal.kind == "unknown-campaign":
                    return None
                if refusal.kind != "damaged":
                    raise
                return {"name": name, "damaged": refusal.detail}
        return {"name": name, "damaged": damaged[name]}

    async def campaign(self, visit: Visit, name: str) -> PageResponse:
        """Show one campaign."""
        visit.principal.check("read", name)
        shown = view.details(*await self._watcher.track(name))
        acts = [(act, ACTS[act]) for act in possible(shown["state"])]
        part = "_tables.html" if visit.query.get("part") == "tables" else "_campaign.html"
        template = part if visit.is_part else "campaign.html"
        return page(template, c=shown, acts=acts, **visit.common())

    async def figures(self, visit: Visit, name: str) -> PageResponse:
        """Return the data of the charts as JSON."""
        visit.principal.check("read", name)
        track, _ = await self._watcher.track(name)
        return PageResponse(200, JSON, msgspec.json.encode(figures(track)))

    async def decision(self, visit: Visit, name: str, number: str) -> PageResponse:
        """Explain a decision."""
        visit.principal.check("read", name)
        track, _ = await self._watcher.track(name)
        context = self._context(visit, f"/v1/campaigns/{name}/decisions/{number}/why", "GET", None)
        found = await context.read_journal(explain.why, name, context.number())
        choice = await context.read_journal(chosen, name, context.number())
        return page(
            "decision.html",
            c={"name": name, "last": track.number},
            why=found,
            probability=choice.probability,
            outcome=view.outcome(choice, track.resources),
            when=when(found.at),
            number=formatted,
            **visit.common(),
        )

    async def audit(self, visit: Visit) -> PageResponse:
        """Show the audit."""
        context = self._context(visit, "/v1/audit", "GET", None)
        entries = [(when(entry.at), entry) for entry in (await handlers.read_audit(context)).entries]
        return page("audit.html", entries=entries, **visit.common())

    async def keys(self, visit: Visit) -> PageResponse:
        """Show the keys."""
        context = self._context(visit, "/v1/keys", "GET", None)
        keys = (await handlers.list_keys(context)).keys
        ends = {key.prefix: "never" if key.expires is None else when(key.expires) for key in keys}
        return page("keys.html", keys=keys, ends=ends, **visit.common())

    # Act

    async def confirm(self, visit: Visit, name: str, act: str) -> PageResponse:
        """Show the consequences of an action, and ask for confirmation."""
        visit.principal.check("operate", name)
        track, _ = await self._watcher.track(name)
        return self._form(visit, name, act, _act(act), track, "", 200)

    def _form(self, visit: Visit, name: str, key: str, act: Act, track: Any, problem: str, status: int) -> PageResponse:
        given = {**visit.query, **visit.form}
        return page(
            "act.html",
            status,
            c={"name": name},
            key=key,
            act=act,
            says=[said.format(pending=f"{track.pending:,}", arm=given.get("arm", "")) for said in act.says],
            fields=act.fields(track),
            given=given,
            once=secrets.token_hex(16),
            problem=problem,
            **visit.common(),
        )

    async def do(self, visit: Visit, name: str, act: str) -> PageResponse:
        """Carry out a confirmed action."""
        wanted = _act(act)
        path = f"/v1/campaigns/{name}{wanted.path.format(arm=visit.form.get('arm', ''))}"
        try:
            await self._call(visit, path, wanted.method, wanted.body(visit.form))
        except Refusal as refusal:
            if refusal.status in (401, 403):
                raise
            track, _ = await self._watcher.track(name)
            return self._form(visit, name, act, wanted, track, refusal.detail, refusal.status)
        return redirect(f"/campaigns/{urllib.parse.quote(name)}")

    async def key_form(self, visit: Visit, act: str) -> PageResponse:
        """Show the consequences of an action on keys, and ask for confirmation."""
        self._context(visit, "/v1/keys", "POST", None)
        names = await self._watcher.names()
        prefix = visit.query.get("key", "")
        old = self._key(prefix)
        once = secrets.token_hex(16)
        return page("key_form.html", act=act, old=old, names=names, prefix=prefix, once=once, **visit.common())

    async def key_act(self, visit: Visit, act: str) -> PageResponse:
        """Create, rotate, share or remove a key."""
        form = visit.form
        if act == "remove":
            await self._call(visit, f"/v1/keys/{form.get('key', '')}", "DELETE", None)
            return redirect("/keys")
        body = requested_key(act, form, self._key(form.get("key", "")))
        made: ms.CreatedKey = await self._call(visit, "/v1/keys", "POST", body)
        host = visit.headers.get(b"host", b"localhost").decode("latin-1")
        link = f"http{'s' if visit.secure else ''}://{host}/open#{made.key}" if act == "share" else ""
        return page("new_key.html", key=made, link=link, act=act, **visit.common())

    def _key(self, prefix: str) -> KeyRow | None:
        """Return the key with a prefix; None if there is none."""
        return next((row for row in self._service.keyring.rows() if row.prefix == prefix), None)

    def _context(self, visit: Visit, path: str, method: str, body: Any) -> Context:
        """Return a request of the API by the visitor, checked as the API checks it."""
        target = _target(method, path)
        authorise(visit.principal, target)
        raw = b"" if body is None else msgspec.json.encode(body)
        checked = None if body is None else decode(target.route, raw)
        action, once = f"{method} {path} (dashboard)", visit.form.get("once", "")
        check_needed_key(target.route, once)
        return Context(self._service, visit.principal, target.campaign, target.item, checked, raw, action, once, {})

    async def _call(self, visit: Visit, path: str, method: str, body: Any) -> Any:
        """Carry out a request of the API."""
        context = self._context(visit, path, method, body)
        await self._service.keeper.prepare(context.campaign)
        if context.campaign in self._service.keeper.foreign:
            where = self._service.keeper.foreign[context.campaign]
            raise Refusal.unavailable(
                f"another replica owns this campaign; open its pages at {where or 'its address'}."
            )
        return await _target(method, path).route.handler(context)


def _target(method: str, path: str) -> Target:
    target = find_target(method, path)
    if target is None:
        raise Refusal("not-found", f"there is nothing at {path[:200]}.")
    return target


def requested_key(act: str, form: dict[str, str], old: KeyRow | None) -> ms.NewKey:
    """Return the key that a form asks for.

    Args:
        act: ``create``, ``rotate`` or ``share``.
        old: The key to rotate.

    Raises:
        Refusal: The key to rotate does not exist, or a field is invalid.
    """
    if act == "rotate":
        if old is None:
            raise Refusal("not-found", "the key was removed in the meantime.")
        campaigns = None if old.campaigns is None else list(old.campaigns)
        return ms.NewKey(list(old.scopes), campaigns, _days(form), old.note, dict(old.labels))  # type: ignore[arg-type]
    campaigns = form["campaigns"].split(",") if form.get("campaigns") else None
    if act == "share":
        return ms.NewKey(["read"], campaigns, _days(form) or LINK_DAYS, "read-only link")
    scopes = form.get("scopes", "").split(",")
    return ms.NewKey(scopes, campaigns, _days(form), form.get("note", ""), labels_of(form.get("labels", "")))  # type: ignore[arg-type]


def labels_of(text: str) -> dict[str, str]:
    """Return the labels in a field of a form.

    Raises:
        Refusal: They are not written as names and values.

    >>> labels_of("user=ann, team=x")
    {'user': 'ann', 'team': 'x'}
    """
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not all(name and sign for name, sign, _ in pairs):
        raise Refusal.invalid(f"labels must look like user=ann, team=x, got {text!r:.60}.")
    return {name.strip(): label.strip() for name, _, label in pairs}


def page_number(text: str) -> int:
    """Return the number of a page in a query; 0 if it is missing or not a number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_PAGE else 0


def check_query(visit: Visit) -> None:
    """Raise a refusal if a page does not have one of the query parameters."""
    known = next((names for pattern, names in QUERIES.items() if re.fullmatch(pattern, visit.path)), ())
    unknown = [name for name in visit.query if name not in known]
    if unknown and not visit.path.startswith("/static/"):  # whose query is the hash of the file
        raise Refusal.invalid(f"the query may have {', '.join(known) or 'no parameters'}, got {unknown[0]!r:.40}.")


def _act(name: str) -> Act:
    if name not in ACTS:
        raise Refusal("not-found", f"there is no action called {name[:40]!r}.")
    return ACTS[name]


def _days(form: dict[str, str]) -> int | None:
    """Return the days until a key expires; None for never."""
    text = form.get("days", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise Refusal.invalid(f"days must be an integer, got {text!r:.20}.")
    return int(text[:6])


def after_login(path: str) -> str:
    """Return the page to open after logging in; pages of other sites are replaced by the first page.

    >>> after_login("/campaigns/chat"), after_login("//evil.example"), after_login("https://evil.example")
    ('/campaigns/chat', '/', '/')
    """
    return path if re.fullmatch(r"/(campaigns/[A-Za-z0-9._:@/-]+|keys|audit)?", path) else "/"


Handler = Callable[..., Awaitable[PageResponse]]
NAME: Final = r"/campaigns/(?P<name>[^/]+)"
KEY_ACT: Final = r"/keys/(?P<act>create|rotate|share|remove)"
ROUTES: Final[list[tuple[str, re.Pattern[str], Handler]]] = [
    (method, re.compile(pattern), handler)
    for method, pattern, handler in (
        ("GET", r"/", Pages.campaigns),
        ("GET", r"/login", Pages.login),
        ("GET", r"/open", Pages.login),
        ("POST", r"/login", Pages.log_in),
        ("POST", r"/logout", Pages.log_out),
        ("GET", NAME, Pages.campaign),
        ("GET", NAME + r"/figures", Pages.figures),
        ("GET", NAME + r"/decisions/(?P<number>[0-9]{1,15})", Pages.decision),
        ("GET", NAME + r"/act/(?P<act>[a-z-]+)", Pages.confirm),
        ("POST", NAME + r"/act/(?P<act>[a-z-]+)", Pages.do),
        ("GET", r"/keys", Pages.keys),
        ("GET", KEY_ACT, Pages.key_form),
        ("POST", KEY_ACT, Pages.key_act),
        ("GET", r"/audit", Pages.audit),
    )
]
QUERIES: Final = {
    r"/": ("page",),
    r"/login": ("next",),
    r"/stream": ("campaign",),
    NAME: ("part",),
    NAME + r"/act/(retire|offer)-arm": ("arm",),
    r"/keys/(rotate|remove)": ("key",),
}
"""The query parameters of the pages that have some."""
OPEN: Final = ("/login", "/open")
"""Pages that need no session."""
