r"""Docstrings as Markdown: mathematics becomes MathML, which browsers draw without a script; examples become code.

The docstrings of the library mark mathematics by ``:math:`` and ``.. math::`` and names by ``:func:`` and its kin, as
Sphinx does; MkDocs reads Markdown. Griffe, which reads the sources for mkdocstrings, calls this extension.
"""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

DISPLAY = re.compile(r"^([ ]*)\.\. math::(.*(?:\n\1[ ]+\S.*)*)", re.MULTILINE)
INLINE = re.compile(r":math:`([^`]+)`")
BEGINS = re.compile(r"(^.*)\n[ ]*(?=<math[^>]*display=\"inline\")", re.MULTILINE)  # Markdown would make it a block
NAME = re.compile(r":(?:func|class|meth|mod|data|attr):`~?([^`]+)`")
EXAMPLE = re.compile(r"(?:^[ ]*>>>.*\n?(?:^[ ]*\S.*\n?)*)", re.MULTILINE)


def formula(latex: str, display: str) -> str:
    """One line of MathML; newlines and indents of the source are spaces."""
    return convert(" ".join(latex.split()), display=display).replace("\n", "")


def markdown(text: str) -> str:
    r"""A docstring as Markdown.

    >>> markdown("See :func:`solve`:\n\n>>> 1 + 1\n2\n").splitlines()
    ['See `solve`:', '', '```pycon', '>>> 1 + 1', '2', '```']
    >>> markdown(":math:`x`")
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><mi>x</mi></mrow></math>'
    """
    text = DISPLAY.sub(lambda found: f"\n{found[1]}{formula(found[2], 'block')}\n", text)
    text = INLINE.sub(lambda found: formula(found[1], "inline"), text)
    text = BEGINS.sub(lambda found: f"{found[1]} " if found[1].strip() else f"{found[1]}\n&#8203;", text)
    text = NAME.sub(r"`\1`", text)
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


def undocumented(place: griffe.Object | griffe.Alias) -> list[str]:
    """Public modules, classes and functions from a place down that have no docstring; special methods need none."""
    if place.is_alias or place.is_attribute or place.is_special or not place.is_public:
        return []
    found = [] if place.docstring else [place.path]
    return found + [path for member in place.members.values() for path in undocumented(member)]


class Docstrings(griffe.Extension):
    """Rewrites every docstring that Griffe has read, and warns of missing ones, so that a strict build fails."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Name what has no docstring."""
        for path in undocumented(pkg):
            griffe.logger.warning(f"{path} has no docstring")

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
