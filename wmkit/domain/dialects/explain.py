"""Explains how a dialect reads a text: for people who debug an agent's prompt or a parser."""

from wmkit.domain.actions import Action
from wmkit.domain.dialects.base import Dialect, ParseError, Span, Unsupported
from wmkit.domain.dialects.canonical import describe
from wmkit.domain.screen import Point, View
from wmkit.domain.transcript import Call, parse_thought

_WIDTH = 72


def explain(dialect: Dialect, text: str, view: View) -> str:
    """Thought, world-model calls, and the action or the reason why there is none; several lines."""
    transcript = parse_thought(text)
    lines = [
        f"dialect   {dialect.name}, screen {_size(view.screen_px)}, model {_size(view.model_px)}"
    ]
    if transcript.thought:
        lines.append(f"thought   {_short(transcript.thought)}")
    for k, call in enumerate(transcript.calls, 1):
        lines.append(f"call {k}    {_call(dialect, call, view)}")
    lines += [f"problem   {sentence}" for sentence in transcript.problems]
    if transcript.pending is not None:
        lines.append("answer    none yet: the text ends in a world-model call")
        return "\n".join(lines)
    result = dialect.parse(text, view)
    if isinstance(result, ParseError):
        lines += [f"error     {result.reason}", *_pointer(text, result.span)]
        return "\n".join(lines)
    start, end = result.span
    lines.append(f"read      {_short(text[start:end])}  (characters {start} to {end})")
    lines.append(f"action    {describe(result.action)}")
    lines += [f"pixel     {x}, {y} of the screen" for x, y in _pixels(result.action, view)]
    try:
        lines.append(f"written   {dialect.render(result.action, view)}")
    except Unsupported as error:
        lines.append(f"written   never: {error.message}")
    return "\n".join(lines)


def _call(dialect: Dialect, call: Call, view: View) -> str:
    origin = f"from imagined screen {call.parent}: " if call.parent else ""
    if call.problem:
        return f"{origin}refused: {call.problem}"
    result = dialect.parse(call.text, view)
    meaning = result.reason if isinstance(result, ParseError) else describe(result.action)
    return f"{origin}{_short(call.text)} -> {meaning}"


def _pixels(action: Action, view: View) -> list[tuple[int, int]]:
    points = (getattr(action, name, None) for name in ("point", "to"))
    return [point.to_px(*view.screen_px) for point in points if isinstance(point, Point)]


def _pointer(text: str, span: Span) -> list[str]:
    """The line of the culprit with carets under it."""
    start, end = span
    line_start = text.rfind("\n", 0, start) + 1
    left = max(line_start, start - _WIDTH // 2)
    line = text[left:].partition("\n")[0][:_WIDTH]
    carets = max(min(end - start, len(line) - (start - left)), 1)
    return [f"          {line}", " " * (10 + start - left) + "^" * carets]


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _WIDTH else words[: _WIDTH - 3] + "..."


def _size(px: tuple[int, int]) -> str:
    return f"{px[0]}x{px[1]}"
