"""`wmr1 judge measure`: how often a model judge is wrong, on tasks whose truth is known."""

import asyncio
import json
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rich.progress import Progress
from rich.table import Table

from wmkit.cli.console import err, interval, out, percent
from wmkit.cli.private import private_stack
from wmkit.domain.errors import EngineDown, InvalidRequest, Unavailable, WMError
from wmkit.domain.tasks import Verdict
from wmkit.domain.transition import ImageRequest

if TYPE_CHECKING:
    from services.worldmodel.judge.measure import Matrix, Rate


def measure(
    n: int,
    seed: int,
    *,
    url: str,
    model: str,
    votes: int | None,
    renderer: str,
    as_json: bool,
) -> None:
    """Judge `n` episodes and print the confusion matrix. Raises WMError."""
    if not url or not model:
        raise InvalidRequest("name a judge: --judge-url and --judge-model", field="judge_url")
    private = private_stack("judge", ("renderer",), keep=False) if not renderer else nullcontext()
    with private as stack:
        address = stack.address("renderer") if stack else renderer
        with Progress(console=err, transient=True) as progress:
            matrix = asyncio.run(_ask(n, seed, url, model, votes, address, progress))
    if as_json:
        print(json.dumps(matrix.as_json(), indent=2))
    else:
        _show(matrix)


async def _ask(
    n: int, seed: int, url: str, model: str, votes: int | None, renderer: str, progress: Progress
) -> "Matrix":
    from services.worldmodel.judge.exam import questions
    from services.worldmodel.judge.measure import measure as run
    from services.worldmodel.learned.loading import model_judge
    from services.worldmodel.learned.settings import LearnedSettings
    from wmkit.clients.renderer import RendererClient

    settings = LearnedSettings(judge_url=url, judge_model=model)
    if votes is not None:
        settings = settings.model_copy(update={"judge_votes": votes})
    judge = model_judge(settings, [])
    assert judge is not None, "a URL was given"
    bar = progress.add_task("judging", total=n)
    try:
        async with RendererClient(renderer) as client:

            async def draw(html: str) -> bytes:
                drawn = await client.render(html, 1080, 2400, ImageRequest("bytes"))
                if drawn.image is None:
                    raise Unavailable(f"a screen of the exam cannot be drawn: {drawn.reason}")
                return drawn.image.data

            return await run(judge, draw, questions(n, seed), lambda: progress.advance(bar))
    except* WMError as faults:
        fault = faults.exceptions[0]
        while isinstance(fault, BaseExceptionGroup):
            fault = fault.exceptions[0]
        if isinstance(fault, EngineDown):
            raise Unavailable(f"the judge does not answer: {fault.message}") from None
        raise fault from None
    finally:
        await judge.close()


def _show(matrix: "Matrix") -> None:
    table = Table(box=None, header_style="bold")
    table.add_column("episode")
    for verdict in Verdict:
        table.add_column(verdict.value, justify="right")
    for kind in matrix.truths:
        counts = matrix.row(kind)
        table.add_row(kind, *(str(counts[verdict]) for verdict in Verdict))
    out.print(f"{matrix.judge}, n = {matrix.n}, unsure {matrix.unsure}")
    out.print(table)
    out.print(f"false positives: {_rate(matrix.false_positives)}")
    out.print(f"false negatives: {_rate(matrix.false_negatives)}")


def _rate(rate: "Rate") -> str:
    if rate.rate is None or rate.ci95 is None:
        return "no verdicts"
    return f"{percent(rate.rate)} {interval(rate.ci95)} ({rate.wrong} of {rate.n})"
