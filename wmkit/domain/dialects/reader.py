"""A forgiving reader of calls, JSON and Python literals as language models write them.

It reads `name(arg, key=value)`, objects, lists, tuples, quoted strings with either quote and
bare words, in one pass and linear time. It is not a Python or JSON parser: it evaluates
nothing, and bare words stay words (`Word`), numbers included, for the caller to judge.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from wmkit.domain.dialects.base import Reject, Span

MAX_DEPTH = 16


class Word(str):
    """An unquoted word or number."""

    __slots__ = ()


Value = str | list["Value"] | dict[str, "Value"]


@dataclass(frozen=True, slots=True)
class RawCall:
    """A call as it was written: nothing is known yet about its name or arguments."""

    name: str
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    span: Span


class CutOff(Reject):
    """The text ends in the middle of something."""


SPECIAL_TAG = re.compile(r"<(?=/?(?:think|call_wm|tool_call|answer)\b|\|)")
"""The `<` of a tag that must not stand in typed text as it is."""

_BLANK = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OPEN = re.compile(r"[^\S\n]*\(")
_KEYWORD = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*")
_MARK = re.compile(r"(?:<\|box_(?:start|end)\|>|</?(?:point|bbox|box)>|\s)*")
_BARE = re.compile(r"[^,()\[\]{}'\"\n]*")
# What may follow a comma after a string, so that a quote before it really closes the string.
_NEXT = r"\s*(?:$|['\"\[({<\d.+-]|[A-Za-z_]\w*\s*[=:]|(?:true|false|null|none|nan|inf)\b)"
_CLOSERS = {
    closer: re.compile(rf"\s*(?:\Z|{re.escape(closer)}|,{_NEXT})", re.IGNORECASE)
    for closer in ")]}"
} | {":": re.compile(r"\s*(?:\Z|:)")}
_QUOTE_OR_ESCAPE = {q: re.compile(rf"\\.|{q}", re.DOTALL) for q in "'\""}
_ESCAPE = re.compile(r"\\(x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""} | {
    c: c for c in "\\'\"/"
}


def read_call(text: str, start: int) -> RawCall:
    """Read `name(...)` at `start`; a name alone on its line is a call without arguments.

    Raises Reject ("... not a call", ...) and CutOff.
    """
    name = _NAME.match(text, start)
    line_end = _line_end(text, start)
    if name is None:
        raise Reject("this is not a call like name(...)", start, line_end)
    opening = _OPEN.match(text, name.end())
    if opening is None:
        if text[name.end() : line_end].strip(" \t\r.;`*"):
            raise Reject("this is not a call like name(...)", start, line_end)
        return RawCall(name.group(), (), {}, (start, name.end()))
    args, kwargs, end = _Reader(text).arguments(opening.end() - 1)
    return RawCall(name.group(), tuple(args), kwargs, (start, end))


def read_value(text: str, start: int) -> tuple[Value, int]:
    """Read one value at `start` and say where it ends. Raises Reject and CutOff."""
    return _Reader(text).value(start, "}", 0)


def unescape(body: str) -> str:
    r"""Undo `\n`, `\'`, `\u00e9` and the like; an unknown escape keeps its backslash."""
    if "\\" not in body:
        return body
    plain = _ESCAPE.sub(_unescape_one, body)
    if any("\ud800" <= c <= "\udfff" for c in plain):
        # JSON writes emoji as two halves; a half alone is no text and becomes U+FFFD.
        plain = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


def quote(text: str) -> str:
    r"""A single-quoted string that `read_value` reads back exactly.

    The `<` of a tag that means something to us or to a model (`<think>`, `</call_wm>`,
    `<|im_end|>`) is written as `\x3c`, so that no typed text can end a call, a thought or
    a turn.
    """
    body = text.replace("\\", "\\\\").replace("'", "\\'")
    body = body.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return "'" + SPECIAL_TAG.sub(r"\\x3c", body) + "'"


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def blank(self, at: int) -> int:
        return _blank_end(self.text, at)

    def arguments(self, at: int) -> tuple[list[Value], dict[str, Value], int]:
        """The arguments of a call whose `(` stands at `at`."""
        opened = at
        args: list[Value] = []
        kwargs: dict[str, Value] = {}
        at = self.blank(at + 1)
        while not self.text.startswith(")", at):
            self.more(opened, at)
            keyword = _KEYWORD.match(self.text, at)
            value, end = self.value(keyword.end() if keyword else at, ")", 0)
            if keyword is None:
                args.append(value)
            elif keyword.group(1) in kwargs:
                raise Reject(f"the argument {keyword.group(1)!r} is given twice", at, end)
            else:
                kwargs[keyword.group(1)] = value
            at = self.separator(opened, end, ")")
        return args, kwargs, at + 1

    def value(self, at: int, closer: str, depth: int) -> tuple[Value, int]:
        marked = _MARK.match(self.text, at)
        at = marked.end() if marked else at
        self.more(at, at)
        if depth > MAX_DEPTH:
            raise Reject("brackets are nested too deeply", at, at + 1)
        char = self.text[at]
        value: Value
        if char in "'\"":
            value, end = self.string(at, closer)
        elif char in "[(":
            value, end = self.sequence(at, "]" if char == "[" else ")", depth)
        elif char == "{":
            value, end = self.object(at, depth)
        else:
            value, end = self.word(at)
        marked = _MARK.match(self.text, end)
        return value, marked.end() if marked else end

    def string(self, at: int, closer: str) -> tuple[str, int]:
        """A string ends at the first quote after which the surrounding construct can go on."""
        pattern, follows = _QUOTE_OR_ESCAPE[self.text[at]], _CLOSERS[closer]
        for match in pattern.finditer(self.text, at + 1):
            if match.group()[0] != "\\" and follows.match(self.text, match.end()):
                return unescape(self.text[at + 1 : match.start()]), match.end()
        raise CutOff("the text is cut off inside quotes", at, len(self.text))

    def sequence(self, at: int, closer: str, depth: int) -> tuple[list[Value], int]:
        opened, items = at, list[Value]()
        at = self.blank(at + 1)
        while not self.text.startswith(closer, at):
            self.more(opened, at)
            item, end = self.value(at, closer, depth + 1)
            items.append(item)
            at = self.separator(opened, end, closer)
        return items, at + 1

    def object(self, at: int, depth: int) -> tuple[dict[str, Value], int]:
        opened, items = at, dict[str, Value]()
        at = self.blank(at + 1)
        while not self.text.startswith("}", at):
            self.more(opened, at)
            if self.text[at] in "'\"":
                key, end = self.string(at, ":")
            else:
                name = _NAME.match(self.text, at)
                if name is None:
                    raise Reject("a key is expected here", at, at + 1)
                key, end = name.group(), name.end()
            colon = self.blank(end)
            self.more(opened, colon)
            if self.text[colon] != ":":
                raise Reject(f"a colon is missing after the key {key!r}", at, colon)
            items[key], end = self.value(colon + 1, "}", depth + 1)
            at = self.separator(opened, end, "}")
        return items, at + 1

    def word(self, at: int) -> tuple[Word, int]:
        bare = _BARE.match(self.text, at)
        assert bare is not None
        end = bare.end()
        if end == len(self.text):
            raise CutOff("the text is cut off", at, end)
        if end == at or self.text[end] in "([{'\"":
            raise Reject("text must stand in quotes", at, end + 1)
        word = re.sub(r"<[^<>]*>", " ", bare.group()).strip()
        return Word(word), end

    def separator(self, opened: int, at: int, closer: str) -> int:
        """Step over a comma; stop at the closing bracket."""
        at = self.blank(at)
        self.more(opened, at)
        if self.text[at] == ",":
            return self.blank(at + 1)
        if self.text[at] != closer:
            self.stray(at, closer)
        return at

    def more(self, opened: int, at: int) -> None:
        if at >= len(self.text):
            raise CutOff("the text is cut off", min(opened, len(self.text)), len(self.text))

    def stray(self, at: int, closer: str) -> NoReturn:
        raise Reject(f"{self.text[at]!r} stands where ',' or {closer!r} is expected", at, at + 1)


def _unescape_one(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) > 1:
        value = int(code[1:], 16)
        return chr(value) if value <= 0x10FFFF else match.group()
    return _SIMPLE.get(code, match.group())


def _blank_end(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
