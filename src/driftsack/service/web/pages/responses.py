"""Responses of the pages: rendered templates, static files and redirects, with security headers."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

import jinja2

PARTS: Final = resources.files("driftsack.service.web.pages")
KINDS: Final = {
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
    "txt": b"text/plain; charset=utf-8",
}
HTML: Final = b"text/html; charset=utf-8"
POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFE: Final = [
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
"""Headers of every response. Browsers run no script or style except files of this service."""


class PageResponse(NamedTuple):
    """A complete HTTP response of the pages.

    Attributes:
        kind: The media type of the body.
        headers: Additional headers.
    """

    status: int
    kind: bytes
    body: bytes
    headers: list[tuple[bytes, bytes]] = []  # noqa: RUF012

    def all_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the additional headers with those of every response."""
        kept = any(name == b"cache-control" for name, _ in self.headers)
        own = [(b"content-type", self.kind), (b"content-length", b"%d" % len(self.body))]
        return [*own, *SAFE, *([] if kept else [(b"cache-control", b"no-store")]), *self.headers]


@cache
def environment() -> jinja2.Environment:
    """Return the environment of the templates, which escapes all values."""
    loader = jinja2.FunctionLoader(lambda name: (PARTS / "templates" / name).read_text())
    found = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.globals["asset"] = asset
    return found


def page(
    template: str, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None, **values: Any
) -> PageResponse:
    """Render a template."""
    body = environment().get_template(template).render(**values).encode()
    return PageResponse(status, HTML, body, headers or [])


def redirect(path: str, cookie: str = "") -> PageResponse:
    """Redirect to another page (303)."""
    headers = [(b"location", path.encode())] + ([(b"set-cookie", cookie.encode())] if cookie else [])
    return PageResponse(303, HTML, b"", headers)


@cache
def files() -> dict[str, bytes]:
    """Return the static files, by name."""
    found: dict[str, bytes] = {}
    for directory, prefix in ((PARTS / "static", ""), (PARTS / "static" / "vendor", "vendor/")):
        found |= {prefix + item.name: item.read_bytes() for item in directory.iterdir() if item.is_file()}
    return found


@cache
def asset(name: str) -> str:
    """Return the address of a static file, which changes with its content."""
    return f"/static/{name}?{hashlib.sha256(files()[name]).hexdigest()[:12]}"


def static_file(name: str) -> PageResponse | None:
    """Return a static file; None if there is none of this name."""
    body = files().get(name)
    if body is None:
        return None
    kind = KINDS.get(name.rpartition(".")[2], b"application/octet-stream")
    return PageResponse(200, kind, body, [(b"cache-control", b"public, max-age=31536000, immutable")])
