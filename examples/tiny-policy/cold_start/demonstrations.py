"""What the cold start learns from: the oracle's steps, pointing at things, reading screens.

Four kinds of example, all on screens of the scripted phone, all written as the agent writes:

- *demonstration*: one step of a task's oracle, from states on and beside its path (a wandering
  step is put in before it now and then, so that the way back is shown too), some with one
  imagined step before the action;
- *looking ahead*: a step before things without a label: each is imagined in reading order
  until the screen behind it is the one that the goal names;
- *pointing*: "Goal: point Gym" on any screen that shows it;
- *reading*: "Goal: read" lists what is drawn, in reading order.

Pure: nothing is rendered here. A screen is named by its digest; `Examples.screens` maps each
digest to the phone that draws it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from services.worldmodel import tasks
from services.worldmodel.phone import Element, Phone, elements, screen_digest, step, title
from wmkit.domain import actions as act
from wmkit.domain import dialects
from wmkit.domain.episode import EpisodeSpec
from wmkit.domain.generation import Turn
from wmkit.domain.prompts import imagined_turn, refused_turn, step_turns
from wmkit.domain.screen import Point, View
from wmkit.domain.tasks import Task, TaskRef

# What the demo trains on: every single-app template without free text or an answer.
SKILLS = (
    "settings_turn_on",
    "settings_turn_off",
    "settings_timeout",
    "clock_alarm_on",
    "clock_alarm_off",
    "clock_delete_alarm",
    "clock_timer",
    "notes_pin",
    "notes_unpin",
    "notes_delete",
    "contacts_star",
    "contacts_unstar",
    "contacts_call",
    "contacts_delete",
)
# Where looking ahead pays: what is behind a blank tile can only be known by imagining the tap.
LOOK_AHEAD = ("phone_speed_dial",)
VIEW = View(screen_px=(1080, 2400), model_px=(128, 320))
DIALECT = dialects.get("wmr1_android")
SPEC = EpisodeSpec(dialect="wmr1_android", prompt="compact", history=1, max_calls_per_thought=1)
COLUMNS, ROWS = 4, 10
# The label of the cell that is pointed at, that of a cell with a wordless tile, and how many
# phones with such tiles go with one phone of each skill.
POINTER, TILE = "<|box_start|>", "tile"
LOOK_AHEAD_PHONES = 8


@dataclass(frozen=True)
class Example:
    """`prompt` turns, then what the agent writes (str, learnt) and reads (Turn) by turns.

    `screens` are digests in the order of the pictures; `targets` says for each stretch that
    the agent writes where on the current screen it points (None: nowhere). `flags` are dense
    labels, a word per cell of each picture; {} where there is none.
    """

    prompt: tuple[Turn, ...]
    script: tuple[str | Turn, ...]
    screens: tuple[str, ...]
    targets: tuple[Point | None, ...]
    flags: tuple[dict[int, str], ...]


@dataclass
class Examples:
    """A corpus and the phones that draw its screens."""

    demonstrations: list[Example] = field(default_factory=list)
    looking_ahead: list[Example] = field(default_factory=list)
    pointing: list[Example] = field(default_factory=list)
    reading: list[Example] = field(default_factory=list)
    screens: dict[str, Phone] = field(default_factory=dict)

    def show(self, phone: Phone) -> str:
        digest = screen_digest(phone)
        self.screens.setdefault(digest, phone)
        return digest


def collect(seeds: Sequence[int], rng: Random) -> Examples:
    """Walk every skill once per seed and collect examples from what is met."""
    out = Examples()
    for seed in seeds:
        for template in SKILLS:
            task = tasks.make(template, seed)
            for phone, log in _walk(task, rng):
                _demonstrate(out, task, phone, log, rng)
                _read(out, phone, rng)
        for template in LOOK_AHEAD:
            for part in range(LOOK_AHEAD_PHONES):
                task = tasks.make(template, seed * LOOK_AHEAD_PHONES + part)
                for phone, log in _walk(task, rng):
                    blank = _blank(phone, task.oracle(phone))
                    if blank:
                        out.looking_ahead.append(_look_ahead(out, task, phone, log, blank, rng))
                    else:
                        _demonstrate(out, task, phone, log, rng)
                    _read(out, phone, rng)
    return out


def _blank(phone: Phone, action: act.Action) -> list[Element]:
    """The unlabelled things of which the action touches one, in reading order."""
    if not isinstance(action, act.Tap):
        return []
    hit = [e for e in elements(phone) if e.clickable and _covers(e, action.point)]
    if not hit or not _is_tile(hit[-1]):
        return []
    alike = [e for e in elements(phone) if _is_tile(e)]
    return sorted(alike, key=lambda e: (e.at.y, e.at.x))


def _is_tile(element: Element) -> bool:
    """Whether it can be tapped and shows no word that says what that does."""
    return element.clickable and element.key.startswith("tile:")


def _look_ahead(
    out: Examples,
    task: tasks.Task,
    phone: Phone,
    log: list[act.Action],
    blank: list[Element],
    rng: Random,
) -> Example:
    """Imagine one blank thing after the other; commit to the one that leads to the goal."""
    here, right = out.show(phone), task.oracle(phone)
    calls_left = rng.choice([0, 1, 2, 3, 3, 3, 3, 3, 3, 3])
    prompt = step_turns(SPEC, _task(task), log, [here], calls_left)
    commit = f"</think>\n{DIALECT.answer(right, VIEW)}"
    order = {_cell(e.at): str(i) for i, e in enumerate(blank, 1)}
    script: list[str | Turn] = []
    screens, targets, flags = [here], list[Point | None](), [order]
    said = f"<think>{title(phone)}: "
    refuses = rng.random() < 0.05
    for k, thing in enumerate(blank, 1):
        by_elimination = k == len(blank) and k > 1 and rng.random() < 0.5
        if k > calls_left or by_elimination:
            break
        call = DIALECT.render(act.Tap(thing.at), VIEW)
        script.append(f"{said}{k}<call_wm>{call}</call_wm>")
        targets.append(thing.at)
        if refuses:
            script.append(refused_turn(SPEC, ""))
            said = f"{title(phone)}: "
            break
        dream = step(phone, act.Tap(thing.at))
        there = out.show(dream)
        script.append(imagined_turn(SPEC, k, 3, call, there))
        screens.append(there)
        word = "yes" if thing.at == right.point else "no"
        flags.append({i: f" {word}" for i, label in enumerate(labels(dream)) if label})
        said = f"{title(dream)}: {word}"
        if word == "yes":
            break
        said += f", {title(phone)}: "
    chosen = next(i for i, e in enumerate(blank, 1) if e.at == right.point)
    ending = "" if said.endswith("yes") else str(chosen)
    script.append(f"{said}{ending}{commit}")
    targets.append(right.point)
    return Example(prompt, tuple(script), tuple(screens), tuple(targets), tuple(flags))


def _walk(task: tasks.Task, rng: Random) -> Iterator[tuple[Phone, list[act.Action]]]:
    """States on the oracle's path and beside it, with the actions that led there."""
    phone, log = task.start, list[act.Action]()
    for _ in range(task.complexity + 6):
        yield phone, log
        action = task.oracle(phone)
        if isinstance(action, act.TERMINAL):
            return
        if rng.random() < 0.2:
            # A wandering step must be harmless: the oracle need not repair data.
            stray = _stray(phone, rng)
            wandered = step(phone, stray)
            if wandered.data == phone.data:
                phone, log = wandered, [*log, stray]
                continue
        phone, log = step(phone, action), [*log, action]


def _stray(phone: Phone, rng: Random) -> act.Action:
    if rng.random() < 0.3:
        return rng.choice([act.Back(), act.Home(), act.Scroll("down"), act.Scroll("up")])
    return act.Tap(rng.choice([e for e in elements(phone) if e.clickable] or [_MIDDLE]).at)


def _demonstrate(
    out: Examples, task: tasks.Task, phone: Phone, log: list[act.Action], rng: Random
) -> None:
    action = task.oracle(phone)
    if isinstance(action, act.Finish) and action.status == "infeasible":
        return
    here = out.show(phone)
    calls_left = rng.choice([0, 1, 2, 3])
    prompt = step_turns(SPEC, _task(task), log, [here], calls_left)
    thought = f"<think>{describe(phone, action)}"
    commit = f"</think>\n{DIALECT.answer(action, VIEW)}"
    if isinstance(action, act.TERMINAL) or rng.random() > 0.15:
        out.demonstrations.append(_plain(prompt, thought + commit, here, _target(action)))
        return
    # One imagined step first: the right one, or a stray one whose screen says "no".
    imagined = action if rng.random() < 0.7 else _stray(phone, rng)
    call = DIALECT.render(imagined, VIEW)
    first = f"<think>{describe(phone, imagined)}<call_wm>{call}</call_wm>"
    if calls_left == 0:
        reply, seen = refused_turn(SPEC, ""), (here,)
        second = f"{describe(phone, action)}{commit}"
    else:
        dream = step(phone, imagined)
        there = out.show(dream)
        reply, seen = imagined_turn(SPEC, 1, calls_left, call, there), (here, there)
        word = "yes" if imagined == action else f"no, {describe(phone, action)}"
        second = f"{title(dream)}: {word}{commit}"
    targets = (_target(imagined), _target(action))
    flags = (_pointed(targets[0]), *({} for _ in seen[1:]))
    out.demonstrations.append(Example(prompt, (first, reply, second), seen, targets, flags))


def _plain(prompt: tuple[Turn, ...], text: str, here: str, target: Point | None) -> Example:
    return Example(prompt, (text,), (here,), (target,), (_pointed(target),))


def _pointed(target: Point | None) -> dict[int, str]:
    return {} if target is None else {_cell(target): POINTER}


def _cell(point: Point) -> int:
    return int(point.y * ROWS) * COLUMNS + int(point.x * COLUMNS)


def _read(out: Examples, phone: Phone, rng: Random) -> None:
    here = out.show(phone)
    named = entities(phone)
    listed = "".join(f" {describe_element(e)}" for e in named)
    text = f"<think>{title(phone)}:{listed}</think>"
    out.reading.append(_plain(_ask("read", here), text, here, None))
    if named:
        # Most things stand in the first column; the column is drawn first, so that x is learnt.
        columns = sorted({e.at.x for e in named})
        column = rng.choice(columns)
        target = rng.choice([e for e in named if e.at.x == column])
        action = act.Tap(target.at)
        text = f"<think>{describe(phone, action)}</think>\n{DIALECT.answer(action, VIEW)}"
        out.pointing.append(_plain(_ask(f"point {target.text}", here), text, here, target.at))


def entities(phone: Phone) -> list[Element]:
    """What a reader would name: clickable things with a word, in reading order."""
    named = [e for e in elements(phone) if e.clickable and e.text]
    return sorted(named, key=lambda e: (e.at.y, e.at.x))


def describe(phone: Phone, action: act.Action) -> str:
    """The thought before an action: where one is and what one is about to touch."""
    match action:
        case act.Tap(point) | act.LongPress(point):
            hit = [e for e in elements(phone) if e.clickable and _covers(e, point)]
            what = describe_element(hit[-1]) if hit else "nothing"
        case act.Finish() | act.Answer():
            what = "done"
        case _:
            what = action.name
    return f"{title(phone)}: {what}"


def describe_element(element: Element) -> str:
    state = {True: " on", False: " off", None: ""}[element.checked]
    return f"{element.text}{state}"


def labels(phone: Phone) -> list[str]:
    """The word of each of the 40 cells: what is drawn there, or "" (dense supervision)."""
    out = [""] * (COLUMNS * ROWS)
    for column in range(1, COLUMNS):
        out[column] = title(phone)
    for element in elements(phone):
        column, row = int(element.at.x * COLUMNS), int(element.at.y * ROWS)
        if _is_tile(element):
            out[row * COLUMNS + column] = TILE
        if not (element.text and (element.clickable or element.role == "row")):
            continue
        out[row * COLUMNS + column] = element.text
        if element.checked is not None and element.role in ("row", "switch"):
            out[row * COLUMNS + COLUMNS - 1] = "on" if element.checked else "off"
    return out


def _covers(element: Element, point: Point) -> bool:
    return element.covers(*point.to_px(*VIEW.screen_px))


def _target(action: act.Action) -> Point | None:
    return action.point if isinstance(action, act.Tap | act.LongPress) else None


def _ask(goal: str, here: str) -> tuple[Turn, ...]:
    task = Task(
        ref=TaskRef(template="reading", seed=0),
        goal=goal,
        complexity=1,
        step_limit=20,
        apps=(),
        main_app="",
        kind="reading",
    )
    return step_turns(SPEC, task, [], [here], 0)


def _task(task: tasks.Task) -> Task:
    return Task(
        ref=TaskRef(template=task.template, seed=task.seed),
        goal=task.goal,
        complexity=task.complexity,
        step_limit=task.step_limit,
        apps=task.apps,
        main_app=task.main_app,
        kind=task.kind,
    )


_MIDDLE = Element("nothing", "text", "", (540, 1200, 1, 1), Point(0.5, 0.5))
