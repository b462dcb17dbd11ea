"""Same input, same bytes: in every page of every browser, whatever was drawn before."""

import asyncio
import random
from collections import defaultdict

import pytest

from services.renderer.engine import LocalRenderer
from services.worldmodel import phone, tasks
from tests.renderer_cases import document, draw, renderer
from wmkit.domain.actions import OpenApp
from wmkit.domain.transition import ImageRequest

CURVES = [
    document(
        "".join(
            f"<svg style='position:absolute;left:{60 + i * 90}px;top:{300 + i * step}px' width=140 "
            f"height=140 viewBox='0 0 24 24'><circle cx=12 cy=12 r={3 + i} fill=red></svg>"
            f"<div style='position:absolute;left:{i * 90}px;top:{900 + i * step}px;width:140px;"
            f"height:140px;border-radius:{36 + i}px;background:linear-gradient({i * 40}deg,#48c,"
            f"#fc8);box-shadow:0 {i}px 20px #0008;transform:rotate({i}deg)'>{i} 字 مرحبا 🙂</div>"
            for i in range(8)
        )
    )
    for step in (41, 59, 77, 83, 97)
]


def screens(count: int) -> list[str]:
    """What tasks of all kinds begin with, no two alike."""
    found: dict[str, None] = {}
    for seed in range(count):
        for template in sorted(tasks.TEMPLATES):
            task = tasks.make(template, seed)
            found[phone.html(phone.step(task.start, OpenApp(task.main_app)))] = None
            if len(found) == count:
                return list(found)
    raise AssertionError(f"only {len(found)} different screens")


@pytest.mark.parametrize(
    ("pages", "repeats", "scale"),
    [
        pytest.param(50, 20, 0.15, marks=pytest.mark.slow, id="fifty small ones"),
        pytest.param(8, 3, 0.37, id="an odd scale"),
        pytest.param(8, 3, 1.0, id="full size"),
    ],
)
async def test_every_page_has_one_digest_in_two_browsers(
    pages: int, repeats: int, scale: float
) -> None:
    """Both browsers draw at the same time, several pages at once, in ever another order."""
    documents = [*CURVES, *screens(pages - len(CURVES))]
    image = ImageRequest(scale=scale)
    seen: dict[int, set[str]] = defaultdict(set)
    async with renderer(pages=2) as first, renderer(pages=2) as second:
        assert first._pool._browser is not second._pool._browser

        async def note(opened: LocalRenderer, turn: int) -> None:
            rendering = await draw(opened, documents[turn], image)
            assert rendering.image is not None and not rendering.cached
            seen[turn].add(rendering.image.digest)

        # Equal requests at the same time would be drawn once, so a repeat waits for the last.
        for repeat in range(repeats):
            turns = random.Random(repeat).sample(range(pages), pages)
            await asyncio.gather(*(note(each, turn) for turn in turns for each in (first, second)))
    assert len(seen) == pages
    assert {turn: len(digests) for turn, digests in seen.items() if len(digests) != 1} == {}
    assert len({digest for digests in seen.values() for digest in digests}) == pages
