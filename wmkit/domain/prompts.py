"""What the agent is shown: the turns of a step, of an imagined screen, of a refused call.

Two styles. `full` documents the dialect's actions, thinking and the world-model tool in a
system turn. `compact` is the few words that the tiny policy was trained on: its exact text is
part of that checkpoint's contract. Nothing here knows tokens, images or a chat template.

In the `log` an action stands as an Action, an answer that could not be read as its text.
"""

from collections.abc import Sequence

from wmkit.domain import dialects
from wmkit.domain.actions import Action, Tap
from wmkit.domain.dialects import Dialect, Unsupported
from wmkit.domain.dialects.canonical import describe
from wmkit.domain.episode import EpisodeSpec
from wmkit.domain.generation import Part, Picture, Text, Turn
from wmkit.domain.screen import Point, View
from wmkit.domain.tasks import Task

LogEntry = Action | str | None
"""An action that was carried out; or the text of one that could not be read (None: unknown)."""

COMPACT_LOG = 4
"""Actions that the compact prompt names."""

_EXAMPLE_VIEW = View((1080, 2400), (1080, 2400))


def step_turns(
    spec: EpisodeSpec,
    task: Task,
    log: Sequence[LogEntry],
    screens: Sequence[str],
    calls_left: int,
    *,
    view: View | None = None,
) -> tuple[Turn, ...]:
    """The prompt of one step.

    `screens` = digests of the last real screens, oldest first, the current one last;
    `calls_left` = world-model calls that the episode has left. `view` (known from the second
    step on) lets the log show points in the dialect's own numbers.
    """
    if spec.prompt == "compact":
        names = " ".join(_name(entry) for entry in log[-COMPACT_LOG:]) or "-"
        text = f"Goal: {task.goal}\nDone: {names}\nCalls: {calls_left}\n"
        return (Turn("user", (Text(text), *(Picture(digest) for digest in screens))),)
    dialect = dialects.get(spec.dialect)
    return (
        Turn("system", (Text(_system_text(spec, dialect, view)),)),
        Turn("user", _step_parts(spec, dialect, task, log, screens, calls_left, view)),
    )


def imagined_turn(
    spec: EpisodeSpec, k: int, n_max: int, action_text: str, screenshot_digest: str
) -> Turn:
    """The answer to a world-model call: the k-th of at most `n_max`, and the imagined screen.

    `action_text` = the call's text, in the agent's own words.
    """
    if spec.prompt == "compact":
        return Turn("user", (Text(f"Imagined {k}\n"), Picture(screenshot_digest)))
    text = f"Imagined screen after {action_text} ({k} of {n_max} calls):\n"
    return Turn("user", (Text(text), Picture(screenshot_digest)))


def refused_turn(spec: EpisodeSpec, reason: str) -> Turn:
    """The answer to a call that gets no screen; `reason` is one plain sentence, see below."""
    return Turn("user", (Text("Refused\n" if spec.prompt == "compact" else f"{reason}\n"),))


def retry_turn(spec: EpisodeSpec, reason: str) -> Turn:
    """The answer to an action that could not be read; `reason` = the clause of a ParseError."""
    if spec.prompt == "compact":
        return Turn("user", (Text("Unreadable\n"),))
    text = (
        f"Your action could not be read: {reason.rstrip('.')}. Nothing was done. "
        "Write your answer once more, with exactly one action at its end.\n"
    )
    return Turn("user", (Text(text),))


def over_budget(n_max: int) -> str:
    """Reason of a refusal: all `n_max` calls of the episode (or of the step) are used up."""
    return (
        f"No screen was imagined: all {n_max} world-model calls are used up. "
        "Decide on an action now."
    )


def unparsable_call(reason: str) -> str:
    """Reason of a refusal; `reason` = the clause of a ParseError or a call's own problem."""
    return f"No screen was imagined: {reason.rstrip('.')}. This did not count as a call."


FAILED_IMAGINATION = (
    "No screen was imagined: the world model could not draw this one. This did not count as a call."
)
"""Reason of a refusal after a step of the world model that failed."""


def _name(entry: LogEntry) -> str:
    return "?" if entry is None or isinstance(entry, str) else entry.name


def _has_tool(spec: EpisodeSpec) -> bool:
    return spec.max_calls > 0 and spec.max_calls_per_thought > 0


def _system_text(spec: EpisodeSpec, dialect: Dialect, view: View | None) -> str:
    example = Tap(Point(0.5, 0.25))
    answer = dialect.answer(example, _EXAMPLE_VIEW)
    call = dialect.render(example, _EXAMPLE_VIEW)
    parts = [
        "You operate an Android phone for a user. At each step you see the goal, what was done"
        " so far and the screen, and you choose one next action.",
        f"Actions:\n{dialect.describe(view)}",
        "Think before you act. Write your thought between <think> and </think>: what the screen"
        " shows, what is still missing for the goal, which actions are possible and what each"
        " would lead to. Take the room you need. After </think> write exactly one action:\n\n"
        f"<think>The goal needs the first entry of this list, so I open it.</think>\n{answer}",
    ]
    if _has_tool(spec):
        parts.append(_tool_text(spec, call, answer))
    return "\n\n".join(parts)


def _tool_text(spec: EpisodeSpec, call: str, answer: str) -> str:
    return (
        "While you think you may ask the world model what an action would do. Write the action"
        " inside <call_wm> and </call_wm>, in the same words as above. You are then shown the"
        " screen that it imagines, and you go on thinking. Nothing happens on the phone: every"
        " call starts from the current screen. To look further ahead, start from an imagined"
        ' screen by its number: <call_wm from="1">...</call_wm>. The world model can be wrong,'
        " and a call is worth most where you are unsure or where a step cannot be undone.\n"
        f"You may make {_count(spec.max_calls_per_thought)} in one step and"
        f" {_count(spec.max_calls)} in the whole task.\n\n"
        "Example:\n"
        "<think>The first entry may be the right one, but its name is cut off. I look first."
        f" <call_wm>{call}</call_wm>\n"
        f"(you are shown: Imagined screen after {call} (1 of {spec.max_calls} calls))\n"
        "It opens the page that the goal names, so this is the way.</think>\n"
        f"{answer}"
    )


def _count(calls: int) -> str:
    return "1 call" if calls == 1 else f"{calls} calls"


def _step_parts(
    spec: EpisodeSpec,
    dialect: Dialect,
    task: Task,
    log: Sequence[LogEntry],
    screens: Sequence[str],
    calls_left: int,
    view: View | None,
) -> tuple[Part, ...]:
    lines = [f"Goal: {task.goal}", "", "Done so far:"]
    lines += [f"{i}. {_phrase(entry, dialect, view)}" for i, entry in enumerate(log, 1)]
    if not log:
        lines.append("nothing yet")
    if _has_tool(spec):
        lines += ["", f"World-model calls left in this task: {calls_left}"]
    if len(screens) > 1:
        lines += ["", f"The last {len(screens)} screens, oldest first; the last one is now:"]
    else:
        lines += ["", "The screen now:"]
    text = Text("\n".join(lines) + "\n")
    return (text, *(Picture(digest) for digest in screens))


def _phrase(entry: LogEntry, dialect: Dialect, view: View | None) -> str:
    if entry is None:
        return "an answer that could not be read"
    if isinstance(entry, str):
        return f"an answer that could not be read: {' '.join(entry.split())[:200]}"
    if view is not None:
        try:
            return dialect.render(entry, view)
        except Unsupported:
            pass  # the dialect could read more than it writes
    return describe(entry)
