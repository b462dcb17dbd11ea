"""Music: songs, playlists and a player that goes on while one waits.

A song's row plays it; holding the row opens its menu without playing. Shuffle is a fixed
stride through the queue, so that the future of a phone is decided.
"""

from dataclasses import replace

from services.worldmodel.phone.app import App, Listing, Reply, ask, pop, push
from services.worldmodel.phone.apps.songs import Music, Playlist, Song, boot
from services.worldmodel.phone.effects import Effect
from services.worldmodel.phone.geometry import CELL_H, WIDTH, Element, centre
from services.worldmodel.phone.look import BLUE, GREEN, INK, LOOK, ORANGE, PINK, RED, look
from services.worldmodel.phone.state import Frame, Stack
from services.worldmodel.phone.widgets import (
    Elements,
    app_bar,
    button,
    dialog,
    fab,
    field,
    row,
    scroll_bar,
    tabs,
    text,
)

NAME = "Music"
VISIBLE = 7
FIELDS = ("Name",)
TABS = (("Songs", "note"), ("Lists", "queue"))
COLOR = LOOK[NAME][0]
_PATH = '<path d="{}" fill="none" stroke="currentColor" stroke-width="2.8" stroke-linecap="round" '
_PATH += 'stroke-linejoin="round"/>'
GLYPHS = {
    "note": '<path d="M9 3l12-2v15a3.5 3.5 0 1 1-2.5-3.3V7L11.5 8.2V18.5A3.5 3.5 0 1 1 9 15.2z"/>',
    "queue": _PATH.format("M3 6h11M3 12h11M3 18h7") + '<path d="M15 12l7 4.5l-7 4.5z"/>',
    "heart": '<path d="M12 21C5 15.5 2 12 2 8a5 5 0 0 1 10-1.5A5 5 0 0 1 22 8c0 4-3 7.5-10 13z"/>',
    "pause": '<rect x="4.5" y="3" width="5.5" height="18" rx="1"/>'
    '<rect x="14" y="3" width="5.5" height="18" rx="1"/>',
    "next": '<path d="M4 3l12 9l-12 9z"/><rect x="17" y="3" width="3.5" height="18"/>',
    "previous": '<path d="M20 3L8 12l12 9z"/><rect x="3.5" y="3" width="3.5" height="18"/>',
    "shuffle": _PATH.format("M2 7h4l10 10h5M2 17h4l3-3M13 10l3-3h5M18 4l3 3l-3 3M18 14l3 3l-3 3"),
    "repeat": _PATH.format("M4 12V7h15M16 3.5L19.5 7L16 10.5M20 12v5H5M8 13.5L4.5 17L8 20.5"),
}


def title(_data: Music, frame: Frame) -> str:
    """The word in the app bar."""
    return {
        "Songs": NAME,
        "Lists": "Lists",
        "player": "Player",
        "edit": "New list",
        "add": "Add to list",
    }.get(frame.page, frame.item)


def draw(data: Music, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    action = ("save", "check") if frame.page == "edit" else None
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1, action)
    if frame.page == "Songs":
        out += _songs(data, frame, tuple(song.title for song in data.songs))
    elif frame.page == "Lists":
        for i, playlist in enumerate(data.lists[frame.scroll : frame.scroll + VISIBLE]):
            count = len(playlist.titles)
            sub = f"{count} song" if count == 1 else f"{count} songs"
            out += row("music", 1 + i, playlist.name, key=f"list:{playlist.name}", sub=sub)
        out += scroll_bar("music", frame.scroll, VISIBLE, len(data.lists), 1)
        out += fab("music", 3, 8, COLOR)
    elif frame.page == "list":
        playlist = _list(data, frame)
        out += _songs(data, frame, playlist.titles)
        if not playlist.titles:
            out.append(text("music/empty", "No songs yet", (80, 300, 920, 120), "body"))
    elif frame.page == "player":
        out += _player(data)
    elif frame.page == "song":
        song = _known(data, frame.item)
        out += _row(song, 1)
        out += row("music", 2, _clock(song.seconds), icon=(INK, "clock"))
        out += button("music", 0, 8, "Play", "play", GREEN, "play")
        out += _like(song, 1, 8)
        out += button("music", 2, 8, "Add", "choose", BLUE, "queue")
    elif frame.page == "add":
        song = _known(data, frame.item)
        for i, playlist in enumerate(data.lists[frame.scroll : frame.scroll + VISIBLE]):
            has = song.title in playlist.titles
            out += row(
                "music",
                1 + i,
                playlist.name,
                key="" if has else f"into:{playlist.name}",
                mark="check" if has else "",
                tone="on" if has else "",
                enabled=not has,
            )
        out += scroll_bar("music", frame.scroll, VISIBLE, len(data.lists), 1)
    elif frame.page == "edit":
        out += field("music", 1, "Name", frame.field("Name"), frame.focus == "Name", "queue")
        if data.list(frame.field("Name").strip()) is not None:
            box = (270, 2 * CELL_H + 20, 760, 70)
            out.append(text("music/error", "There is a list of that name", box, "error"))
    else:
        raise ValueError(f"Music has no page {frame.page!r}")
    if len(stack) == 1:
        if data.current:
            song = _known(data, data.current)
            sub = "Playing" if data.playing else "Paused"
            icon = (INK, "note" if data.playing else "pause")
            if frame.page == "Songs":
                out += row("music", 8, song.title, key="player", sub=sub, icon=icon)
        out += tabs("music", COLOR, frame.page, TABS)
    if frame.dialog:
        out += dialog("Delete?", frame.dialog)
    return out


def _songs(data: Music, frame: Frame, titles: tuple[str, ...]) -> Elements:
    out: Elements = []
    for i, name in enumerate(titles[frame.scroll : frame.scroll + VISIBLE]):
        song = _known(data, name)
        out += _row(song, 1 + i, f"song:{name}")
    return out + scroll_bar("music", frame.scroll, VISIBLE, len(titles), 1)


def _row(song: Song, line: int, key: str = "") -> Elements:
    mark, tone = ("heart", "gold") if song.liked else ("", "")
    return row("music", line, song.title, key=key, sub=song.artist, mark=mark, tone=tone)


def _like(song: Song, column: int, line: int) -> Elements:
    return button("music", column, line, "Unlike" if song.liked else "Like", "like", PINK, "heart")


def _player(data: Music) -> Elements:
    song = data.song(data.current)
    if song is None:
        return [text("music/empty", "Nothing to play", (80, 300, 920, 120), "body")]
    out = _row(song, 1)
    cover = (390, 2 * CELL_H + 10, 300, 300)
    color = look(song.title)[0]
    width = (WIDTH - 160) * min(data.second, song.seconds) // song.seconds
    done = (80, 3 * CELL_H + 100, max(14, width), 14)
    line, top = (80, 3 * CELL_H + 106, WIDTH - 160, 3), 3 * CELL_H + 130
    out += [
        Element("music/cover", "picture", "", cover, centre(cover), color=color, glyph="note"),
        Element("music/line", "scrollbar", "", line, centre(line)),
        Element("music/done", "scrollbar", "", done, centre(done)),
        text("music/at", _clock(data.second), (80, top, 300, 80), "sub"),
        text("music/length", _clock(song.seconds), (WIDTH - 280, top, 200, 80), "end"),
    ]
    out += button("music", 0, 4, "Previous", "previous", INK, "previous")
    if data.playing:
        out += button("music", 1, 4, "Pause", "pause", ORANGE, "pause")
    else:
        out += button("music", 1, 4, "Play", "resume", GREEN, "play")
    out += button("music", 2, 4, "Next", "next", INK, "next")
    out += _like(song, 3, 4)
    out += row("music", 5, "Shuffle", key="flip:shuffle", on=data.shuffle, icon=(BLUE, "shuffle"))
    out += row("music", 6, "Repeat", key="flip:repeat", on=data.repeat, icon=(RED, "repeat"))
    out += row("music", 7, "Add to list", key="choose", icon=(BLUE, "queue"))
    return out


def _clock(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02d}"


def _known(data: Music, title: str) -> Song:
    song = data.song(title)
    if song is None:
        raise ValueError(f"there is no song {title!r}")
    return song


def _list(data: Music, frame: Frame) -> Playlist:
    playlist = data.list(frame.item)
    if playlist is None:
        raise ValueError(f"there is no playlist {frame.item!r}")
    return playlist


def tap(data: Music, stack: Stack, key: str) -> Reply[Music]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    title = data.current if frame.page == "player" else frame.item
    match verb:
        case "tab":
            return Reply(data, stack if frame.page == name else (Frame(name),))
        case "list":
            return Reply(data, push(stack, "list", name))
        case "player":
            return Reply(data, push(stack, "player"))
        case "song":
            queue = frame.item if frame.page == "list" else ""
            return Reply(data.starting(name, queue), push(stack, "player"))
        case "play":
            return Reply(data.starting(title), push(pop(stack), "player"))
        case "pause" | "resume":
            return Reply(replace(data, playing=verb == "resume"), stack)
        case "next" | "previous":
            return Reply(data.following(1 if verb == "next" else -1), stack)
        case "like":
            return Reply(data.liking(title, not _known(data, title).liked), stack)
        case "flip":
            if name == "shuffle":
                return Reply(replace(data, shuffle=not data.shuffle), stack)
            return Reply(replace(data, repeat=not data.repeat), stack)
        case "choose":
            return Reply(data, push(stack, "add", title))
        case "into":
            playlist = data.list(name)
            assert playlist is not None
            return Reply(data.holding(name, (*playlist.titles, frame.item)), pop(stack))
        case "confirm":
            return Reply(_deleted(data, frame), ask(stack, ""))
        case "add":
            return Reply(data, (*stack, Frame("edit", focus="Name")))
    assert verb == "save", key
    words = frame.field("Name").strip()
    if not words or data.list(words) is not None:
        return Reply(data, stack)
    return Reply(data.with_list(words), pop(stack))


def _deleted(data: Music, frame: Frame) -> Music:
    """What the dialog asked about: a playlist, or a song's place in one."""
    if frame.page == "Lists":
        return replace(data, lists=tuple(p for p in data.lists if p.name != frame.dialog))
    kept = tuple(title for title in _list(data, frame).titles if title != frame.dialog)
    return data.holding(frame.item, kept)


def hold(data: Music, stack: Stack, key: str) -> Reply[Music]:
    """A long press opens a song's menu, or asks whether to delete from, or a whole, list."""
    verb, _, name = key.partition(":")
    page = stack[-1].page
    if verb == "song" and page == "Songs":
        return Reply(data, push(stack, "song", name))
    if (verb, page) in (("song", "list"), ("list", "Lists")):
        return Reply(data, ask(stack, name))
    return Reply(data, stack)


def wait(data: Music, seconds: int) -> tuple[Music, tuple[Effect, ...]]:
    """A playing song goes on to its end, then the next one, or again from the start."""
    if not data.playing:
        return data, ()
    left = data.second + seconds
    while (song := data.song(data.current)) is not None and left >= song.seconds:
        left -= song.seconds
        data = replace(data, second=0) if data.repeat else data.following(1)
    return replace(data, second=left), ()


def listing(data: Music, frame: Frame) -> Listing | None:
    """Songs and lists scroll."""
    if frame.page == "Songs":
        return Listing(tuple(f"song:{song.title}" for song in data.songs), VISIBLE)
    if frame.page == "list":
        playlist = data.list(frame.item)
        titles = playlist.titles if playlist else ()
        return Listing(tuple(f"song:{title}" for title in titles), VISIBLE)
    if frame.page in ("Lists", "add"):
        verb = "list" if frame.page == "Lists" else "into"
        return Listing(tuple(f"{verb}:{playlist.name}" for playlist in data.lists), VISIBLE)
    return None


def fields(frame: Frame) -> tuple[str, ...]:
    """The fields of a page, in the order that Enter walks through."""
    return FIELDS if frame.page == "edit" else ()


def door(frame: Frame) -> str:
    """The key that opens a page."""
    if frame.page in ("Songs", "Lists"):
        return f"tab:{frame.page}"
    return {"player": "player", "edit": "add", "add": "choose"}.get(
        frame.page, f"{frame.page}:{frame.item}"
    )


def pages(data: Music) -> tuple[Stack, ...]:
    """Both tabs, every playlist, the editor, and the player where a song is in it."""
    songs, lists = (Frame("Songs"),), (Frame("Lists"),)
    inner = tuple(push(lists, "list", playlist.name) for playlist in data.lists)
    player = (push(songs, "player"),) if data.current else ()
    return (songs, lists, *inner, (*lists, Frame("edit", focus="Name")), *player)


APP = App(
    NAME,
    Music,
    Frame("Songs"),
    boot,
    title,
    draw,
    tap,
    listing,
    door,
    pages,
    hold=hold,
    fields=fields,
    wait=wait,
    glyphs=GLYPHS,
)
