"""From a model's completion to a prediction: cut, refused, without a document, or a page.

The server's finish reason decides about cut answers, not the text: an answer that stopped at
its token limit renders without any error, so nobody later could tell.
"""

from collections.abc import Callable

from services.worldmodel.backends.base import Prediction
from services.worldmodel.backends.pages import Page
from services.worldmodel.engine import Completion
from services.worldmodel.learned.extract import Extracted
from wmkit.domain.screen import Screen
from wmkit.domain.transition import FailureReason

MAX_HTML_CHARS = 2_000_000
"""Longest page that becomes a state."""


def prediction(
    answer: Completion, extract: Callable[[str], Extracted | None], screen: Screen
) -> Prediction[Page]:
    """The page that the answer holds, to be drawn on `screen`, or why it holds none."""

    def failed(reason: FailureReason) -> Prediction[Page]:
        return Prediction(None, reason, answer.tokens, answer.finish_reason)

    if answer.finish_reason == "length":
        return failed(FailureReason.TRUNCATED)
    found = extract(answer.text) if answer.finish_reason == "stop" else None
    if found is None:
        return failed(FailureReason.NO_DOCUMENT)
    if len(found.html) > MAX_HTML_CHARS:
        return failed(FailureReason.OVERSIZED)
    page = Page(screen, html=found.html)
    return Prediction(page, None, answer.tokens, answer.finish_reason, found.warnings)
