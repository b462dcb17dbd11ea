"""Typed answers: compared after normalisation, never by substring.

An answer that holds more than what was asked for ("It is 7:30") cannot be read as its type
and is wrong: the agent is asked for the value alone.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Literal

AnswerType = Literal[
    "text", "count", "time", "phone", "number", "money", "date", "name", "choice", "list"
]

_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
)  # fmt: skip
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_NUMBER = r"[-+−]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})?(?:\.[0-9]{1,15})?"
_CURRENCY = r"(?:\$|usd|us\$|dollars?)"


def same_answer(given: str, right: str, kind: AnswerType) -> bool:
    """Whether two answers mean the same. An answer that cannot be read is wrong."""
    a, b = normalise(given, kind), normalise(right, kind)
    return a is not None and a == b


def normalise(answer: str, kind: AnswerType) -> str | None:
    """The canonical form of an answer, None when it is none of its kind.

    count: an integer in digits or in words up to twelve. number: a decimal number, thousands
    in commas, with a unit or % behind it. money: dollars, with or without the sign. time:
    HH:MM, 12 or 24 hours. date: a day and a month in words, or ISO; the year and the weekday
    do not matter. phone: digits, with the usual separators. name, choice and text: case,
    blanks and a final stop are ignored, for a choice also quotes and an article. list: items
    between commas, semicolons or "and", in any order.
    """
    words = " ".join(answer.split()).strip().rstrip(".").strip().lower()
    return _READERS[kind](words) if words else None


def _text(words: str) -> str | None:
    return words or None


def _choice(words: str) -> str | None:
    return re.sub(r"^(?:the|a|an) ", "", words.strip("\"'“”‘’ ")) or None


def _count(words: str) -> str | None:
    if words in _WORDS:
        return str(_WORDS.index(words))
    return str(int(words)) if re.fullmatch(r"[0-9]{1,9}", words) else None


def _number(words: str) -> str | None:
    if words in _WORDS:
        return str(_WORDS.index(words))
    match = re.fullmatch(rf"({_NUMBER}) ?(?:%|°c|°|degrees|celsius|[a-z]{{1,9}})?", words)
    return _decimal(match[1]) if match else None


def _money(words: str) -> str | None:
    match = re.fullmatch(rf"(-?)(?:{_CURRENCY} ?({_NUMBER})|({_NUMBER}) ?{_CURRENCY}?)", words)
    return _decimal(match[1] + (match[2] or match[3])) if match else None


def _decimal(digits: str) -> str | None:
    """The shortest form: 1,250.50 is 1250.5."""
    plain = digits.replace(",", "").replace("−", "-").replace("--", "")
    if not re.search(r"[0-9]", plain):
        return None
    text = f"{Decimal(plain):f}"
    short = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if short in ("-0", "") else short


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


def _date(words: str) -> str | None:
    iso = re.fullmatch(r"[0-9]{4}-([0-9]{2})-([0-9]{2})", words)
    if iso:
        return _day(int(iso[2]), int(iso[1]))
    plain = re.sub(r"^(?:on )?(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
                   r",? )?(?:the )?", "", words)  # fmt: skip
    plain = re.sub(r",? [0-9]{4}$", "", plain)
    first = re.fullmatch(r"([0-9]{1,2})(?:st|nd|rd|th)?\.?(?: of)? ([a-z]+)\.?", plain)
    if first:
        return _day(int(first[1]), _month(first[2]))
    second = re.fullmatch(r"([a-z]+)\.? (?:the )?([0-9]{1,2})(?:st|nd|rd|th)?", plain)
    return _day(int(second[2]), _month(second[1])) if second else None


def _month(word: str) -> int:
    for names in (_MONTHS, _FULL):
        if word in names:
            return names.index(word) + 1
    return 9 if word == "sept" else 0


def _day(day: int, month: int) -> str | None:
    return f"{month:02d}-{day:02d}" if 1 <= month <= 12 and 1 <= day <= 31 else None


def _phone(words: str) -> str | None:
    if not re.fullmatch(r"\+?[0-9 ()./-]+", words):
        return None
    return re.sub(r"[^0-9]", "", words) or None


def _list(words: str) -> str | None:
    items = [_choice(item.strip()) for item in re.split(r"[,;]| and | & ", words)]
    kept = sorted(item for item in items if item)
    # "a, b, and c" leaves one empty piece between the comma and the word.
    return ";".join(re.sub(r"^and ", "", item) for item in kept) or None


_READERS: dict[AnswerType, Callable[[str], str | None]] = {
    "text": _text,
    "name": _text,
    "choice": _choice,
    "count": _count,
    "number": _number,
    "money": _money,
    "time": _time,
    "date": _date,
    "phone": _phone,
    "list": _list,
}
