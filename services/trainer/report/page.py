"""The report page: what the run claims, the evidence, and how it came about."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import structlog
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from services.trainer.evaluation import Comparison
from services.trainer.recipe import Recipe
from services.trainer.recipe_toml import dumps
from services.trainer.report.curves import (
    Interval,
    Line,
    chart,
    percent,
    range_bars,
    stack,
    trailing_mean,
)
from services.trainer.report.filmstrip import Film, film
from services.trainer.report.showcase import choose
from services.trainer.rundir import RunDir
from services.trainer.summary import Findings
from wmkit.domain.errors import WMError
from wmkit.ports import BlobStore, WorldModel

log = structlog.get_logger(__name__)
Metrics = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Figure:
    title: str
    note: str
    drawing: Markup
    legend: tuple[tuple[str, str], ...] = ()
    """(style, name) pairs."""


async def build_report(
    folder: RunDir,
    recipe: Recipe,
    findings: Findings,
    summary: dict[str, Any],
    blobs: BlobStore,
    world: WorldModel,
) -> str:
    """The page as HTML. A trajectory that cannot be read any more is left out."""
    films: list[Film] = []
    for choice in choose(findings.before, findings.after, findings.imagining):
        try:
            films.append(await film(choice, blobs, world))
        except WMError as error:
            log.warning("left out of the report", task=choice.row.instance, error=error.message)
    metrics = folder.metrics()
    return await asyncio.to_thread(render, recipe, findings, summary, metrics, films)


def render(
    recipe: Recipe,
    findings: Findings,
    summary: dict[str, Any],
    metrics: Metrics,
    films: Sequence[Film],
) -> str:
    """Fill the template; pure."""
    overall = findings.overall if findings.before else None
    template = _environment().get_template("page.html.j2")
    return template.render(
        recipe=recipe,
        summary=summary,
        headline=headline(overall, summary),
        overall=overall,
        by_app=findings.by_app if overall else [],
        by_template=findings.by_template if overall else [],
        hero=_hero(metrics, findings),
        figures=_figures(metrics),
        films=films,
        config=dumps(recipe),
        summary_json=json.dumps(summary, indent=2, ensure_ascii=False),
    )


def headline(overall: Comparison | None, summary: dict[str, Any]) -> str:
    """The finding in one sentence, no stronger than its interval."""
    if overall is None:
        return f"This run ended early ({summary['status']}), before anything was measured."
    if overall.improvement is None:
        low, high = overall.before.ci95
        rate = f"{overall.before.success:.1%} (95 % interval {low:.1%} to {high:.1%})"
        if summary["status"] == "succeeded":
            return f"Held-out success is {rate}; nothing was trained."
        return f"This run ended early ({summary['status']}); held-out success was {rate} before."
    if not overall.improvement.wins and not overall.improvement.losses:
        return (
            f"Held-out success stayed at {overall.after.success:.1%}: not one of "
            f"{overall.improvement.n} tasks ended differently."
        )
    low, high = overall.improvement.ci95
    rates = f"from {overall.before.success:.1%} to {overall.after.success:.1%}"
    points = (
        f"{100 * overall.improvement.mean:+.1f} points, "
        f"95 % interval {100 * low:+.1f} to {100 * high:+.1f}"
    )
    if low > 0:
        return f"Held-out success rose {rates} ({points})."
    if high < 0:
        return f"Held-out success fell {rates} ({points})."
    return f"Held-out success went {rates}, which may be chance ({points})."


def _hero(metrics: Metrics, findings: Findings) -> Figure:
    success = _series(metrics, "success")
    ends = []
    for rows, edge, style in (
        (findings.before, "left", "before"),
        (findings.after, "right", "after"),
    ):
        if rows:
            rate = findings.overall.before if edge == "left" else findings.overall.after
            ends.append(Interval(f"held out, {style}", rate.success, rate.ci95, edge, style))
    return Figure(
        "Task success",
        "Small dots: an iteration's training episodes, sampled at the recipe's temperature; line: "
        "mean of the last five. Large marks: held-out tasks, greedy, with 95 % intervals.",
        chart(
            [
                Line("training", success, "train", dots=True),
                Line("training, mean of five", trailing_mean(success), "train"),
            ],
            width=820,
            height=300,
            y_range=(0.0, 1.0),
            intervals=ends,
            label="Success over iterations",
            text=percent,
        ),
        (("train", "training"), ("before", "held out, before"), ("after", "held out, after")),
    )


def _figures(metrics: Metrics) -> list[Figure]:
    if not metrics:
        return []

    def one(key: str, title: str, note: str, smooth: bool = True) -> Figure:
        points = _series(metrics, key)
        lines = [Line(title, points, "train", dots=smooth)]
        if smooth:
            lines.append(Line(f"{title}, mean of five", trailing_mean(points), "train"))
        return Figure(title, note, chart(lines, label=f"{title} over iterations"))

    def values(key: str) -> list[float]:
        return [float(m.get(key, 0.0)) for m in metrics]

    groups = stack(
        [
            ("used", values("groups_used"), "fill-train"),
            ("no spread", values("groups_dropped_spread"), "fill-flat"),
            ("too small", values("groups_dropped_size"), "fill-lost"),
        ],
        label="Groups over iterations",
    )
    times = stack(
        [
            ("playing", values("rollout_s"), "fill-train"),
            ("preparing", values("prepare_s"), "fill-flat"),
            ("updating", values("update_s"), "fill-after"),
            ("publishing", values("publish_s"), "fill-lost"),
        ],
        label="Seconds per phase over iterations",
    )
    return [
        one("reward", "Reward", "mean over valid episodes"),
        one("length", "Episode length", "committed steps"),
        one("calls", "World-model calls", "answered calls per episode"),
        one("entropy", "Entropy", "nats per sampled token, estimated by -log p"),
        one("grad_norm", "Gradient norm", "before clipping"),
        one("logprob_gap", "Sampler against trainer", "mean |difference| in nats", smooth=False),
        Figure(
            "Groups",
            "groups without spread teach nothing",
            groups,
            (("fill-train", "used"), ("fill-flat", "no spread"), ("fill-lost", "too small")),
        ),
        Figure(
            "Seconds per iteration",
            "where the time goes",
            times,
            (
                ("fill-train", "playing"),
                ("fill-flat", "preparing"),
                ("fill-after", "updating"),
                ("fill-lost", "publishing"),
            ),
        ),
        one("unparsable", "Unreadable answers", "fraction of episodes that end so"),
    ]


def _bars(comparison: Comparison) -> Markup:
    return range_bars(
        [
            Interval(comparison.name, rate.success, rate.ci95, "", style)
            for rate, style in ((comparison.before, "before"), (comparison.after, "after"))
            if rate.n
        ]
    )


def _series(metrics: Metrics, key: str) -> list[tuple[float, float]]:
    return [(float(m["iteration"]), float(m[key])) for m in metrics if key in m]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["bars"] = _bars
    return environment
