"""Typed answers: compared after normalisation, never by substring."""

import re
from typing import Literal

AnswerType = Literal["text", "count", "time", "phone"]

_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
)  # fmt: skip


def same_answer(given: str, right: str, kind: AnswerType) -> bool:
    """Whether two answers mean the same. An answer that cannot be read is wrong."""
    a, b = normalise(given, kind), normalise(right, kind)
    return a is not None and a == b


def normalise(answer: str, kind: AnswerType) -> str | None:
    """The canonical form of an answer, None when it is none of its kind.

    count: an integer in digits or in words up to twelve. time: HH:MM, 12 or 24 hours.
    phone: digits, with the usual separators. text: case, blanks and a final stop ignored.
    """
    words = " ".join(answer.split()).strip().rstrip(".").lower()
    if kind == "count":
        if words in _WORDS:
            return str(_WORDS.index(words))
        return str(int(words)) if re.fullmatch(r"[0-9]{1,9}", words) else None
    if kind == "time":
        return _time(words)
    if kind == "phone":
        if not re.fullmatch(r"\+?[0-9 ()./-]+", words):
            return None
        return re.sub(r"[^0-9]", "", words) or None
    return words or None


def _time(words: str) -> str | None:
    match = re.fullmatch(r"([0-9]{1,2})[:.]([0-9]{2})(?: ?([ap])\.?m)?", words)
    if match is None:
        return None
    hour, minute, half = int(match[1]), int(match[2]), match[3]
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02d}:{minute:02d}" if hour < 24 and minute < 60 else None
