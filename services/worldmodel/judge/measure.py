"""How often a judge is wrong: its confusion matrix over episodes whose truth is known.

Asks the judge through the same prompts as in training; draws no screens itself.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.worldmodel.judge.exam import Question
from services.worldmodel.judge.model import Case
from wmkit.domain.intervals import wilson
from wmkit.domain.tasks import Judgement, Verdict

AT_ONCE = 8
"""Episodes that are judged at the same time."""


class Judge(Protocol):
    async def judge(self, case: Case) -> Judgement: ...


Draw = Callable[[str], Awaitable[bytes]]
"""An HTML document to an encoded picture at the size of the device."""


@dataclass(frozen=True, slots=True)
class Rate:
    """`wrong` of `n` verdicts; `ci95` is Wilson's interval, None where there is no verdict."""

    wrong: int
    n: int

    @property
    def rate(self) -> float | None:
        return self.wrong / self.n if self.n else None

    @property
    def ci95(self) -> tuple[float, float] | None:
        return wilson(self.wrong, self.n) if self.n else None

    def as_json(self) -> dict[str, Any]:
        return {"wrong": self.wrong, "n": self.n, "rate": self.rate, "ci95": self.ci95}


@dataclass(frozen=True, slots=True)
class Matrix:
    """Verdicts counted by (kind of episode, verdict).

    Unsure episodes are masked in training, so rates are over success and failure verdicts only.
    """

    judge: str
    counts: Counter[tuple[str, Verdict]]
    truths: dict[str, bool]
    """Whether episodes of a kind reached their goal."""

    @property
    def n(self) -> int:
        return self.counts.total()

    @property
    def unsure(self) -> int:
        return sum(n for (_, verdict), n in self.counts.items() if verdict is Verdict.UNSURE)

    @property
    def false_positives(self) -> Rate:
        """Failed episodes that were called a success."""
        return self._wrong(False, Verdict.SUCCESS)

    @property
    def false_negatives(self) -> Rate:
        """Solved episodes that were called a failure."""
        return self._wrong(True, Verdict.FAILURE)

    def row(self, kind: str) -> dict[Verdict, int]:
        return {verdict: self.counts[kind, verdict] for verdict in Verdict}

    def _wrong(self, truth: bool, verdict: Verdict) -> Rate:
        kinds = [kind for kind, success in self.truths.items() if success is truth]
        decided = sum(
            self.counts[kind, v] for kind in kinds for v in (Verdict.SUCCESS, Verdict.FAILURE)
        )
        return Rate(sum(self.counts[kind, verdict] for kind in kinds), decided)

    def as_json(self) -> dict[str, Any]:
        return {
            "judge": self.judge,
            "n": self.n,
            "unsure": self.unsure,
            "false_positives": self.false_positives.as_json(),
            "false_negatives": self.false_negatives.as_json(),
            "kinds": {
                kind: {verdict.value: n for verdict, n in self.row(kind).items()}
                for kind in self.truths
            },
        }


async def measure(
    judge: Judge,
    draw: Draw,
    questions: Sequence[Question],
    done: Callable[[], None] = lambda: None,
) -> Matrix:
    """Have all episodes judged; `done` is called after each.

    Raises what `judge` and `draw` raise: a judge that is down has no rates.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(question: Question) -> Judgement:
        async with slots:
            case = Case(
                goal=question.goal,
                first=await draw(question.first_html),
                last=await draw(question.last_html),
                actions=question.actions,
                answer=question.answer,
                finish_status=question.finish_status,
            )
            found = await judge.judge(case)
        done()
        return found

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(ask(question)) for question in questions]
    found = [task.result() for task in asked]
    counts = Counter(
        (question.kind, judgement.verdict)
        for question, judgement in zip(questions, found, strict=True)
    )
    truths = {question.kind: question.success for question in questions}
    return Matrix(found[0].judge if found else "", counts, truths)
