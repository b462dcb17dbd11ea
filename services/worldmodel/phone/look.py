"""One fixed colour and glyph for every entity, wherever it is drawn.

A glyph of the form "=X" is a letter or number instead of a shape. Entities that can stand
on one page differ in hue, in shape, or both. Words that a user typed get a colour from
their letters.
"""

import zlib

RED, ORANGE, AMBER, LIME = "#E53935", "#FB8C00", "#B8960C", "#7CB342"
GREEN, TEAL, CYAN, BLUE = "#2E7D32", "#00897B", "#00ACC1", "#1E88E5"
INDIGO, VIOLET, PINK, BROWN = "#3949AB", "#8E24AA", "#EC407A", "#795548"
SLATE, INK = "#607D8B", "#37474F"

HUES = (RED, ORANGE, AMBER, LIME, GREEN, TEAL, CYAN, BLUE, INDIGO, VIOLET, PINK, BROWN)

LOOK: dict[str, tuple[str, str]] = {
    "Settings": (SLATE, "gear"),
    "Clock": (INDIGO, "clock"),
    "Notes": (AMBER, "page"),
    "Contacts": (TEAL, "person"),
    "Messages": (BLUE, "bubble"),
    "Phone": (GREEN, "phone"),
    "Calendar": (RED, "calendar"),
    "Files": (BROWN, "folder"),
    "Gallery": (PINK, "picture"),
    "Calculator": (INK, "sums"),
    "Music": (ORANGE, "tune"),
    "Shop": (LIME, "cart"),
    "Mail": (CYAN, "envelope"),
    "Browser": (VIOLET, "globe"),
    "Network": (BLUE, "bars"),
    "Display": (ORANGE, "handset"),
    "Sound": (VIOLET, "speaker"),
    "Battery": (GREEN, "battery"),
    "Privacy": (RED, "shield"),
    "Wi-Fi": (CYAN, "wifi"),
    "Bluetooth": (INDIGO, "rune"),
    "Hotspot": (ORANGE, "target"),
    "Airplane": (BROWN, "plane"),
    "Rotate": (GREEN, "turn"),
    "Night": (VIOLET, "moon"),
    "Timeout": (RED, "hourglass"),
    "Vibrate": (PINK, "zigzag"),
    "Silent": (INK, "mute"),
    "Clicks": (BLUE, "dot"),
    "Saver": (LIME, "leaf"),
    "Percent": (BLUE, "percent"),
    "Location": (RED, "drop"),
    "Camera": (TEAL, "camera"),
    "Microphone": (VIOLET, "mic"),
    "15 s": (CYAN, "=15"),
    "1 min": (RED, "=1"),
    "3 min": (GREEN, "=3"),
    "5 min": (VIOLET, "=5"),
    "10 min": (ORANGE, "=10"),
    "Work": (BROWN, "case"),
    "Gym": (RED, "dumbbell"),
    "School": (BLUE, "cap"),
    "Lunch": (ORANGE, "bowl"),
    "Nap": (CYAN, "zed"),
    "Medicine": (GREEN, "cross"),
    "Dinner": (PINK, "fork"),
    "Bedtime": (INDIGO, "bed"),
    "Recipes": (RED, "bowl"),
    "Travel": (BLUE, "plane"),
    "Budget": (GREEN, "coin"),
    "Ideas": (AMBER, "bulb"),
    "Books": (BROWN, "book"),
    "Garden": (LIME, "flower"),
    "Movies": (VIOLET, "play"),
    "Gifts": (PINK, "gift"),
}

NAMES = (
    "Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana", "Ivy", "Jack", "Kim", "Leo",
)  # fmt: skip

# Neighbours in the alphabet stand next to each other, so their hues are set far apart.
LOOK |= {name: (HUES[i * 5 % 12], f"={name[0]}") for i, name in enumerate(NAMES)}


def look(word: str) -> tuple[str, str]:
    """Colour and glyph of a word; words outside the vocabulary get a hue and their initial."""
    known = LOOK.get(word)
    if known is not None:
        return known
    hue = HUES[zlib.crc32(word.encode()) % len(HUES)]
    return hue, "=" + (word[:1].upper() or "?")
