"""Drops from a page what it would load from the web: style sheets, scripts, imports. Pure.

gWorld likes to link Bootstrap, Tailwind or MUI. Nothing is ever fetched, so such a link can
only mislead: it goes, and a warning names it. Everything else stays byte for byte.
"""

import re

from services.worldmodel.learned.scan import tags

_ADDRESS = re.compile(
    r"""\b(?:href|src)\s*=\s*(?:"\s*([^"]*)"|'\s*([^']*)'|([^\s>"']+))""", re.IGNORECASE
)
_IMPORT = re.compile(
    r"""@import\s+(?:url\(\s*)?["']?((?:https?:)?//[^"')\s;]+)["']?\s*\)?[^;<]*;?""", re.IGNORECASE
)
_STYLE_END = re.compile(r"</style(?=[\s/>])", re.IGNORECASE)
_REMOTE = re.compile(r"(?:https?:)?//", re.IGNORECASE)


def drop_remote(html: str) -> tuple[str, tuple[str, ...]]:
    """The page without its remote frameworks, and a warning for each that was dropped."""
    kept: list[str] = []
    dropped: list[str] = []
    at = 0
    hole = ""
    """The element whose end tag ends what is left out."""
    for tag in tags(html):
        if hole:
            if tag.closing and tag.name == hole:
                at, hole = tag.end, ""
            continue
        if tag.closing or tag.name not in ("link", "script", "style"):
            continue
        if tag.name == "style":
            kept.append(html[at : tag.end])
            at = _keep_style(html, tag.end, kept, dropped)
            continue
        address = _address(html[tag.start : tag.end])
        if address:
            kept.append(html[at : tag.start])
            dropped.append(address)
            at = tag.end
            hole = "script" if tag.name == "script" else ""
    kept.append("" if hole else html[at:])
    return "".join(kept), tuple(f"DROPPED: {address}" for address in dropped)


def _keep_style(html: str, start: int, kept: list[str], dropped: list[str]) -> int:
    """Copy a style element's text without its remote imports; where it ends."""
    closed = _STYLE_END.search(html, start)
    end = closed.start() if closed is not None else len(html)
    style = html[start:end]
    dropped.extend(found[1] for found in _IMPORT.finditer(style))
    kept.append(_IMPORT.sub("", style))
    return end


def _address(tag: str) -> str:
    """The remote address that a tag names; empty where it names none."""
    for found in _ADDRESS.finditer(tag):
        address = next((group for group in found.groups() if group), "").strip()
        if _REMOTE.match(address):
            return address[:200]
    return ""
