r"""Convert docstrings to Markdown: formulas become MathML, which browsers render without a script, and examples code.

The docstrings of the library mark formulas with ``:math:`` and ``.. math::`` and names with ``:func:`` and similar
roles, as in Sphinx, whereas MkDocs reads Markdown. Griffe, which parses the sources for mkdocstrings, calls this
extension before it splits a docstring into sections (``Args:``, ``Attributes:`` and so on).
"""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

from tools.indices import indexed

DISPLAY = re.compile(r"^([ ]*)\.\. math::(.*(?:\n\1[ ]+\S.*)*)", re.MULTILINE)
INLINE = re.compile(r":math:`([^`]+)`")
BEGINS = re.compile(r"(^.*)\n[ ]*(?=<math[^>]*display=\"inline\")", re.MULTILINE)  # Markdown would make it a block
NAME = re.compile(r":(?:func|class|meth|mod|data|attr):`~?([^`]+)`")
EXAMPLE = re.compile(r"(?:^[ ]*>>>.*\n?(?:^[ ]*\S.*\n?)*)", re.MULTILINE)
VERBATIM = re.compile(r"(^[ ]*>>>.*\n?(?:^[ ]*\S.*\n?)*|``[^`]*``|`[^`]*`|<math.*?</math>)", re.MULTILINE)


def formula(latex: str, display: str) -> str:
    """Convert a LaTeX formula to one line of MathML; newlines and indentation are treated as spaces."""
    return convert(" ".join(latex.split()), display=display).replace("\n", "")


def markdown(text: str) -> str:
    r"""Convert a docstring to Markdown.

    >>> markdown("See :func:`solve`:\n\n>>> 1 + 1\n2\n").splitlines()
    ['See `solve`:', '', '```pycon', '>>> 1 + 1', '2', '```']
    >>> markdown(":math:`x`")
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><mi>x</mi></mrow></math>'
    """
    text = DISPLAY.sub(lambda found: f"\n{found[1]}{formula(found[2], 'block')}\n", text)
    text = INLINE.sub(lambda found: formula(found[1], "inline"), text)
    text = BEGINS.sub(lambda found: f"{found[1]} " if found[1].strip() else f"{found[1]}\n&#8203;", text)
    text = NAME.sub(r"`\1`", text)
    text = "".join(part if i % 2 else indexed(part, words=False) for i, part in enumerate(VERBATIM.split(text)))
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


def undocumented(item: griffe.Object | griffe.Alias) -> list[str]:
    """List the public modules, classes and functions in an object that have no docstring; special methods need none."""
    if item.is_alias or item.is_attribute or item.is_special or not item.is_public:
        return []
    missing = [] if item.docstring else [item.path]
    return missing + [path for member in item.members.values() for path in undocumented(member)]


class Docstrings(griffe.Extension):
    """Convert every docstring that Griffe has read, and warn about missing ones, so that a strict build fails."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Warn about every public object without a docstring."""
        for path in undocumented(pkg):
            griffe.logger.warning(f"{path} has no docstring")

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Convert one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
