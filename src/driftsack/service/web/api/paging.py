"""Pages of long lists: the size of a page, and cursors, which keep their meaning while the list grows."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from driftsack.service.domain.refusals import Refusal
from driftsack.service.web.api.context import Context

PAGE: Final = 100  # entries, unless the request has a limit
LARGEST_PAGE: Final = 1000
LONGEST_NUMBER: Final = 15  # digits


def read_limit(context: Context) -> int:
    """Return the size of a page that a request asks for."""
    text = context.query.get("limit", str(PAGE))
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER and 1 <= int(text) <= LARGEST_PAGE):
        raise Refusal.invalid(f"limit must lie in [1, {LARGEST_PAGE}], got {text!r:.40}.")
    return int(text)


def write_cursor(number: int, word: str) -> str:
    """Return an opaque position in a list: ``after`` or ``before`` a number."""
    return base64.urlsafe_b64encode(f"{word} {number}".encode()).decode()


def read_cursor(context: Context, word: str, start: int) -> int:
    """Return the number in a cursor of :func:`write_cursor` with the same word; ``start`` without a cursor."""
    text = context.query.get("cursor", "")
    if not text:
        return start
    try:
        found, number = base64.urlsafe_b64decode(text.encode()).decode().split()
        if found == word and number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER:
            return int(number)
    except (ValueError, binascii.Error, UnicodeError):
        pass
    raise Refusal.invalid(f"cursor must be one that a page of this list returned, got {text!r:.60}.")
