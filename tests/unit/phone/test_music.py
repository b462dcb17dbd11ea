"""Music, played by hand on a small library."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import Phone, boot, elements, step, title
from services.worldmodel.phone.apps.songs import Music, Playlist, Song
from services.worldmodel.phone.screen import find
from tests.unit.phone.play import press
from wmkit.domain.actions import LongPress, OpenApp, Type, Wait

SONGS = (
    Song("Comet", "Odile", 100),
    Song("Ember", "Siena", 60, liked=True),
    Song("Paper", "W", 90),
)
LISTS = (Playlist("Run", ("Ember", "Comet")), Playlist("Sleep"))


def rows(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "row"]


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def hold(phone: Phone, key: str) -> Phone:
    return step(phone, LongPress(find(phone, key).at))


@pytest.fixture
def phone() -> Phone:
    phone = boot(1)
    data = tuple((n, Music(SONGS, LISTS) if n == "Music" else part) for n, part in phone.data)
    return step(replace(phone, data=data), OpenApp("Music"))


def test_a_song_plays_on_while_one_waits(phone):
    assert rows(phone) == ["Comet", "Ember", "Paper"]
    player = press(phone, "song:Comet")
    assert title(player) == "Player" and {"0:00", "1:40"} <= set(texts(player))
    later = step(player, Wait(99_000))
    assert (later.of("Music").current, later.of("Music").second) == ("Comet", 99)
    after = step(later, Wait(11_000)).of("Music")
    assert (after.current, after.second, after.playing) == ("Ember", 10, True)
    paused = press(later, "pause")
    assert step(paused, Wait(50_000)).of("Music") == paused.of("Music")
    assert press(paused, "resume").of("Music") == later.of("Music")


def test_music_that_played_before_may_have_gone_on():
    start = Music(SONGS, LISTS).starting("Comet")
    later = replace(start, current="Ember", playing=False)
    paused = replace(start, playing=False)
    assert later.eased(start, paused).facts() == paused.facts()
    assert later.eased(paused, paused).facts() != paused.facts()


def test_next_previous_repeat_and_shuffle(phone):
    player = press(phone, "song:Paper")
    assert press(player, "next").of("Music").current == "Comet"
    assert press(player, "previous").of("Music").current == "Ember"
    repeating = press(player, "flip:repeat")
    assert step(repeating, Wait(91_000)).of("Music").current == "Paper"
    # Five songs on in a ring of three is two songs on.
    assert press(player, "flip:shuffle", "next").of("Music").current == "Ember"


def test_a_list_plays_its_own_songs(phone):
    player = press(phone, "tab:Lists", "list:Run", "song:Ember")
    assert press(player, "next").of("Music").current == "Comet"
    assert press(player, "next", "next").of("Music").current == "Ember"
    assert player.of("Music").facts() == press(phone, "song:Ember").of("Music").facts()


def test_a_menu_likes_and_adds_without_playing(phone):
    menu = hold(phone, "song:Paper")
    assert title(menu) == "Paper" and not menu.of("Music").playing
    liked = press(menu, "like").of("Music")
    assert [song.liked for song in liked.songs] == [False, True, True]
    page = press(menu, "choose")
    assert rows(page) == ["Run", "Sleep"]
    added = press(page, "into:Run").of("Music")
    assert added.list("Run").titles == ("Ember", "Comet", "Paper")
    again = press(press(page, "into:Run"), "choose")
    assert find(again, "into:Run") is None and find(again, "into:Sleep") is not None


def test_lists_are_made_emptied_and_deleted(phone):
    lists = press(phone, "tab:Lists")
    assert {"2 songs", "0 songs"} <= set(texts(lists))
    form = step(press(lists, "add"), Type("Rain"))
    assert [p.name for p in press(form, "save").of("Music").lists] == ["Run", "Sleep", "Rain"]
    taken = step(press(lists, "add"), Type("Run"))
    assert "There is a list of that name" in texts(taken) and press(taken, "save") == taken
    inside = press(lists, "list:Run")
    shorter = press(hold(inside, "song:Ember"), "confirm").of("Music")
    assert shorter.list("Run").titles == ("Comet",) and shorter.songs == SONGS
    gone = press(hold(lists, "list:Run"), "confirm").of("Music")
    assert gone.lists == LISTS[1:]


def test_the_song_in_the_player_stands_below_the_list(phone):
    back = press(phone, "song:Comet", "back")
    assert rows(back) == ["Comet", "Ember", "Paper", "Comet"] and "Playing" in texts(back)
    assert title(press(back, "player")) == "Player"
