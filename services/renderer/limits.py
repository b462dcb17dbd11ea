"""How much document is too much, told from the text alone and in linear time.

HTML parsers take time or memory that grows with the square of the input on pages made for
it: deep nesting, formatting elements that are opened again in every paragraph, thousands of
attributes on one tag. So a document is measured before anything parses it, by counts that
no trick of syntax can lower. Not here: time and memory of drawing, which the pool watches.
"""

import re
from dataclasses import dataclass

# Elements that the HTML standard opens again in later blocks.
_FORMATTING = re.compile(
    r"<(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/>]", re.IGNORECASE
)
# Each of them may be opened again at each tag and at the text behind it.
_MAX_REOPENED = 300_000

# Before every attribute but one behind a quoted value stands white space or a slash.
_SEPARATOR = re.compile(r"[\s/\"']+")
_MAX_SEPARATORS = 10_000
# A tag ends at the first ">" behind its name, unless one stands in a quoted value.
_TAG = re.compile(r"<[a-z][^>]*+", re.IGNORECASE)
_QUOTED_END = re.compile(r"""=\s*+(?:"[^">]*+>|'[^'>]*+>)""")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes of UTF-8 and number of tags, opening and closing, of one document."""

    max_bytes: int = 4 << 20
    max_tags: int = 10_000


def oversized(html: str, limits: Limits) -> str:
    """Why `html` is too large to be drawn, in one sentence; empty when it is not."""
    size = len(html) if html.isascii() else len(html.encode("utf-8", "replace"))
    if size > limits.max_bytes:
        return f"document of {size} bytes, at most {limits.max_bytes} are drawn"
    tags = html.count("<")
    if tags > limits.max_tags:
        return f"document of {tags} tags, at most {limits.max_tags} are drawn"
    if len(_FORMATTING.findall(html)) * 2 * tags > _MAX_REOPENED:
        return "document with too many formatting elements for its size"
    if _QUOTED_END.search(html):
        many = _separators(html) > _MAX_SEPARATORS
    else:
        many = len(html) > _MAX_SEPARATORS and any(
            len(tag) > _MAX_SEPARATORS and _separators(tag) > _MAX_SEPARATORS
            for tag in _TAG.findall(html)
        )
    return "document with too many attributes in one tag" if many else ""


def _separators(text: str) -> int:
    return len(_SEPARATOR.findall(text))
