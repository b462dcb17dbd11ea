"""White glyphs, drawn for this project as inline SVG on a 24 x 24 grid.

They are coarse on purpose: at the size a small model sees them (about 10 px) only the
silhouette survives, so no two glyphs of one page share one. Colour comes from the element.
"""

from markupsafe import Markup


def _line(path: str, width: float = 2.6) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="{width}" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
    )


def _ring(radius: float, width: float = 2.6, cx: float = 12, cy: float = 12) -> str:
    return (
        f'<circle cx="{cx}" cy="{cy}" r="{radius}" fill="none" stroke="currentColor" '
        f'stroke-width="{width}"/>'
    )


def _disc(radius: float, cx: float = 12, cy: float = 12) -> str:
    return f'<circle cx="{cx}" cy="{cy}" r="{radius}"/>'


def _rect(x: float, y: float, w: float, h: float, r: float = 1) -> str:
    return f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{r}"/>'


def _frame(x: float, y: float, w: float, h: float, r: float = 2) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{r}" fill="none" '
        'stroke="currentColor" stroke-width="2.6"/>'
    )


def _fill(path: str) -> str:
    return f'<path d="{path}"/>'


_SHAPES: dict[str, str] = {
    # apps
    "gear": _ring(5.5, 4)
    + '<circle cx="12" cy="12" r="9.3" fill="none" stroke="currentColor" stroke-width="3.2" '
    'stroke-dasharray="3.65 3.65"/>',
    "clock": _ring(9) + _line("M12 6.5V12l4 2.5"),
    "page": _fill("M5 2h10l5 5v15H5z"),
    "bubble": _fill(
        "M2 4a2 2 0 0 1 2-2h16a2 2 0 0 1 2 2v11a2 2 0 0 1-2 2H10l-6 5v-5a2 2 0 0 1-2-2z"
    ),
    "calendar": _fill("M3 4h3V2h3v2h6V2h3v2h3v17H3zM6 10v8h12v-8z"),
    "folder": _fill("M2 4h8l2.5 3H22v13H2z"),
    "picture": _fill(
        "M2 3h20v18H2zM5 18h14l-5-7l-3.5 4.5L8 12.5zM8 6a2 2 0 1 0 0 4a2 2 0 0 0 0-4z"
    ),
    "sums": _line("M7 3v8M3 7h8M14 7h7M4 14.5l6 6M10 14.5l-6 6M14 15.5h7M14 20h7", 2.6),
    "tune": _disc(3.6, 6.5, 18) + _disc(3.6, 17.5, 16) + _line("M9 18V5l11-2.5V16", 2.6),
    "cart": _line("M2 4h3l3 11h10l3-8H6.5", 2.6) + _disc(2, 9.5, 20) + _disc(2, 17, 20),
    "envelope": _fill("M2 5h20l-10 7.5zM2 8.2l10 7.5l10-7.5V20H2z"),
    "globe": _ring(9.2, 2.4)
    + _line("M3 12h18M12 3c-4.5 5-4.5 13 0 18M12 3c4.5 5 4.5 13 0 18", 2.2),
    "person": _disc(4.6, 12, 7.2) + _fill("M3 21c0-5 4-7.5 9-7.5s9 2.5 9 7.5z"),
    # settings
    "bars": _rect(3, 15, 4, 6) + _rect(10, 9, 4, 12) + _rect(17, 3, 4, 18),
    "handset": _frame(6, 2.5, 12, 19) + _disc(1.4, 12, 18),
    "speaker": _fill("M3 9h4l6-5v16l-6-5H3z") + _line("M17 8a5.5 5.5 0 0 1 0 8"),
    "battery": _fill("M9 2h6v2h3v18H6V4h3z"),
    "shield": _fill("M12 2l8 3v6c0 5-3.5 9-8 11c-4.5-2-8-6-8-11V5z"),
    "wifi": _line("M2.5 9a14 14 0 0 1 19 0", 3)
    + _line("M6.5 13.5a8 8 0 0 1 11 0", 3)
    + _disc(2.4, 12, 18.5),
    "rune": _line("M6.5 7.5l11 9L12 21V3l5.5 4.5l-11 9", 2.4),
    "target": _ring(9.2, 2.6) + _disc(4.2),
    "plane": _fill(
        "M12 1.5c1.3 0 2 1.2 2 3V9l8 5v2.5l-8-2.5v5l2.5 2v1.5L12 21.3L7.5 "
        "22.5V21L10 19v-5l-8 2.5V14l8-5V4.5c0-1.8.7-3 2-3z"
    ),
    "turn": _line("M19 12a7 7 0 1 1-2.5-5.4", 3) + _fill("M21 2v8h-8z"),
    "moon": _fill("M14 2a10 10 0 1 0 8 14A9 9 0 0 1 14 2z"),
    "hourglass": _fill("M5 2h14v3l-5.5 7l5.5 7v3H5v-3l5.5-7L5 5z"),
    "zigzag": _line("M2.5 9l4 6l4-9l4 12l4-9l3 5", 3),
    "mute": _line("M4 4l16 16M20 4L4 20", 3.6),
    "dot": _disc(7),
    "leaf": _fill("M20 3C9 3 4 8 4 14c0 2 .6 3.5 1.5 4.6L3.5 21l1.6 1l2-2.2C16 22 21 15 20 3z"),
    "percent": _disc(3.6, 6.5, 6.5) + _disc(3.6, 17.5, 17.5) + _line("M19 4L5 20", 3),
    "drop": _fill(
        "M12 2a7.5 7.5 0 0 1 7.5 7.5C19.5 15 12 22 12 22S4.5 15 4.5 9.5A7.5 7.5 0 0 1 12 2z"
    ),
    "camera": _fill("M8 5l2-2.5h4L16 5h6v15H2V5zM12 8a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9z"),
    "mic": _rect(8.5, 2, 7, 12, 3.5) + _line("M4.5 11a7.5 7.5 0 0 0 15 0M12 18.5V22"),
    # alarms
    "case": _fill("M8.5 3h7v4H22v14H2V7h6.5z"),
    "dumbbell": _rect(2, 6, 5, 12) + _rect(17, 6, 5, 12) + _rect(6, 10.5, 12, 3, 0),
    "cap": _fill("M12 3l11 6l-11 6L1 9z") + _fill("M6 14l6 3.3L18 14v4l-6 3.3L6 18z"),
    "bowl": _fill("M2 11h20a10 10 0 0 1-20 0z") + _line("M8 7V4M12 7V3M16 7V4", 2.2),
    "zed": _line("M6 4.5h12L6 19.5h12", 3.6),
    "cross": _rect(9, 2.5, 6, 19) + _rect(2.5, 9, 19, 6),
    "fork": _line("M7 3v18M7 3v6", 4) + _line("M16.5 3v18", 4),
    "bed": _rect(2, 5, 3, 16) + _rect(5, 11, 17, 6, 2) + _rect(19, 15, 3, 6),
    # notes
    "coin": _ring(8.5, 3.6) + _rect(10.5, 7.5, 3, 9),
    "bulb": _fill("M12 2a7 7 0 0 1 4 12.7V17H8v-2.3A7 7 0 0 1 12 2z") + _rect(8.5, 18.5, 7, 3),
    "book": _fill("M2 4c4-1 7 0 9 2v15c-2-2-5-3-9-2zM22 4c-4-1-7 0-9 2v15c2-2 5-3 9-2z"),
    "flower": _disc(3.7, 12, 5.5)
    + _disc(3.7, 12, 18.5)
    + _disc(3.7, 5.5, 12)
    + _disc(3.7, 18.5, 12),
    "play": _fill("M5 2.5l16 9.5L5 21.5z"),
    "gift": _rect(2.5, 7, 8, 5)
    + _rect(13.5, 7, 8, 5)
    + _rect(4, 13.5, 6.5, 8)
    + _rect(13.5, 13.5, 6.5, 8)
    + _line("M12 6L8 2.5M12 6l4-3.5"),
    # actions
    "plus": _line("M12 4v16M4 12h16", 3.2),
    "back": _line("M20 12H5M11.5 5.5L5 12l6.5 6.5", 2.4),
    "check": _line("M4 12.5l5.5 5.5L20 6.5", 3.2),
    "trash": _fill("M8 3h8v2h5v3H3V5h5zM5 9.5h14L18 22H6z"),
    "pin": _fill("M7 2h10v2.5l-2 1V11l4 4v2H5v-2l4-4V5.5l-2-1z") + _rect(11, 16, 2, 7, 0),
    "star": _fill("M12 1.5l3.2 7l7.6.8l-5.7 5.1l1.6 7.5L12 18.1l-6.7 3.8l1.6-7.5L1.2 9.3l7.6-.8z"),
    "phone": _fill(
        "M6.5 2.5l4 5l-2.5 3c1.2 2.3 3.2 4.3 5.5 5.5l3-2.5l5 4c-1 3-3 4.5-5.5 4"
        "C9 20 4 15 2.5 8C2 5.5 3.5 3.5 6.5 2.5z"
    ),
    "hangup": _fill("M1 14c6-7 16-7 22 0l-3.5 3.5l-4-2v-3c-2.3-.7-4.7-.7-7 0v3l-4 2z"),
    "stop": _rect(4, 4, 16, 16, 2),
    "bell": _fill("M12 2a6.5 6.5 0 0 1 6.5 6.5V15l2.5 3H3l2.5-3V8.5A6.5 6.5 0 0 1 12 2z")
    + _disc(2.5, 12, 20.5),
    "erase": _fill("M8 4h14v16H8l-7-8z"),
    "shift": _line("M12 4L4 12h4v7h8v-7h4z", 2.2),
    "capital": _fill("M12 3L3 12h5v8h8v-8h5z"),
    "enter": _line("M20 5v7H5M10 7l-5 5l5 5"),
    "search": _ring(6.5, 2.6, 10, 10) + _line("M15 15l6 6", 3),
    "close": _line("M5 5l14 14M19 5L5 19", 3),
    "down": _line("M5 9l7 7l7-7"),
}


def svg(shape: str) -> Markup:
    """A shape on the 24 x 24 grid as an inline image."""
    return Markup(
        '<svg viewBox="0 0 24 24" width="100%" height="100%" fill="currentColor" '
        f'fill-rule="evenodd" aria-hidden="true">{shape}</svg>'
    )


GLYPHS: dict[str, Markup] = {name: svg(shape) for name, shape in _SHAPES.items()}
