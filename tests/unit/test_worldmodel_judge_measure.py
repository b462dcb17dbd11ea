"""The exam of a judge: episodes whose truth is known, and counts worked by hand."""

import io
import json
import sys
from collections import Counter

import pytest
from PIL import Image

from services.worldmodel import phone, tasks
from services.worldmodel.engine import Endpoint, Engine
from services.worldmodel.judge import Case, ModelJudge
from services.worldmodel.judge.exam import CLAIM, FAULTS, SOLVED, Question, questions
from services.worldmodel.judge.measure import measure
from tests.openai_server import Answer, openai_server
from wmkit.domain.tasks import Judgement, Verdict

S, F, U = Verdict.SUCCESS, Verdict.FAILURE, Verdict.UNSURE


@pytest.fixture(scope="module")
def exam() -> list[Question]:
    return questions(16, seed=3)


def replayed(question: Question) -> tuple[tasks.Task, phone.Phone]:
    """The phone at the end of an episode, by its actions alone."""
    template, _, seed = question.task.partition(":")
    task = tasks.make(template, int(seed))
    state = task.start
    for action in question.actions:
        state = phone.step(state, action)
    return task, state


def test_half_is_solved_and_the_faults_take_turns(exam: list[Question]) -> None:
    kinds = Counter(question.kind for question in exam)
    assert kinds == {SOLVED: 8, **dict.fromkeys(FAULTS, 2)}
    assert len({question.task for question in exam}) == 16
    assert questions(16, seed=3) == exam
    assert [q.task for q in questions(16, seed=4)] != [q.task for q in exam]


def test_the_truth_is_that_of_the_predicate_over_the_actions(exam: list[Question]) -> None:
    for question in exam:
        task, last = replayed(question)
        assert question.goal == task.goal
        assert task.success(last, question.answer, question.finish_status) is question.success
        assert question.success is (question.kind == SOLVED)


def test_each_fault_is_what_it_is_called(exam: list[Question]) -> None:
    for question in exam:
        task, last = replayed(question)
        shown = question.last_html
        match question.kind:
            case "nothing done":
                assert question.actions == () and shown == question.first_html
            case "false claim":
                assert question.actions == () and CLAIM in shown
                assert CLAIM not in question.first_html
            case "one step early":
                assert task.settled(phone.step(last, task.oracle(last)))
            case "side effect":
                done = [task.start]
                for action in question.actions:
                    done.append(phone.step(done[-1], action))
                assert any(task.settled(state) for state in done[:-1])
                assert not task.settled(done[-1])
        assert (CLAIM in shown) is (question.kind == "false claim")


class Scripted:
    """A judge that gives the verdicts of a script, by kind and in order."""

    def __init__(self, exam: list[Question], script: dict[str, list[Verdict]]) -> None:
        left = {kind: list(verdicts) for kind, verdicts in script.items()}
        self._by_goal = {(q.goal, q.actions): left[q.kind].pop(0) for q in exam if q.kind in left}
        self.name = "scripted"

    async def judge(self, case: Case) -> Judgement:
        verdict = self._by_goal[case.goal, tuple(case.actions or ())]
        return Judgement(verdict=verdict, reason="", judge=self.name)


async def draw(html: str) -> bytes:
    return html.encode()


async def test_rates_are_counted_over_success_and_failure_only(exam: list[Question]) -> None:
    script = {
        SOLVED: [S, S, S, S, S, F, F, U],  # 2 of 7 wrong
        "nothing done": [F, F],
        "one step early": [S, F],
        "side effect": [S, U],
        "false claim": [F, F],  # in all 2 of 7 wrong
    }
    asked = []
    matrix = await measure(Scripted(exam, script), draw, exam, lambda: asked.append(1))
    assert (len(asked), matrix.n, matrix.unsure, matrix.judge) == (16, 16, 2, "scripted")
    assert (matrix.false_positives.wrong, matrix.false_positives.n) == (2, 7)
    assert (matrix.false_negatives.wrong, matrix.false_negatives.n) == (2, 7)
    # Wilson, 2 of 7, z = 1.96: the middle is (0.285714 + 0.274389) / 1.548780 = 0.361642,
    # half the width 1.959964 * sqrt(0.204082 / 7 + 0.019599) / 1.548780 = 0.279423.
    assert matrix.false_positives.ci95 == pytest.approx((0.0822, 0.6411), abs=2e-4)
    assert matrix.row("side effect") == {S: 1, F: 0, U: 1}
    data = json.loads(json.dumps(matrix.as_json()))
    assert data["false_negatives"]["rate"] == pytest.approx(2 / 7)
    assert data["kinds"][SOLVED] == {"success": 5, "failure": 2, "unsure": 1}


async def test_a_judge_that_is_never_sure_has_no_rates(exam: list[Question]) -> None:
    script = {SOLVED: [U] * 8, **{fault: [U] * 2 for fault in FAULTS}}
    matrix = await measure(Scripted(exam, script), draw, exam)
    assert (matrix.unsure, matrix.false_positives.rate, matrix.false_positives.ci95) == (
        16, None, None,
    )  # fmt: skip


async def test_the_judge_is_asked_with_the_prompts_of_training(exam: list[Question]) -> None:
    async def picture(html: str) -> bytes:
        out = io.BytesIO()
        Image.new("RGB", (90, 200), (len(html) % 256, 0, 0)).save(out, "PNG")
        return out.getvalue()

    async with openai_server(Answer('{"reason": "it says so", "verdict": "success"}')) as server:
        judge = ModelJudge(Engine(Endpoint(server.url, "gullible")), votes=1)
        matrix = await measure(judge, picture, exam)
        await judge.close()
    assert matrix.judge == "model:gullible"
    assert (matrix.false_positives.rate, matrix.false_negatives.rate) == (1.0, 0.0)
    said = [sent["messages"][1]["content"][-1]["text"] for sent in server.requests]
    assert len(said) == 16
    assert all(any(question.goal in text for text in said) for question in exam)


def test_without_a_judge_the_command_says_what_to_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from wmkit.cli import main

    monkeypatch.delenv("WMR1_JUDGE_URL", raising=False)
    monkeypatch.setattr(sys, "argv", ["wmr1", "judge", "measure"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert "name a judge: --judge-url and --judge-model" in capsys.readouterr().err
