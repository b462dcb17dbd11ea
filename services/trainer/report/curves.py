"""Learning curves as inline SVG: plain functions from numbers to markup.

Colours and fonts come from the page's style sheet through classes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

Point = tuple[float, float]
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 12.0, 30.0


@dataclass(frozen=True, slots=True)
class Line:
    """A series: `style` is a class of the style sheet; `dots` draws points, not a line."""

    name: str
    points: Sequence[Point]
    style: str
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its interval, drawn at one edge of the chart ("left" or "right")."""

    name: str
    value: float
    ci95: tuple[float, float]
    edge: str
    style: str


def chart(
    lines: Sequence[Line],
    *,
    width: float = 360.0,
    height: float = 180.0,
    y_range: tuple[float, float] | None = None,
    intervals: Sequence[Interval] = (),
    label: str = "",
    text: Callable[[float], str] | None = None,
) -> Markup:
    """Lines over iterations. The y axis begins at 0 unless a value is negative."""
    points = [p for line in lines for p in line.points]
    if not points and not intervals:
        return Markup('<p class="empty">no iteration was trained</p>')
    x_low, x_high = _x_range(points)
    if y_range is None:
        values = [y for _, y in points]
        y_range = (min(0.0, *values), max(values)) if values else (0.0, 1.0)
    ticks = nice_ticks(*y_range)
    y_low, y_high = min(y_range[0], ticks[0]), max(y_range[1], ticks[-1])
    write = text or tick_text(ticks)
    # Room at both edges for the intervals, which stand before and after the training.
    inner_left = LEFT + (34 if intervals else 0)
    inner_right = width - RIGHT - (34 if intervals else 0)

    def x_of(x: float) -> float:
        return inner_left + (x - x_low) / (x_high - x_low) * (inner_right - inner_left)

    def y_of(y: float) -> float:
        return TOP + (y_high - y) / (y_high - y_low) * (height - TOP - BOTTOM)

    out = [
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(label)}">'
    ]
    for tick in ticks:
        y = y_of(tick)
        out.append(
            f'<line class="grid" x1="{LEFT:g}" x2="{width - RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT - 7:g}" y="{y + 3.5:.1f}" text-anchor="end">'
            f"{escape(write(tick))}</text>"
        )
    for tick in nice_ticks(x_low, x_high, about=8):
        if x_low <= tick <= x_high and tick == int(tick) and points:
            out.append(
                f'<text class="tick" x="{x_of(tick):.1f}" y="{height - 12:g}" '
                f'text-anchor="middle">{tick:g}</text>'
            )
    for line in lines:
        out.append(_line(line, x_of, y_of, write))
    for mark in intervals:
        x = LEFT + 15 if mark.edge == "left" else width - RIGHT - 15
        out.append(_interval(mark, x, y_of))
    out.append("</svg>")
    return Markup("".join(out))


def stack(
    layers: Sequence[tuple[str, Sequence[float], str]],
    *,
    width: float = 360.0,
    height: float = 180.0,
    label: str = "",
) -> Markup:
    """Stacked bars, one per iteration; each layer is (name, values, style)."""
    count = len(layers[0][1]) if layers else 0
    if not count:
        return Markup('<p class="empty">no iteration was trained</p>')
    top = max(sum(values[i] for _, values, _ in layers) for i in range(count)) or 1.0
    ticks = nice_ticks(0.0, top)
    y_high = max(top, ticks[-1])
    write = tick_text(ticks)
    room, tall = width - LEFT - RIGHT, height - TOP - BOTTOM
    pitch = room / count
    gap = min(2.0, pitch * 0.2)
    out = [
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(label)}">'
    ]
    for tick in ticks:
        y = TOP + (1 - tick / y_high) * tall
        out.append(
            f'<line class="grid" x1="{LEFT:g}" x2="{width - RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT - 7:g}" y="{y + 3.5:.1f}" text-anchor="end">'
            f"{escape(write(tick))}</text>"
        )
    for i in range(count):
        base = 0.0
        for name, values, style in layers:
            tall_i = values[i] / y_high * tall
            y = TOP + tall - base - tall_i
            out.append(
                f'<rect class="{style}" x="{LEFT + i * pitch:.2f}" y="{y:.2f}" '
                f'width="{pitch - gap:.2f}" height="{tall_i:.2f}"><title>iteration {i + 1}: '
                f"{escape(name)} {values[i]:.3g}</title></rect>"
            )
            base += tall_i
    for tick in nice_ticks(1.0, float(max(count, 2)), about=8):
        if tick == int(tick) and 1 <= tick <= count:
            out.append(
                f'<text class="tick" x="{LEFT + (tick - 0.5) * pitch:.1f}" y="{height - 12:g}" '
                f'text-anchor="middle">{tick:g}</text>'
            )
    out.append("</svg>")
    return Markup("".join(out))


def range_bars(rates: Sequence[Interval], width: float = 260.0, height: float = 34.0) -> Markup:
    """Up to two rates in [0, 1] with their intervals on one scale."""

    def x_of(value: float) -> float:
        return 6 + value * (width - 12)

    out = [f'<svg class="bars" viewBox="0 0 {width:g} {height:g}" aria-hidden="true">']
    out += [
        f'<line class="grid" x1="{x_of(t):g}" x2="{x_of(t):g}" y1="2" y2="{height - 2:g}"/>'
        for t in (0, 0.25, 0.5, 0.75, 1)
    ]
    for rate, y in zip(rates, (11.0, 23.0), strict=False):
        low, high = rate.ci95
        out.append(
            f'<line class="whisker {rate.style}" x1="{x_of(low):.1f}" x2="{x_of(high):.1f}" '
            f'y1="{y:g}" y2="{y:g}"/>'
            f'<circle class="mark {rate.style}" cx="{x_of(rate.value):.1f}" cy="{y:g}" r="4.5"/>'
        )
    out.append("</svg>")
    return Markup("".join(out))


def trailing_mean(points: Sequence[Point], window: int = 5) -> list[Point]:
    """Each value averaged with up to `window` - 1 earlier ones."""
    values = [y for _, y in points]
    return [
        (x, sum(part) / len(part))
        for i, (x, _) in enumerate(points)
        if (part := values[max(0, i + 1 - window) : i + 1])
    ]


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About `about` round numbers that cover [low, high] (steps of 1, 2 or 5 times 10^k)."""
    if high <= low:
        high = low + (abs(low) or 1.0)
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if raw <= power * m * 1.0000001)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [k * step for k in range(first, last + 1)]


def tick_text(ticks: Sequence[float]) -> Callable[[float], str]:
    """A formatter with as many digits as the ticks need to differ."""
    step = ticks[1] - ticks[0]
    if step >= 1:
        return lambda value: f"{value:.0f}"
    if step < 1e-3:
        return lambda value: f"{value:.0e}" if value else "0"
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return lambda value: f"{value:.{digits}f}"


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _x_range(points: Sequence[Point]) -> Point:
    if not points:
        return 0.0, 1.0
    xs = [x for x, _ in points]
    return (min(xs), max(xs)) if min(xs) < max(xs) else (min(xs) - 0.5, max(xs) + 0.5)


def _line(
    line: Line,
    x_of: Callable[[float], float],
    y_of: Callable[[float], float],
    write: Callable[[float], str],
) -> str:
    if line.dots:
        return "".join(
            f'<circle class="dot {line.style}" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="2.4">'
            f"<title>{escape(line.name)}, iteration {x:g}: {y:.3g}</title></circle>"
            for x, y in line.points
        )
    path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line.points)
    return f'<polyline class="line {line.style}" points="{path}"/>'


def _interval(mark: Interval, x: float, y_of: Callable[[float], float]) -> str:
    low, high = mark.ci95
    return (
        f"<g><title>{escape(mark.name)}: {mark.value:.3f} [{low:.3f}, {high:.3f}]</title>"
        f'<line class="whisker {mark.style}" x1="{x:g}" x2="{x:g}" '
        f'y1="{y_of(low):.1f}" y2="{y_of(high):.1f}"/>'
        f'<circle class="mark {mark.style}" cx="{x:g}" cy="{y_of(mark.value):.1f}" r="5.5"/></g>'
    )
