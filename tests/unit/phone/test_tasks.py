"""Tasks: the rules of `checks`, strict predicates, and an expert that is short and robust."""

from dataclasses import replace
from random import Random
from typing import get_args

import pytest
from blake3 import blake3

from services.worldmodel.phone import APPS, boot, digest, elements, screen_digest, step
from services.worldmodel.tasks import TEMPLATES, make
from services.worldmodel.tasks.answers import same_answer
from services.worldmodel.tasks.checks import check, check_kinds, expert, play, random_player
from services.worldmodel.tasks.task import Kind, edited, facts
from tests.unit.phone.play import press
from wmkit.domain.actions import (
    TERMINAL,
    Action,
    Back,
    Finish,
    Home,
    LongPress,
    Scroll,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.errors import UnknownTask

# Every template is checked on this many seeds; `python -m services.worldmodel.tasks.checks 25`
# checks more of them, and what holds on average of a kind.
SEEDS = 3


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_keeps_the_rules(name):
    assert check(name, range(SEEDS)).problems == []


def test_the_first_apps_keep_the_rules_on_average():
    first = [name for name in TEMPLATES if name.split("_")[0] in BASIC]
    assert check_kinds([check(name, range(12)) for name in first]) == []


BASIC = ("settings", "clock", "notes", "contacts")


def test_the_kinds_that_were_asked_for_are_there():
    assert len(TEMPLATES) >= 80
    assert {make(name, 0).main_app for name in TEMPLATES} == set(APPS)
    assert {template.kind for template in TEMPLATES.values()} == set(get_args(Kind))


@pytest.mark.parametrize("name", TEMPLATES)
def test_goals_are_said_in_several_ways(name):
    template = TEMPLATES[name]
    said = template.draft(Random(1), boot(1, template.varied), 1).wordings
    assert len(set(said)) >= 3


def test_about_seven_in_ten_start_at_home():
    names = [name for name in TEMPLATES if name.split("_")[0] in BASIC]
    starts = [make(name, seed).start.nav.front for name in names for seed in range(20)]
    assert 0.6 < starts.count("home") / len(starts) < 0.82


def test_same_seed_same_task():
    """The digest was noted once: tasks must not change between machines or runs."""
    a, b = make("clock_alarm_on", 5), make("clock_alarm_on", 5)
    assert (a.goal, digest(a.start)) == (b.goal, digest(b.start))
    assert a == b
    assert walked("clock_alarm_on", "settings_timeout", "notes_delete", "contacts_call") == NOTED


NOTED = "2e751166dc5fc7a7ed6ca0a972230c0de2676520c56fdba5f260e7bcc4057269"


def walked(*names: str) -> str:
    """One digest over what an agent meets in these tasks: goals, screens, the oracle's steps."""
    seen = []
    for name in names:
        for seed in range(4):
            task = make(name, seed)
            phone, action = task.start, None
            seen.append(task.goal)
            while not isinstance(action, TERMINAL):
                seen += [screen_digest(phone), str(action := task.oracle(phone))]
                phone = phone if isinstance(action, TERMINAL) else step(phone, action)
    return blake3("\n".join(seen).encode()).hexdigest()


def test_an_unknown_template_names_near_ones():
    with pytest.raises(UnknownTask, match="settings_turn_on"):
        make("setting_turnon", 0)
    with pytest.raises(UnknownTask, match=r"there are \d+"):
        make("zzz", 0)


def test_goals_name_what_is_drawn_and_stay_short():
    for seed in range(10):
        task = make("contacts_star", seed)
        changed = [
            old.name
            for old, new in zip(
                task.start.of("Contacts").people, dict(task.want)["Contacts"].people, strict=True
            )
            if old != new
        ]
        assert len(changed) == 1 and changed[0] in task.goal
        assert len(task.goal.split()) <= 12
    assert len({make("notes_pin", seed).goal.split()[-1] == "Notes." for seed in range(20)}) == 2


def test_infeasible_twins_share_their_words_and_halve():
    for name in ("clock_alarm_on_maybe", "notes_pin_maybe", "settings_turn_on_maybe"):
        tasks = [make(name, seed) for seed in range(20)]
        assert sum(task.feasible for task in tasks) == 10
        shapes = {task.goal.split()[0] for task in tasks if task.feasible}
        assert shapes == {task.goal.split()[0] for task in tasks if not task.feasible}


def end_of(task) -> tuple:
    """The expert's last phone and its closing action."""
    phone = task.start
    while not isinstance(action := task.oracle(phone), TERMINAL):
        phone = step(phone, action)
    return phone, action


@pytest.mark.parametrize("name", ["settings_turn_on", "notes_create", "contacts_call"])
def test_success_must_be_declared_and_side_effects_fail(name):
    task = make(name, 2)
    phone, action = end_of(task)
    assert action == Finish("success")
    assert task.success(phone, None, "success")
    assert not task.success(phone, None, "infeasible")
    assert not task.success(phone, None, None)
    assert not task.success(phone, "done", None)
    clock = phone.of("Clock")
    first = clock.alarms[0]
    flipped = replace(phone, data=edited(phone.data, Clock=clock.having(first.label, not first.on)))
    assert not task.success(flipped, None, "success")
    assert task.success(step(step(phone, Home()), Wait(5000)), None, "success")


def test_a_timer_counts_as_running_however_far_it_ran():
    task = make("clock_timer", 1)
    phone, _ = end_of(task)
    assert task.success(step(phone, Wait(20_000)), None, "success")
    assert not task.success(press(phone, "stop"), None, "success")


def test_questions_want_the_answer_and_nothing_else():
    task = make("contacts_number", 3)
    assert task.wants_answer
    digits = task.answer.replace("-", "")
    assert task.success(task.start, digits, None)
    assert task.success(task.start, f" {task.answer}. ", "success")
    assert not task.success(task.start, f"It is {task.answer}", None)
    assert not task.success(task.start, digits + "1", None)
    assert not task.success(task.start, None, "success")


@pytest.mark.parametrize(
    ("given", "right", "kind", "same"),
    [
        ("3", "3", "count", True),
        ("three", "3", "count", True),
        ("03", "3", "count", True),
        ("13", "3", "count", False),
        ("3 alarms", "3", "count", False),
        ("7:30", "07:30", "time", True),
        ("7:30 PM", "19:30", "time", True),
        ("12:05 am", "00:05", "time", True),
        ("7.30 p.m.", "19:30", "time", True),
        ("19:30 pm", "19:30", "time", False),
        ("25:00", "25:00", "time", False),
        ("730", "07:30", "time", False),
        ("(555) 0142", "555-0142", "phone", True),
        ("555-0142 or 555-0143", "555-0142", "phone", False),
        ("", "", "text", False),
        ("  ada ", "Ada", "text", True),
        ("Ada Lovelace", "Ada", "text", False),
    ],
)
def test_answers_are_compared_after_normalisation(given, right, kind, same):
    assert same_answer(given, right, kind) is same


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_expert_finds_back_from_anywhere(name):
    """It wins after random play, or gives up where something was irreversibly done."""
    for seed in range(3):
        task = make(name, seed)
        player, phone = random_player(seed), task.start
        for _ in range(3 + 9 * (seed % 3)):
            phone = step(phone, player(task, phone, 0))
        lost = replace(task, start=phone)
        won, _ = play(lost, expert, limit=80)
        assert won or beyond_repair(task, phone), (seed, task.goal)


def beyond_repair(task, phone) -> bool:
    """Whether something is gone or done that nothing on the phone brings back.

    Of the later apps it is only asked whether anything is different at all.
    """
    now, want = dict(facts(task.current(phone))), dict(facts(task.want))
    alarms = {a.label for a in now["Clock"].alarms} >= {a.label for a in want["Clock"].alarms}
    calls = now["Contacts"].calls == want["Contacts"].calls[: len(now["Contacts"].calls)]
    notes = {n.title for n in now["Notes"].notes} >= {n.title for n in task.start.of("Notes").notes}
    others = all(now[app] == want[app] for app in APPS if app.lower() not in BASIC)
    return not (alarms and calls and notes and others)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, template in TEMPLATES.items()
        if template.kind in ("toggle", "list", "form", "conditional")
        and name.split("_")[0] in BASIC
        and name != "contacts_add_with_number"  # five steps at least: too broad a search
    ],
)
def test_no_plan_is_shorter_than_the_expert_s(name):
    """Breadth-first over everything that can be touched finds nothing shorter."""
    task = next(t for t in (make(name, seed) for seed in range(1, 100)) if t.complexity <= 4)
    words = [part for part in task.goal.replace(".", "").split() if part[0].isupper()]
    seen, layer = {task.start.digest}, [task.start]
    for depth in range(task.complexity):
        assert not any(task.settled(phone) for phone in layer), f"solved in {depth}"
        layer = [
            after
            for phone in layer
            for action in touches(phone, words)
            if (after := step(phone, action)).digest not in seen and not seen.add(after.digest)
        ]
    assert any(task.settled(phone) for phone in layer)


def touches(phone, words) -> list[Action]:
    live = [e for e in elements(phone) if e.clickable and e.role != "key"]
    # Up on the home screen opens the shade, whose tiles are a shortcut that does not count.
    at_home = phone.nav.front == "home"
    out: list[Action] = [Back(), Home(), Scroll("down"), Scroll("left"), Scroll("right")]
    out += [] if at_home else [Scroll("up")]
    out += [Tap(e.at) for e in live]
    if phone.nav.front == "Clock":
        out += [LongPress(e.at) for e in live if e.role == "row"]
    frame = phone.frame()
    if frame is not None and frame.focus:
        out += [Type(word) for word in words]
    return out
