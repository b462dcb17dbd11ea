"""The report: what it shows, that it is self-contained, and that hostile text stays text."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.evaluation import Row, compare
from services.trainer.recipe import Recipe
from services.trainer.report import build_report
from services.trainer.report.curves import Interval, Line, chart, nice_ticks, stack, trailing_mean
from services.trainer.report.filmstrip import Marker, action_text, marker
from services.trainer.report.page import headline
from services.trainer.report.showcase import choose
from services.trainer.rundir import RunDir
from services.trainer.summary import Findings, Transitions, summarize
from tests import tiny_checkpoints
from tests.trainer_cases import imagined, job, step, trajectory
from wmkit.blobs import MemoryBlobs
from wmkit.domain.tasks import TaskRef
from wmkit.ports import Ledger
from wmkit.testing import FakeWorldModel

RECIPE = Recipe.model_validate({"checkpoint": "x", "tasks": {"templates": ["a"]}})
HOSTILE = "<script>alert(1)</script>\"'&"


class Page(HTMLParser):
    """Elements, their attributes, and the text of the page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [a for _, a in self.elements if name in (a.get("class") or "").split()]


def row(
    seed: int, success: bool | None, *, app: str = "Clock", calls: int = 0, length: int = 3
) -> Row:
    return Row(f"{app}:{seed}", app, success, app, 3, length, calls, "" if success is None else "d")


def lines(count: int) -> list[dict[str, Any]]:
    keys = [
        *("success", "reward", "length", "calls", "entropy", "grad_norm", "logprob_gap"),
        *("groups_used", "groups_dropped_spread", "groups_dropped_size", "unparsable"),
        *("rollout_s", "prepare_s", "update_s", "publish_s"),
    ]
    return [{"iteration": i + 1} | dict.fromkeys(keys, 0.5) for i in range(count)]


async def make_page(tmp_path: Path, *, iterations: int = 3, after: bool = True) -> Page:
    blobs = MemoryBlobs()
    picture = await blobs.put(tiny_checkpoints.png(1))
    tap = {"action": "tap", "point": [0.25, 0.5]}
    calls = (
        imagined(1, screenshot=picture, state_id="i1"),
        imagined(2, parent=1, screenshot=picture, state_id="i2", action=tap),
        imagined(3, answered=False, outcome=None, state_id="", action=None, text=HOSTILE),
    )
    steps = [
        step(0, screenshot=picture, thought=HOSTILE, text=HOSTILE, action=tap, imagined=calls),
        step(1, screenshot=picture, action={"action": "type", "text": HOSTILE}),
    ]

    async def stored(seed: int, success: bool, app: str) -> Row:
        of = job(task=TaskRef(template=f"{app.lower()}_x", seed=seed))
        made = trajectory(of, success=success, steps=steps, final_screenshot=picture)
        digest = await blobs.put(made.model_dump_json().encode())
        return Row(str(of.task), "x", success, app, 3, 2, 2, digest)

    before = [await stored(i, False, app) for i, app in enumerate(("Clock", "Notes", "Settings"))]
    later = [await stored(i, True, app) for i, app in enumerate(("Clock", "Notes", "Settings"))]
    findings = Findings(before, later if after else [], Transitions(6, 4, 1), iterations)
    folder = RunDir(tmp_path / "run-1")
    folder.create("")
    for line in lines(iterations):
        folder.append_metrics(line)
    summary = summarize(
        findings,
        run_id="run-1",
        status="succeeded" if after else "failed",
        error="" if after else HOSTILE,
        recipe=RECIPE,
        ledger=Ledger(6, 6),
        wall_s=1.0,
    )
    world = FakeWorldModel(lambda state, _: state)
    return Page(await build_report(folder, RECIPE, findings, summary, blobs, world))


async def test_a_page_is_self_contained_and_hostile_text_stays_text(tmp_path: Path) -> None:
    page = await make_page(tmp_path)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "iframe", "object", "base"}
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href"):
                assert (value or "").startswith("data:image/")
    assert "<script>alert(1)</script>" in page.text


async def test_filmstrips_show_steps_thoughts_markers_and_branches_apart(tmp_path: Path) -> None:
    page = await make_page(tmp_path)
    films = page.with_class("film")
    assert len(films) == 4  # three that were learned, and what one of them was before
    assert len(page.with_class("frame")) == 4 * 3
    # each film: one committed tap, one imagined tap on the real screen, one on the imagined
    assert len([a for a in page.with_class("touch") if "act" in (a["class"] or "")]) == 4
    assert len([a for a in page.with_class("touch") if "dream" in (a["class"] or "")]) == 8
    assert len(page.with_class("roots")) == 4
    assert len(page.with_class("chain")) == 4
    assert len(page.with_class("thought")) == 4
    images = [a for tag, a in page.elements if tag == "img"]
    assert len(images) == 4 * (3 + 2)
    taps = [a for a in page.with_class("touch") if "act" in (a["class"] or "")]
    assert all(float(a["cx"] or 0) == 25.0 for a in taps)
    # 2400 / 1080 of the width is the height: half of 222.2
    assert all(float(a["cy"] or 0) == pytest.approx(111.1, abs=0.1) for a in taps)


async def test_a_run_that_ended_early_still_has_a_page(tmp_path: Path) -> None:
    page = await make_page(tmp_path, iterations=0, after=False)
    assert "This run ended early (failed); held-out success was 0.0%" in page.text
    assert HOSTILE.split("&")[0] in page.text
    assert len(page.with_class("film")) == 3


def summary_of(before: str, after: str) -> str:
    a = [row(i, letter == "y") for i, letter in enumerate(before)]
    b = [row(i, letter == "y") for i, letter in enumerate(after)]
    return headline(compare("all", a, b), {"status": "succeeded"})


def test_the_headline_claims_no_more_than_the_interval() -> None:
    assert summary_of("n" * 20, "y" * 15 + "n" * 5).startswith("Held-out success rose from 0.0%")
    assert summary_of("y" * 15 + "n" * 5, "n" * 20).startswith("Held-out success fell")
    assert "not one of 4 tasks" in summary_of("nyyn", "nyyn")
    assert "may be chance" in summary_of("ynynynynyn", "yyynynynyn")


def test_the_showcase_prefers_what_was_learned_with_the_world_model_in_every_app() -> None:
    before = [row(i, i == 0, app=app) for app in ("A", "B", "C", "D") for i in range(4)]
    after = [
        row(i, i != 3, app=app, calls=2 if i == 2 else 0)
        for app in ("A", "B", "C", "D")
        for i in range(4)
    ]
    chosen = choose(before, after)
    assert len(chosen) == 6
    twin, first, *others, kept, failed = chosen
    assert (twin.after, twin.row.success) == (False, False)
    assert twin.row.instance == first.row.instance
    assert [c.row.calls for c in (first, *others)] == [2, 2, 2]
    assert len({c.row.app for c in (first, *others)}) == 3
    assert kept.row.success
    assert not failed.row.success
    assert len({(c.row.instance, c.after) for c in chosen}) == 6


def test_the_showcase_takes_imagined_steps_from_training_where_held_out_episodes_lack_them() -> (
    None
):
    before, after = [row(0, False), row(1, False)], [row(0, True, calls=1), row(1, True)]
    training = [row(100 + i, True, app="AB"[i % 2], calls=i) for i in range(1, 6)]
    chosen = choose(before, after, training)
    assert [c.row.calls for c in chosen if c.row.calls] == [1, 5, 4]
    assert [c.row.instance for c in chosen[-2:]] == [training[4].instance, training[3].instance]
    assert choose(before, after) == chosen[:-2]


def test_the_showcase_has_three_whatever_the_run_was() -> None:
    assert len(choose([], [])) == 0
    nothing = [row(i, False) for i in range(5)]
    everything = [row(i, True) for i in range(5)]
    assert len(choose(nothing, nothing)) >= 3
    assert len(choose(everything, everything)) >= 3
    assert len(choose(nothing, [])) == 3
    assert len(choose([row(0, None)], [row(0, None)])) == 0


@pytest.mark.parametrize(
    ("action", "text", "where"),
    [
        ({"action": "tap", "point": [0.25, 0.5]}, "tap (0.25, 0.50)", Marker(0.25, 0.5)),
        ({"action": "open_app", "app": "Clock"}, "open app “Clock”", None),
        (
            {"action": "swipe", "point": [0.1, 0.2], "to": [0.3, 0.4]},
            "swipe (0.10, 0.20) (0.30, 0.40)",
            Marker(0.1, 0.2, (0.3, 0.4)),
        ),
        ({"action": "finish", "status": "infeasible"}, "finish infeasible", None),
        (None, "unreadable", None),
    ],
)
def test_actions_in_words_and_marks(action: Any, text: str, where: Marker | None) -> None:
    assert action_text(action) == text
    assert marker(action) == where


def test_a_scroll_that_reveals_below_is_drawn_as_the_finger_moves_up() -> None:
    drawn = marker({"action": "scroll", "reveal": "down", "point": [0.5, 0.5]})
    assert drawn is not None
    assert drawn.to is not None
    assert drawn.to[0] == 0.5
    assert drawn.to[1] < 0.5
    sideways = marker({"action": "scroll", "reveal": "left"})
    assert sideways is not None
    assert sideways.to is not None
    assert sideways.to[0] > sideways.x


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e6))
def test_ticks_are_round_few_and_cover_the_range(low: float, size: float) -> None:
    ticks = nice_ticks(low, low + size)
    span = ticks[1] - ticks[0]
    assert ticks[0] <= low + 1e-6 * span
    assert ticks[-1] >= low + size - 1e-6 * span
    assert 2 <= len(ticks) <= 9
    mantissa = float(f"{span:.6e}".split("e")[0])
    assert any(mantissa == pytest.approx(m, rel=1e-5) for m in (1, 2, 5, 10))


def test_a_chart_puts_values_where_its_axis_says() -> None:
    svg = str(
        chart(
            [Line("x", [(1, 0.0), (2, 1.0), (3, 0.5)], "train")],
            y_range=(0, 1),
            intervals=[Interval("before", 0.5, (0.25, 0.75), "left", "before")],
        )
    )
    ticks = {
        text: float(y) - 3.5
        for y, text in re.findall(r'y="([\d.]+)" text-anchor="end">([\d.]+)<', svg)
    }
    (path,) = re.findall(r'points="([^"]+)"', svg)
    heights = [float(point.split(",")[1]) for point in path.split()]
    assert heights == pytest.approx([ticks["0.0"], ticks["1.0"], (ticks["0.0"] + ticks["1.0"]) / 2])
    (low, high), (middle,) = (
        re.findall(r'y1="([\d.]+)" y2="([\d.]+)"/><circle', svg)[0],
        re.findall(r'cy="([\d.]+)" r="5.5"', svg),
    )
    assert float(middle) == pytest.approx((float(low) + float(high)) / 2, abs=0.11)


def test_stacked_bars_are_as_high_as_their_values() -> None:
    svg = str(stack([("a", [2.0, 1.0], "fill-a"), ("b", [2.0, 0.0], "fill-b")]))
    heights = [float(h) for h in re.findall(r'height="([\d.]+)"><title>', svg)]
    assert heights[0] == heights[1] == 2 * heights[2]
    assert heights[3] == 0


def test_trailing_mean_by_hand() -> None:
    assert trailing_mean([(1, 2.0), (2, 4.0), (3, 0.0)], window=2) == [(1, 2), (2, 3), (3, 2)]
