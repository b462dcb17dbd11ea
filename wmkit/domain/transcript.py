"""Reads what an agent wrote in one step: thought, world-model calls, answer.

The text may come in several stretches of generation; hand over all of them, joined, after
each stretch. Generation stops at `CALL_END`, so a text that ends in it always has a
`pending` call to answer; otherwise `answer_text` is the final answer. The parser does not
read actions (that is a dialect's work), never raises, and takes linear time.
"""

import re
from dataclasses import dataclass

CALL_END = "</call_wm>"
"""Stop string of generation: the token that completes it is kept."""

_TAG = re.compile(
    r"(?P<open><think>)|(?P<close></think>)|(?P<call><call_wm(?P<attributes>[^<>]*)>)"
    r"|(?P<end></call_wm>)|(?P<old>\bcall_wm\s*\()"
)
_NUMBER = r"""\s*+=\s*+["']?\s*+(\d{1,4})\s*+["']?\s*+"""
_FROM = re.compile(rf"\s*+(?:from|parent){_NUMBER}")
_OLD_FROM = re.compile(rf",\s*+(?:from|parent)_?{_NUMBER}\Z")
_OLD_NAME = re.compile(r"\s*(?:action\s*=\s*)?")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_PUNCTUATION = re.compile(r"[()\[\]{}'\"]|\\.", re.DOTALL)

AFTER_THOUGHT = "The world model can only be called inside the thought, before </think>."
NOT_CLOSED = "The thought is not closed by </think>."


@dataclass(frozen=True, slots=True)
class Call:
    """A call to the world model. `text` = the action in the agent's words.

    `parent` 0 is the real screen, k the k-th imagined one. `span` covers the whole call in
    the text. A call with a `problem` (a plain sentence) is to be refused, not answered.
    """

    text: str
    parent: int
    span: tuple[int, int]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One step as far as it is written.

    `thought` holds the calls too. `answer_text` is what follows the thought, "" while it is
    not closed; it starts at `answer_start` of the text (None: there is no answer yet).
    `problems` are plain sentences about what was malformed, for reports and error messages.
    """

    thought: str
    calls: tuple[Call, ...]
    answer_text: str
    problems: tuple[str, ...]
    answer_start: int | None
    pending: Call | None
    """The call that waits for an answer: the last one, when nothing follows it."""


def parse_thought(text: str) -> Transcript:
    """Read one step. Without any tag the whole text is the answer."""
    scan = _Scan(text)
    scan.run()
    return scan.result()


class _Scan:
    """One pass over the tags."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.thought_start = 0
        self.thought_end: int | None = None
        self.last_close: tuple[int, int] | None = None
        self.answer_start: int | None = None
        self.answer_has_words = False
        self.calls: list[Call] = []
        self.problems: list[str] = []

    def run(self) -> None:
        # Numbers and shared words only: as many match objects as a long text has tags would
        # cost the garbage collector more than linear time.
        self.starts: list[int] = []
        self.kinds: list[str] = []
        for tag in _TAG.finditer(self.text):
            self.starts.append(tag.start())
            self.kinds.append(tag.lastgroup or "")
        self.next_tag = [len(self.starts)] * (len(self.starts) + 1)
        for i in reversed(range(len(self.starts))):
            self.next_tag[i] = self.next_tag[i + 1] if self.kinds[i] == "old" else i
        i = 0
        while i < len(self.starts):
            i = self.step(i)

    def tag(self, i: int) -> re.Match[str]:
        found = _TAG.match(self.text, self.starts[i])
        assert found is not None
        return found

    def step(self, i: int) -> int:
        """Handle tag i and say which one comes next."""
        tag, kind = self.tag(i), self.kinds[i]
        match kind if kind != "attributes" else "call":
            case "open":
                self.open_thought(tag)
            case "close":
                self.close_thought(tag)
            case "call":
                return self.new_call(i)
            case "end":
                self.add("", 0, tag.span(), "A </call_wm> came without a <call_wm> before it.")
            case "old":
                return self.old_call(i)
        return i + 1

    def open_thought(self, tag: re.Match[str]) -> None:
        if self.answer_start is not None:
            if self.answer_has_words or self.without_calls(self.answer_start, tag.start()).strip():
                self.answer_has_words = True
                return  # a word of the answer
            self.answer_start = None  # an agent that thinks again after a refused call
            self.depth = 1
        elif self.depth == 0:
            self.depth = 1
            if not self.calls:
                self.thought_start = tag.end()
        elif self.calls and not self.text[self.calls[-1].span[1] : tag.start()].strip():
            pass  # the habit of opening each turn with <think>, here after an imagined screen
        else:
            self.depth += 1
            self.problem("A <think> stands inside the thought.")

    def close_thought(self, tag: re.Match[str]) -> None:
        if self.answer_start is not None:
            return  # a word of the answer
        self.depth = max(self.depth - 1, 0)
        self.last_close = tag.span()
        if self.depth == 0:
            self.thought_end, self.answer_start = tag.span()

    def new_call(self, i: int) -> int:
        tag, j = self.tag(i), self.next_tag[i + 1]
        if j == len(self.starts) or self.kinds[j] != "end":
            self.problem("A <call_wm> is not closed.")
            return i + 1
        attributes = tag.group("attributes")
        parent = _FROM.fullmatch(attributes)
        problem = ""
        if attributes.strip() and parent is None:
            problem = 'A <call_wm> can only carry from="k", k being the number of a screen.'
        end = self.tag(j)
        body = self.text[tag.end() : end.start()].strip()
        if j > i + 1 and self.starts[i + 1] == tag.end():
            body = _old_argument(body.partition("(")[2].rstrip().removesuffix(")"))[0]
        span = (tag.start(), end.end())
        self.add(body, int(parent.group(1)) if parent else 0, span, problem)
        return j + 1

    def old_call(self, i: int) -> int:
        tag, j = self.tag(i), self.next_tag[i + 1]
        limit = self.starts[j] if j < len(self.starts) else len(self.text)
        end = _closing_bracket(self.text, tag.end(), limit)
        if end is None:
            self.problem("A call_wm( is not closed.")
            return j
        body, parent = _old_argument(self.text[tag.end() : end])
        self.add(body, parent, (tag.start(), end + 1), "")
        while i < len(self.starts) and self.starts[i] <= end:
            i += 1
        return i

    def add(self, text: str, parent: int, span: tuple[int, int], problem: str) -> None:
        if not problem and self.answer_start is not None:
            problem = AFTER_THOUGHT
        if not problem and not text:
            problem = "The call to the world model names no action."
        if problem:
            self.problem(problem)
        self.calls.append(Call(text, parent, span, problem))

    def problem(self, sentence: str) -> None:
        if sentence not in self.problems:
            self.problems.append(sentence)

    def without_calls(self, start: int, end: int) -> str:
        kept: list[str] = []
        for call in reversed(self.calls):
            if call.span[1] <= start:
                break
            kept.append(self.text[call.span[1] : end])
            end = call.span[0]
        kept.append(self.text[start:end])
        return "".join(reversed(kept))

    def result(self) -> Transcript:
        text, start = self.text, self.answer_start
        last = self.calls[-1] if self.calls else None
        pending = last if last is not None and not text[last.span[1] :].strip() else None
        if start is None and pending is None:
            start = self.fallback_start()
        if pending is not None:
            answer, thought_end = "", self.thought_end if start is not None else len(text)
        elif start is None:
            answer, thought_end = "", len(text)
            self.problem(NOT_CLOSED)
        else:
            answer = self.without_calls(start, len(text)).strip()
            thought_end = self.thought_end if self.thought_end is not None else start
        return Transcript(
            thought=text[self.thought_start : thought_end].strip(),
            calls=tuple(self.calls),
            answer_text=answer,
            problems=tuple(self.problems),
            answer_start=start,
            pending=pending,
        )

    def fallback_start(self) -> int | None:
        """Where the answer starts when no `</think>` matches its `<think>`."""
        if self.depth == 0:
            # No thought was opened: everything, or what follows the last call, is the answer.
            return self.calls[-1].span[1] if self.calls else 0
        if self.last_close is None:
            return None
        self.thought_end = self.last_close[0]
        return self.last_close[1]


def _closing_bracket(text: str, start: int, limit: int) -> int | None:
    """The bracket that closes the one before `start`, quotes and inner brackets skipped."""
    opened: list[str] = []
    quote = ""
    for match in _PUNCTUATION.finditer(text, start, limit):
        char = match.group()
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            # An apostrophe inside a word (don't) is no quote.
            before, after = text[match.start() - 1], text[match.end() : match.end() + 1]
            quote = "" if before.isalnum() and after.isalnum() else char
        elif char in "([{":
            opened.append(char)
        elif char in ")]}":
            if not opened:
                return match.start() if char == ")" else None
            if opened.pop() != _PAIRS[char]:
                return None
    return None


def _old_argument(body: str) -> tuple[str, int]:
    """The action and the parent of `action='...', from=1`."""
    parent = 0
    tail = _OLD_FROM.search(body)
    if tail is not None:
        parent, body = int(tail.group(1)), body[: tail.start()]
    named = _OLD_NAME.match(body)
    body = body[named.end() :].strip() if named else body.strip()
    quote = body[:1]
    if len(body) < 2 or quote not in "'\"" or body[-1] != quote:
        return body, parent
    inner = body[1:-1]
    if re.search(rf"(?<!\\){quote}", inner):
        return inner, parent  # the same quotes inside, never escaped: take it as it is
    return re.sub(rf"\\([\\{quote}])", r"\1", inner), parent
