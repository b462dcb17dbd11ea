"""Takes out of a document what must not run or load, and says what it took.

Pure: text in, text and sentences out. It is the first wall, not the only one: the browser
itself runs no script and reaches no network, so what a trick hides from this parser stays
harmless there. What the sanitizer adds is that such content is *named*, and that a refresh
or a frame cannot spoil the page on its way to the picture.

A document in which nothing has to be removed is returned byte for byte.
"""

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from services.renderer.limits import Limits, oversized
from wmkit.domain.transition import FailureReason

_END = "wm-end-of-document"

# What is removed as a whole, with its sentence.
_ELEMENTS = (
    ("script", "script removed"),
    ('meta[http-equiv="refresh" i]', "meta refresh removed"),
    ('meta[http-equiv]:not([http-equiv="content-type" i])', "meta http-equiv removed"),
    ("base", "base tag removed"),
    ("iframe, frame, frameset, portal, fencedframe", "frame removed"),
    ("object, embed, applet", "embedded object removed"),
    ("template", "template removed"),
)
# Attributes from which an element loads. A link's own href is not one: nobody clicks here.
_LOADING = ("src", "poster", "background", "data", "href", "xlink:href", "srcset", "imagesrcset")
_LOADS = ", ".join("[{}]:not(a):not(area)".format(name.replace(":", r"\:")) for name in _LOADING)
_STYLED = 'style, [style*="url" i]'

# The others would hold for the documents that are drawn in the same page later; see probe.js.
_HARMLESS_METAS = ("viewport", "description", "author", "generator", "keywords", "theme-color")
_WORDS = re.compile(r"[a-z\s-]+", re.IGNORECASE)
# An attribute's name stands behind white space, a slash or a quote, in every HTML parser.
_EVENT = re.compile(r"""[\s"'/]on[a-z]+\s*=""", re.IGNORECASE)
# Both patterns are linear: neither can start again inside what it failed on.
_IMPORT = re.compile(
    r"""@import\s*+(?:url\([^()]*+\)|"[^"]*+"|'[^']*+')[^;{}]*+;?+""", re.IGNORECASE
)
_URL = re.compile(r"""url\(\s*+(?:"([^"]*+)"\s*+|'([^']*+)'\s*+|([^()"']*+))\)""", re.IGNORECASE)
_NOTHING = re.compile(
    r"\ufeff?(?:\s|<!--(?>.*?(?:-->|\Z))|<!doctype[^>]*+>)*+", re.IGNORECASE | re.DOTALL
)
_TAG = re.compile(r"<[a-z]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clean:
    """A document that may be drawn, or the reason why there is none."""

    html: str
    warnings: tuple[str, ...] = ()
    reason: FailureReason | None = None


def sanitize(html: str, limits: Limits) -> Clean:
    """`html` without scripts, event attributes, refreshes, frames, objects, remote references.

    Warnings are one sentence per kind of thing. Nothing but white space, comments and a
    doctype is NO_DOCUMENT; what would take the parser or the browser too long is OVERSIZED.
    Never raises, whatever the text.
    """
    if why := oversized(html, limits):
        return Clean("", (why,), FailureReason.OVERSIZED)
    if _NOTHING.fullmatch(html):
        return Clean("", reason=FailureReason.NO_DOCUMENT)
    html = html.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    # The mark at the end becomes an element only if the document does not stop inside a
    # tag, a comment, a style or a script.
    tree = LexborHTMLParser(f"{html}<{_END}>")
    end = tree.css_first(_END)
    if end is not None:
        end.decompose()
    else:  # It ended up inside what was cut off, closed it, perhaps, and must not be drawn.
        tree = LexborHTMLParser(html)
    removed = _remove(tree, events=_EVENT.search(html) is not None)
    replaced = _replace(tree)
    kept = tree.html if removed or replaced else html
    return Clean(kept or "", (*removed, *_oddities(html, complete=end is not None)))


def _remove(tree: LexborHTMLParser, *, events: bool) -> list[str]:
    warnings = []
    for selector, sentence in _ELEMENTS:
        nodes = tree.css(selector)
        # Inner ones first: a node inside of one that was removed must not be touched.
        for node in reversed(nodes):
            node.decompose()
        if nodes:
            warnings.append(_counted(sentence, len(nodes)))
    if events and (count := sum(_strip_events(node) for node in tree.css("*"))):
        warnings.append(_counted("event attribute removed", count))
    remote = [node.attributes.get("href") or "link" for node in tree.css("link")]
    for node in reversed(tree.css("link")):
        node.decompose()
    remote += [url for node in tree.css(_LOADS) for url in _strip_loads(node)]
    remote += [url for node in tree.css(_STYLED) for url in _strip_style(node)]
    if remote:
        warnings.append(_counted("remote reference removed", len(remote)) + f": {remote[0][:80]}")
    return warnings


def _replace(tree: LexborHTMLParser) -> bool:
    """Say in a harmless way what would trouble a page or the document after this one."""
    focused = tree.css("[autofocus]")
    for node in focused:
        # Real focus scrolls the page and blinks; the fact is kept for the element boxes.
        del node.attrs["autofocus"]
        node.attrs["data-focused"] = "true"
    metas = [
        node
        for node in tree.css("meta[name]")
        if (node.attributes["name"] or "").lower() not in _HARMLESS_METAS
    ]
    for node in metas:
        scheme = node.attributes.get("content") or ""
        if (node.attributes["name"] or "").lower() == "color-scheme" and _WORDS.fullmatch(scheme):
            style = tree.create_node("style")
            style.insert_child(f":root{{color-scheme:{scheme}}}")
            node.insert_before(style)
        node.decompose()
    return bool(focused or metas)


def _strip_events(node: LexborNode) -> int:
    names = [name for name in node.attributes if name.lower().startswith("on")]
    for name in names:
        del node.attrs[name]
    return len(names)


def _strip_loads(node: LexborNode) -> list[str]:
    found = []
    for name in _LOADING:
        value = node.attributes.get(name)
        if value is not None and not _is_inline(value):
            del node.attrs[name]
            found.append(value)
    return found


def _strip_style(node: LexborNode) -> list[str]:
    is_sheet = node.tag == "style"
    found: list[str] = []

    def drop_url(match: re.Match[str]) -> str:
        url = (match[1] or match[2] or match[3] or "").strip()
        if _is_inline(url):
            return match[0]
        found.append(url)
        return "url(data:,)"

    def drop_import(match: re.Match[str]) -> str:
        found.append(match[0])
        return ""

    before = (node.text() if is_sheet else node.attributes.get("style")) or ""
    after = _URL.sub(drop_url, _IMPORT.sub(drop_import, before))
    if found and is_sheet:
        first, *rest = list(node.iter(include_text=True))
        first.replace_with(after)
        for child in rest:
            child.decompose()
    elif found:
        node.attrs["style"] = after
    return found


def _is_inline(url: str) -> bool:
    """What loads without a network: data, a fragment of the page itself, nothing at all."""
    url = url.strip()
    return not url or url[0] == "#" or url[:5].lower() == "data:"


def _oddities(html: str, *, complete: bool) -> list[str]:
    if not _TAG.search(html):
        return ["no HTML: drawn as text"]
    end = html.lower().rfind("</html")
    closed = complete and end >= 0 and not _TAG.search(html, end)
    return [] if closed else ["unclosed document"]


def _counted(sentence: str, count: int) -> str:
    return sentence if count == 1 else f"{sentence} ({count} times)"
