"""Puts Music right: likes, playlists, and what plays how."""

from services.worldmodel.phone.apps.music import NAME
from services.worldmodel.phone.apps.songs import Music
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.touch import GIVE_UP, fill, press, reach, shows
from wmkit.domain.actions import Action

SONGS, LISTS = (Frame("Songs"),), (Frame("Lists"),)


def music(phone: Phone, now: Music, want: Music) -> Action | None:
    """The next action: lists first, then likes, then the player."""
    action = _lists(phone, now, want)
    if action is not None:
        return action
    for song in want.songs:
        known = now.song(song.title)
        if known is not None and known.liked != song.liked:
            return _menu(phone, now, song.title) or press(phone, "like")
    return _player(phone, now, want)


def _menu(phone: Phone, now: Music, title: str) -> Action | None:
    """To a page with the song's buttons: its menu, or the player that plays it."""
    if shows(phone, NAME, "song", title):
        return None
    if shows(phone, NAME, "player") and now.current == title:
        return None
    return reach(phone, NAME, SONGS) or press(phone, f"song:{title}", long=True)


def _lists(phone: Phone, now: Music, want: Music) -> Action | None:
    frame = phone.frame()
    for playlist in now.lists:
        wanted = want.list(playlist.name)
        if wanted is None:
            if phone.nav.front == NAME and frame is not None and frame.dialog == playlist.name:
                return press(phone, "confirm")
            return reach(phone, NAME, LISTS) or press(phone, f"list:{playlist.name}", long=True)
        extra = [title for title in playlist.titles if title not in wanted.titles]
        if not extra and playlist.titles != wanted.titles[: len(playlist.titles)]:
            return GIVE_UP
        if extra:
            page = (*LISTS, Frame("list", playlist.name))
            if phone.nav.front == NAME and frame is not None and frame.dialog == extra[0]:
                return press(phone, "confirm")
            return reach(phone, NAME, page) or press(phone, f"song:{extra[0]}", long=True)
        for title in wanted.titles[len(playlist.titles) :]:
            if shows(phone, NAME, "add", title):
                return press(phone, f"into:{playlist.name}")
            return _menu(phone, now, title) or press(phone, "choose")
    for playlist in want.lists:
        if now.list(playlist.name) is None:
            form = (*LISTS, Frame("edit"))
            return reach(phone, NAME, form) or fill(phone, {"Name": playlist.name})
    return None


def _player(phone: Phone, now: Music, want: Music) -> Action | None:
    if now.current and not want.current:
        return GIVE_UP
    player = (*SONGS, Frame("player"))
    if now.current != want.current:
        if shows(phone, NAME, "player"):
            titles = [song.title for song in now.songs]
            if now.queue == "" and not now.shuffle:
                after = titles[(titles.index(now.current) + 1) % len(titles)]
                before = titles[titles.index(now.current) - 1]
                if want.current in (before, after):
                    return press(phone, "next" if want.current == after else "previous")
        return reach(phone, NAME, SONGS) or press(phone, f"song:{want.current}")
    if (now.playing, now.shuffle, now.repeat) == (want.playing, want.shuffle, want.repeat):
        return None
    if not now.current:
        return GIVE_UP
    if not shows(phone, NAME, "player"):
        action = reach(phone, NAME, player)
        assert action is not None
        return action
    if now.playing != want.playing:
        return press(phone, "resume" if want.playing else "pause")
    return press(phone, "flip:shuffle" if now.shuffle != want.shuffle else "flip:repeat")
