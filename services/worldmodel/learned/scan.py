"""Where tags begin and end in an HTML text, as the HTML standard's tokenizer sees them.

Comments, attribute values and the contents of script, style and the like hold no tags. One
pass, linear time, nothing is built: this is no parser and knows no tree.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_RAW = frozenset(("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"))
"""Elements whose content is text up to their own end tag."""

_OPEN = re.compile(r"<(?:!--|(/?)([a-zA-Z][^\s/>]*)|[!?/])")
_COMMENT_END = re.compile(r"--!?>")
# A quote opens a value only directly after "="; elsewhere it is part of a name.
_NEXT = re.compile(r"""=\s*(["']?)|>""")
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag: `text[start:end]` is it, brackets included. `name` is in lower case."""

    name: str
    closing: bool
    start: int
    end: int


def tags(text: str, start: int = 0) -> Iterator[Tag]:
    """The tags of `text` from `start` on; a tag, comment or raw text that is cut off ends it."""
    at = start
    while (opened := _OPEN.search(text, at)) is not None:
        name = (opened[2] or "").lower()
        if not name:
            at = _skip(text, opened)
            if at < 0:
                return
            continue
        end = _tag_end(text, opened.end())
        if end < 0:
            return
        closing = opened[1] == "/"
        yield Tag(name, closing, opened.start(), end)
        at = end
        if not closing and name in _RAW:
            raw = _RAW_END[name].search(text, end)
            if raw is None:
                return
            at = raw.start()


def _skip(text: str, opened: re.Match[str]) -> int:
    """The end of a comment or declaration; -1 where it is cut off."""
    if opened[0] != "<!--":
        end = text.find(">", opened.end())
        return end + 1 if end >= 0 else -1
    # `<!-->` and `<!--->` are whole comments.
    for short in (">", "->"):
        if text.startswith(short, opened.end()):
            return opened.end() + len(short)
    closed = _COMMENT_END.search(text, opened.end())
    return closed.end() if closed is not None else -1


def _tag_end(text: str, at: int) -> int:
    """Just behind the `>` of a tag whose name ends at `at`; -1 where it is cut off."""
    while at < len(text):
        mark = _NEXT.search(text, at)
        if mark is None:
            return -1
        if mark[0] == ">":
            return mark.end()
        quote = mark[1]
        if not quote:
            at = mark.end()
            continue
        at = text.find(quote, mark.end()) + 1
        if at == 0:
            return -1
    return -1
