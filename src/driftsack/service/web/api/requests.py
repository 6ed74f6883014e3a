"""The steps from an HTTP request to a ``Context``: route, authenticate, read the body, decode.

Every request takes these steps, whether it arrives through ASGI, on the direct path or from a page.
"""

from __future__ import annotations

import json
import math
import re
import urllib.parse
from typing import Any, Final, NamedTuple

import msgspec

from driftsack.service.domain.refusals import Refusal
from driftsack.service.web.api.context import Context, Service
from driftsack.service.web.api.keyring import Keyring, Principal
from driftsack.service.web.api.responses import JSON
from driftsack.service.web.api.routes import TABLE, Route, shape_of
from driftsack.service.web.asgi import Receive, whole_body

LONGEST_KEY: Final = 200
PLACE: Final = re.compile(r" - at `\$([^`]+)`$")
_decoders: Final[dict[Any, Any]] = {}


class Target(NamedTuple):
    """A route with the names in the request's path.

    Attributes:
        campaign: The campaign; empty if the path names none.
        item: The decision, arm or key; empty if the path names none.
    """

    route: Route
    campaign: str
    item: str


class AuthenticatedRequest(NamedTuple):
    """An authenticated request, without its body.

    Attributes:
        target: Its route and the names in its path.
        principal: The owner of its key.
        scope: Its ASGI scope.
        headers: Its headers, by name.
    """

    target: Target
    principal: Principal
    scope: dict[str, Any]
    headers: dict[bytes, bytes]


def find_target(method: str, path: str) -> Target | None:
    """Return the target of a method and path; None if there is no such route."""
    shape, campaign, item = shape_of(path)
    route = TABLE.get((method, shape))
    return None if route is None else Target(route, campaign, item)


def authenticate(keyring: Keyring, target: Target, scope: dict[str, Any]) -> AuthenticatedRequest:
    """Check the key of a request and what it allows.

    Raises:
        Refusal: The key is missing, invalid, rate-limited, or does not allow the request.
    """
    headers = dict(scope["headers"])
    principal = keyring.principal(headers)
    authorise(principal, target)
    return AuthenticatedRequest(target, principal, scope, headers)


def authorise(principal: Principal, target: Target) -> None:
    """Raise a refusal unless the principal may use the target."""
    principal.check(target.route.scope, target.campaign or None, target.route.limited_ok)


async def read_body(request: AuthenticatedRequest, receive: Receive) -> bytes:
    """Return the body of a request; empty if its route takes none.

    Raises:
        Refusal: The body is too large, takes too long, or is not JSON by its type.
    """
    if request.target.route.body is None:
        return b""
    length = request.headers.get(b"content-length", b"0")
    check_body(request, int(length) if length.isdigit() else 0)
    return await whole_body(receive, request.target.route.limit)


def check_body(request: AuthenticatedRequest, size: int) -> None:
    """Raise a refusal if the body is too large or not JSON by its type."""
    limit = request.target.route.limit
    if size > limit:
        raise Refusal("too-large", f"a body may have {limit:,} bytes, got {size:,}.")
    kind = request.headers.get(b"content-type", JSON)
    if kind != JSON and (kind := kind.partition(b";")[0].strip().lower()) != JSON:
        raise Refusal("unsupported-media-type", f"send application/json, got {kind.decode('latin-1')!r:.60}.")


def understand(service: Service, request: AuthenticatedRequest, raw: bytes) -> Context:
    """Decode a request for its handler.

    Raises:
        Refusal: The body, the query or the idempotency key is invalid.
    """
    target, scope = request.target, request.scope
    key = request.headers.get(b"idempotency-key", b"").decode("latin-1")
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise Refusal.invalid(f"Idempotency-Key must be a string of at most {LONGEST_KEY} characters.")
    check_needed_key(target.route, key)
    body = decode(target.route, raw)
    query = _query(target.route, scope["query_string"]) if scope["query_string"] else {}
    action = f"{scope['method']} {scope['path']}"
    return Context(service, request.principal, target.campaign, target.item, body, raw, action, key, query)


def check_needed_key(route: Route, key: str) -> None:
    """Raise a refusal if a route needs an idempotency key and there is none."""
    if route.needs_key and not key:
        raise Refusal.invalid(
            "send a new Idempotency-Key with each grant or charge, and the same key with its retries."
        )


def _query(route: Route, raw: bytes) -> dict[str, str]:
    pairs = urllib.parse.parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    query = dict(pairs)
    unknown = [name for name in query if name not in route.query]
    if unknown:
        known = ", ".join(route.query) or "no parameters"
        raise Refusal.invalid(f"the query may have {known}, got {unknown[0]!r:.40}.")
    if len(pairs) > len(query):
        raise Refusal.invalid("each parameter may be given once.")
    return query


def pointer_in(message: str) -> str | None:
    """Return the JSON pointer (RFC 6901) to the field that a validation error names; None if it names none.

    >>> pointer_in("Expected `str`, got `int` - at `$.config.arms[0]`")
    '/config/arms/0'
    """
    found = PLACE.search(message)
    return None if found is None else re.sub(r"[.\[]", "/", found[1].replace("]", ""))


def decode(route: Route, raw: bytes) -> Any:
    """Return the body as the message that a route takes; None if it takes none."""
    if route.body is None:
        return None
    decoder = _decoders.get(route.body)
    if decoder is None:
        decoder = _decoders[route.body] = msgspec.json.Decoder(route.body).decode
    try:
        return decoder(raw or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_understood(raw, error) from error


def _not_understood(raw: bytes, error: Exception) -> Refusal:
    """Return the refusal of a body that cannot be decoded, which names the field if that is known."""
    path = _place_of_not_finite(raw)
    if path:
        refusal = Refusal.invalid(f"{path[-1]!r:.100} must be a finite number; JSON has no NaN and no infinity.")
        refusal.pointer = "".join(f"/{part}" for part in path)
    elif isinstance(error, msgspec.ValidationError):
        refusal = Refusal.invalid(f"{error}.")
        refusal.pointer = pointer_in(str(error))
    else:
        refusal = Refusal("malformed", f"the body must be JSON: {error}.")
    return refusal


def _place_of_not_finite(raw: bytes) -> list[str]:
    """Return the names that lead to the first number that is not finite, as other libraries write it; empty if none."""
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    waiting: list[tuple[list[str], Any]] = [([], content)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            return path
        if isinstance(value, dict):
            waiting += [([*path, name[:100]], one) for name, one in value.items()]
        elif isinstance(value, list):
            waiting += [(path, one) for one in value if isinstance(one, (float, dict, list))]
    return []
