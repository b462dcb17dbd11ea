"""From a model's answer to the HTML document in it. Pure; knows no model and no page.

An answer may think first, wrap the document in a code fence, chat around it, or stop in the
middle. `document` answers with the bare document from its doctype to its own `</html>`, the
one that stands outside script, style, comment and attribute values.
"""

import re
from dataclasses import dataclass

from services.worldmodel.learned.scan import tags

UNCLOSED = "UNCLOSED: the document has no </html>"
NO_DOCTYPE = "NO_DOCTYPE: the document begins without a doctype"

_DOCTYPE = re.compile(r"<!doctype\s+html", re.IGNORECASE)
_ROOT = re.compile(r"<html(?=[\s>])", re.IGNORECASE)
_FENCED_DOCUMENT = re.compile(
    r"^[ \t]*(?:```|~~~)[^\n`]*\n\s*(?=<(?:!doctype\s+html|html[\s>]))",
    re.MULTILINE | re.IGNORECASE,
)
_LAST_FENCE = re.compile(r"\n[ \t]*(?:```|~~~)[ \t]*(?:\n|\Z)")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]*\**HTML\**[ \t]*(?::\**|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Extracted:
    """The document and what is odd about it."""

    html: str
    warnings: tuple[str, ...] = ()


def document(answer: str) -> Extracted | None:
    """The HTML document in an answer; None where there is none."""
    text = _without_thought(answer)
    warnings = []
    # A thought may quote a doctype; a fence that opens with one is surely the document.
    begin = _FENCED_DOCUMENT.search(text)
    start = begin.end() if begin is not None else -1
    if start < 0 and (begin := _DOCTYPE.search(text)) is not None:
        start = begin.start()
    if start < 0 and (begin := _ROOT.search(text)) is not None:
        start = begin.start()
    if start < 0:
        return None
    if _DOCTYPE.match(text, start) is None:
        warnings.append(NO_DOCTYPE)
    for tag in tags(text, start):
        if tag.closing and tag.name == "html":
            return Extracted(text[start : tag.end], tuple(warnings))
    html = text[start:]
    if (fence := _LAST_FENCE.search(html)) is not None:
        html = html[: fence.start()]
    return Extracted(html.rstrip(), (*warnings, UNCLOSED))


def document_after_heading(answer: str) -> Extracted | None:
    """gWorld's form: the document after the last `# HTML:`, else in a fence, else anywhere."""
    *_, after = _HEADING.split(answer)
    return document(after) or document(answer)


def _without_thought(answer: str) -> str:
    """Drop what stands before the last `</think>`, unless the document itself contains it."""
    end = answer.rfind("</think>")
    begin = _DOCTYPE.search(answer, end) if end >= 0 else None
    return answer[end:] if begin is not None else answer
