"""The scripted phone as a backend: its grid, its verdicts, its revision."""

from hypothesis import given
from hypothesis import strategies as st

from services.worldmodel import phone, tasks
from services.worldmodel.backends.scripted import Scripted, revision
from wmkit.domain.actions import TERMINAL, Answer, Back, Finish, Swipe, Tap
from wmkit.domain.screen import Point
from wmkit.domain.tasks import TaskRef, Verdict

SCRIPTED = Scripted()
REF = TaskRef(template=sorted(tasks.TEMPLATES)[0], seed=3)


@given(x=st.integers(0, 1079), y=st.integers(0, 2399), dx=st.floats(0, 0.99), dy=st.floats(0, 0.99))
def test_points_of_one_pixel_are_one_action(x: int, y: int, dx: float, dy: float) -> None:
    inside = Point(min((x + dx) / 1080, 1.0), min((y + dy) / 2400, 1.0))
    pixel = inside.to_px(1080, 2400)
    snapped = SCRIPTED.snap(Tap(inside))
    assert snapped == Tap(Point((pixel[0] + 0.5) / 1080, (pixel[1] + 0.5) / 2400))
    assert SCRIPTED.snap(snapped) == snapped


def test_every_point_of_an_action_is_snapped_and_nothing_else() -> None:
    swiped = SCRIPTED.snap(Swipe(Point(0.0, 1.0), Point(1.0, 0.0), 120))
    first, last = 0.5 / 1080, 1079.5 / 1080
    assert swiped == Swipe(Point(first, 2399.5 / 2400), Point(last, 0.5 / 2400), 120)
    assert SCRIPTED.snap(Back()) is not None
    assert SCRIPTED.snap(Back()) == Back()


async def test_the_expert_is_judged_a_success_and_doing_nothing_a_failure() -> None:
    task, value = SCRIPTED.start(REF)
    idle = SCRIPTED.judge(REF, value, None, "success")
    assert (idle.verdict, idle.judge) == (Verdict.FAILURE, "predicate")
    expert, taken = tasks.make(REF.template, REF.seed), 0
    while not isinstance(action := expert.oracle(value), TERMINAL):
        prediction = await SCRIPTED.predict(value, SCRIPTED.snap(action), 0)
        assert prediction.value is not None
        value, taken = prediction.value, taken + 1
    answer = action.text if isinstance(action, Answer) else None
    status = action.status if isinstance(action, Finish) else None
    assert SCRIPTED.judge(REF, value, answer, status).verdict is Verdict.SUCCESS
    assert SCRIPTED.judge(REF, value, None, None).verdict is Verdict.FAILURE
    assert taken == task.complexity
    assert task.step_limit == max(20, 2 * taken)


def test_elements_are_what_can_be_tapped_or_read() -> None:
    _, value = SCRIPTED.start(REF)
    shown = {element.id: element for element in SCRIPTED.elements(value)}
    for drawn in phone.elements(value):
        if drawn.clickable:
            middle = shown[drawn.id].center(SCRIPTED.screen)
            assert phone.step(value, Tap(middle)) == phone.step(value, Tap(drawn.at))
        elif drawn.text:
            assert shown[drawn.id].text == drawn.text
    assert all(e.clickable or e.text or e.checked is not None for e in shown.values())


def test_the_revision_follows_the_source() -> None:
    assert revision() == SCRIPTED.revision
    assert SCRIPTED.revision.startswith("scripted-")


def test_templates_are_listed_with_an_example() -> None:
    listed = {template.name: template for template in SCRIPTED.templates()}
    assert set(listed) == set(tasks.TEMPLATES)
    example = tasks.make(REF.template, 0)
    assert listed[REF.template].example_goal == example.goal
    assert listed[REF.template].main_app in listed[REF.template].apps
