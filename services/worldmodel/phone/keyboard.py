"""The soft keyboard: the boxes of its keys. Denser than the grid, as a keyboard has to be."""

from functools import cache

from services.worldmodel.phone.geometry import HEIGHT, WIDTH, Element, centre
from services.worldmodel.phone.widgets import Elements

KEYBOARD_TOP = 1440
KEY_H = 180
KEY_LINES = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")


@cache
def keyboard(capitals: bool) -> tuple[Element, ...]:
    """All keys, back to front; `capitals` shows capital letters."""
    tray = (0, KEYBOARD_TOP, WIDTH, HEIGHT - KEYBOARD_TOP)
    out: Elements = [Element("keyboard", "keyboard", "", tray, centre(tray))]

    def key(
        id: str, words: str, x: int, line: int, width: int, event: str, glyph: str = ""
    ) -> None:
        box = (x, KEYBOARD_TOP + line * KEY_H, width, KEY_H)
        out.append(
            Element(
                f"keyboard/{id}",
                "key",
                words,
                box,
                centre(box),
                True,
                key=f"os.{event}",
                glyph=glyph,
                tone="soft" if glyph or len(words) > 1 else "",
            )
        )

    for line, letters in enumerate(KEY_LINES):
        x = (WIDTH - 108 * len(letters)) // 2 if line < 3 else 162
        for letter in letters:
            shown = letter.upper() if capitals else letter
            key(letter, shown, x, line, 108, f"letter:{letter}")
            x += 108
    key("shift", "", 0, 3, 162, "shift", "capital" if capitals else "shift")
    key("erase", "", 918, 3, 162, "erase", "erase")
    key("comma", ",", 0, 4, 162, "letter:,")
    key("space", "space", 162, 4, 594, "letter: ")
    key("period", ".", 756, 4, 108, "letter:.")
    key("enter", "", 864, 4, 216, "enter", "enter")
    return tuple(out)
