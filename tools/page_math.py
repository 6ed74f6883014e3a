r"""Formulas of the pages, rendered when the site is built.

``$x$`` within a sentence and ``$$x$$`` as a paragraph become MathML, which browsers show without a script; GitHub
renders the same notation. Proofs are written as text with Unicode letters, which is readable as source: there
``μ_{t,i}``, ``LP_t`` and ``V^⅓`` become real subscripts and superscripts. Unconverted notation in a finished
page is listed by :func:`unrendered`.
"""

from __future__ import annotations

import re
from html import unescape

from tools.docstrings import formula
from tools.indices import indexed

CODE = re.compile(r"(^[ ]*```.*?^[ ]*```|`[^`\n]+`|\]\([^)\n]*\))", re.MULTILINE | re.DOTALL)  # and targets of links
DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
INLINE = re.compile(r"(?<![\w$\\])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![\w$])")
MATHML = re.compile(r"(<math.*?</math>)", re.DOTALL)
HIDDEN = re.compile(r"<(pre|code|math|script|style|svg)\b.*?</\1>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")
LATEX = re.compile(
    r":math:|\.\. math::|\$\$|\\[a-zA-Z]{2,}|\\[(\[]"  # what should have become MathML
    r"|(?<![\w./])[A-Za-zΑ-ω]{1,3}_[a-z]\b|[\w)\u0304]\^\{|[\w)\u0304]_\{"  # and what should have become indices
    r"|[A-Za-zΑ-ω)]\^[⅓⅔½¾\w(]"
)


def rendered(text: str) -> str:
    r"""Convert the formulas of a page in Markdown; code stays as it is.

    >>> rendered("At a rate of $b$, `$b$`.").count("<math")
    1
    >>> rendered("5$ or 6$")
    '5$ or 6$'
    """
    parts = CODE.split(text)
    for i in range(0, len(parts), 2):
        parts[i] = DISPLAY.sub(lambda found: f'<div class="formula">{formula(found[1], "block")}</div>', parts[i])
        parts[i] = INLINE.sub(lambda found: formula(found[1], "inline"), parts[i])
        pieces = MATHML.split(parts[i])
        pieces[::2] = map(indexed, pieces[::2])
        parts[i] = "".join(pieces)
    return "".join(parts)


def unrendered(html: str) -> list[str]:
    r"""List the pieces of formulas that a reader of the finished page would see as source.

    >>> unrendered("<p>a rate of \\sqrt{T}, V^{1/3} and x_{t}</p><code>x_{t}</code>")
    ['\\sqrt', 'V^{', 'x_{']
    """
    return LATEX.findall(unescape(TAG.sub(" ", HIDDEN.sub(" ", html))))
