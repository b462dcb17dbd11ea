"""Where the answer starts, for dialects that are handed a whole step with its thought."""

from wmkit.domain.dialects.base import Reject
from wmkit.domain.transcript import parse_thought


def skip_thought(text: str) -> int:
    """The offset of what follows the thought; 0 where there is none. Raises Reject."""
    if "think>" not in text:
        return 0
    transcript = parse_thought(text)
    if transcript.answer_start is None:
        raise Reject("the thought is never closed", max(text.find("<think>"), 0), len(text))
    return transcript.answer_start
