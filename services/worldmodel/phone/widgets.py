"""The building blocks of pages: app bar, list row, tabs, buttons, field, dialog.

Each gives elements on the grid. A list row is one cell high: leading icon in column 0,
text in columns 1 and 2, switch or mark in column 3; its whole width is one target.
"""

from textwrap import wrap

from services.worldmodel.phone.geometry import (
    CELL_H,
    CELL_W,
    HEIGHT,
    WIDTH,
    Box,
    Element,
    cell,
    cell_box,
    centre,
    slug,
    square,
)
from services.worldmodel.phone.look import look

ICON = 164
FIELD_CHARS = 18
Elements = list[Element]


def text(id: str, words: str, box: Box, tone: str = "") -> Element:
    """A piece of text that does nothing."""
    return Element(id, "text", words, box, centre(box), tone=tone)


def paragraph(
    id: str, words: str, box: Box, tone: str = "body", *, line_px: int = 76, char_px: int = 31
) -> Elements:
    """Words broken into lines that fit the box at the largest text size; the rest is left out.

    One element a line, `id-0` and so on. `char_px` is the mean width of a letter of `tone`.
    """
    x, y, w, h = box
    lines = wrap(words, max(1, w // char_px))[: h // line_px]
    return [
        text(f"{id}-{i}", line, (x, y + i * line_px, w, line_px), tone)
        for i, line in enumerate(lines)
    ]


def app_bar(app: str, title: str, back: bool, action: tuple[str, str] | None = None) -> Elements:
    """The coloured bar of row 0: back arrow, title, and at most one action (key, glyph)."""
    color = look(app)[0]
    bar = (0, 0, WIDTH, CELL_H)
    at = slug(app)
    out = [Element(f"{at}/bar", "bar", "", bar, centre(bar), color=color)]
    if back:
        out.append(
            Element(
                f"{at}/back",
                "button",
                "Back",
                (0, 80, CELL_W, CELL_H - 80),
                cell(0, 0),
                True,
                key="back",
                glyph="back",
                tone="plain",
            )
        )
    x = CELL_W if back else 56
    out.append(text(f"{at}/title", title, (x, 80, 800 - x, CELL_H - 80), "title"))
    if action is not None:
        key, glyph = action
        out.append(
            Element(
                f"{at}/{key}",
                "button",
                key.capitalize(),
                (3 * CELL_W, 80, CELL_W, CELL_H - 80),
                cell(3, 0),
                True,
                key=key,
                glyph=glyph,
                tone="plain",
            )
        )
    return out


def row(
    app: str,
    line: int,
    name: str,
    *,
    key: str = "",
    sub: str = "",
    on: bool | None = None,
    mark: str = "",
    tone: str = "",
    icon: tuple[str, str] | None = None,
    enabled: bool = True,
) -> Elements:
    """A list row. `on` gives it a switch; `mark` is a trailing glyph shown while `tone` is set.

    `key` is what tapping anywhere in the row sends; without it the row does nothing.
    """
    id = f"{app}/{slug(name)}"
    box = cell_box(0, line, 4)
    at = cell(0, line)
    color, glyph = icon or look(name)
    tone = tone or ("on" if on else "")
    top = line * CELL_H
    out = [
        Element(id, "row", name, box, at, bool(key), on, enabled=enabled, key=key, tone=tone),
        Element(f"{id}:icon", "glyph", "", square(0, line, ICON), at, color=color, glyph=glyph),
    ]
    width = 770 - CELL_W if on is not None or mark else WIDTH - 40 - CELL_W
    if sub:
        out.append(text(f"{id}:text", name, (CELL_W, top + 48, width, 84), "row"))
        out.append(text(f"{id}:sub", sub, (CELL_W, top + 132, width, 60), "sub"))
    else:
        out.append(text(f"{id}:text", name, (CELL_W, top + 78, width, 84), "row"))
    if on is not None:
        switch = (3 * CELL_W + 57, top + 72, 156, 96)
        out.append(Element(f"{id}:switch", "switch", "", switch, at, False, on))
    elif mark:
        out.append(
            Element(f"{id}:mark", "mark", "", square(3, line, 100), cell(3, line), glyph=mark)
        )
    return out


def scroll_bar(app: str, first: int, visible: int, total: int, top_row: int) -> Elements:
    """The thumb at the right edge of a list that does not fit; nothing when it fits."""
    if total <= visible:
        return []
    track = visible * CELL_H
    box = (WIDTH - 22, top_row * CELL_H + track * first // total, 14, track * visible // total)
    return [Element(f"{app}/scrollbar", "scrollbar", "", box, centre(box))]


def tabs(app: str, color: str, current: str, choices: tuple[tuple[str, str], ...]) -> Elements:
    """The tabs of row 9, as (name, glyph): two with their words beside the icons, or up to
    four of one cell each with the words below."""
    bar = cell_box(0, 9, 4)
    out = [Element(f"{app}/tabs", "tabs", "", bar, centre(bar))]
    wide = len(choices) == 2
    for i, (name, glyph) in enumerate(choices):
        here = name == current
        column, top = 2 * i if wide else i, 9 * CELL_H
        id = f"{app}/{slug(name)}-tab"
        tone = "on" if here else ""
        icon = square(column, 9, 140) if wide else (column * CELL_W + 75, top + 14, 120, 120)
        words = (
            (column * CELL_W + 250, top + 80, 280, 80)
            if wide
            else (column * CELL_W, top + 140, CELL_W, 56)
        )
        out += [
            Element(
                id,
                "tab",
                name,
                cell_box(column, 9, 2 if wide else 1),
                cell(column, 9),
                True,
                here,
                key=f"tab:{name}",
                tone=tone,
            ),
            Element(
                f"{id}:icon",
                "glyph",
                "",
                icon,
                cell(column, 9),
                color=color,
                glyph=glyph,
                tone="tab" + tone,
            ),
            text(f"{id}:text", name, words, ("tab" if wide else "small-tab") + tone),
        ]
    return out


def button(
    app: str, column: int, line: int, word: str, key: str, color: str, glyph: str
) -> Elements:
    """A round button in one cell with its word below the glyph."""
    id = f"{app}/{slug(key)}"
    at = cell(column, line)
    top = line * CELL_H
    disc = (column * CELL_W + 65, top + 20, 140, 140)
    return [
        Element(id, "button", word, cell_box(column, line), at, True, key=key, tone="cell"),
        Element(f"{id}:icon", "glyph", "", disc, at, color=color, glyph=glyph),
        text(f"{id}:text", word, (column * CELL_W, top + 168, CELL_W, 56), "label"),
    ]


def pill(app: str, line: int, word: str, key: str, color: str, glyph: str) -> Elements:
    """A wide button in columns 1 and 2: glyph in the first, word in the second."""
    id = f"{app}/{slug(key)}"
    top = line * CELL_H
    at = cell(1, line)
    return [
        Element(
            id,
            "button",
            word,
            (CELL_W + 10, top + 30, 2 * CELL_W - 20, 180),
            at,
            True,
            key=key,
            color=color,
            tone="pill",
        ),
        Element(f"{id}:icon", "glyph", "", square(1, line, 110), at, glyph=glyph, tone="bare"),
        text(f"{id}:text", word, (2 * CELL_W - 30, top + 70, 270, 100), "pill"),
    ]


def fab(app: str, column: int, line: int, color: str) -> Elements:
    """The floating "+" button."""
    return [
        Element(
            f"{app}/add",
            "button",
            "Add",
            square(column, line, 184),
            cell(column, line),
            True,
            key="add",
            color=color,
            glyph="plus",
            tone="fab",
        )
    ]


def field(app: str, line: int, name: str, value: str, focused: bool, glyph: str) -> Elements:
    """An outlined text field with its leading icon; tapping it brings up the keyboard."""
    id = f"{app}/{slug(name)}-field"
    top = line * CELL_H
    tone = "focused" if focused else ""
    # Where the cursor stands is in view, as in Android.
    shown = "…" + value[-FIELD_CHARS:] if focused and len(value) > FIELD_CHARS else value
    return [
        Element(
            id,
            "field",
            value,
            cell_box(0, line, 4),
            cell(0, line),
            True,
            None,
            focused,
            key=f"field:{name}",
            tone=tone,
        ),
        Element(
            f"{id}:icon",
            "glyph",
            "",
            square(0, line, 130),
            cell(0, line),
            color="neutral",
            glyph=glyph,
        ),
        text(f"{id}:box", shown, (CELL_W, top + 50, 760, 150), "field" + tone),
        text(f"{id}:label", name, (CELL_W + 40, top + 24, 190, 52), "legend" + tone),
    ]


def dialog(
    question: str,
    item: str,
    *,
    word: str = "Delete",
    icon: tuple[str, str] | None = None,
    tone: str = "confirm",
) -> Elements:
    """The confirm dialog over a dimmed page: Cancel and `word` (key "confirm").

    `tone` is "confirm" (red, for what destroys) or "ok".
    """
    answers = (("Cancel", "cancel", "cancel"), (word, "confirm", tone))
    return sheet("dialog", question, item, icon or look(item), answers)


def sheet(
    id: str,
    question: str,
    item: str,
    icon: tuple[str, str],
    answers: tuple[tuple[str, str, str], ...],
) -> Elements:
    """A dialog card in rows 4 and 5; two answers (word, key, tone) in columns 1 and 2."""
    scrim = (0, 0, WIDTH, HEIGHT)
    card = (60, 4 * CELL_H - 60, WIDTH - 120, 2 * CELL_H + 90)
    color, glyph = icon
    top = 4 * CELL_H
    out = [
        Element(f"{id}/scrim", "scrim", "", scrim, centre(scrim)),
        Element(id, "dialog", question, card, centre(card)),
        Element(
            f"{id}/icon",
            "glyph",
            "",
            (120, top + 30, 150, 150),
            cell(0, 4),
            color=color,
            glyph=glyph,
        ),
        text(f"{id}/question", question, (300, top + 20, 660, 90), "question"),
        text(f"{id}/item", item, (300, top + 110, 660, 70), "sub"),
    ]
    for column, (word, key, tone) in enumerate(answers, 1):
        box = (column * CELL_W + 4, 5 * CELL_H + 50, CELL_W - 8, 140)
        name = slug(key)
        out.append(
            Element(
                f"{id}/{name}", "button", word, box, cell(column, 5), True, None, key=key, tone=tone
            )
        )
    return out
