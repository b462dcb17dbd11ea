"""Tasks in Music."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.music import NAME
from services.worldmodel.phone.apps.songs import SONGS, Music
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = NAME
PLAY = ("Play {}.", "Put on the song {}.", "Play the song {} in Music.")
LIKE = ("Like the song {}.", "Mark {} as liked in Music.", "Give {} a heart in Music.")
BOTH = (
    "Make sure that {} and {} are liked in Music.",
    "In Music, both {} and {} should be liked.",
    "See to it that the songs {} and {} have a heart.",
)
NEW = ("Create a playlist named {}.", "Add an empty list {} in Music.", "Make a new list {}.")
ADD = (
    "Add {} to the list {}.",
    "Put the song {} into my playlist {}.",
    "In Music, add {} to {}.",
)
REMOVE = (
    "Remove {} from the list {}.",
    "Take the song {} off my playlist {}.",
    "In Music, delete {} from {}, but keep the song.",
)
PAUSE = ("Pause the music.", "Stop the song that is playing.", "Make Music pause.")
MODE = ("Play {} with {} on.", "Put on {} and turn {} on.", "Play the song {} in {} mode.")
COUNT = (
    "How many songs are in the list {}?",
    "Count the songs of my playlist {}.",
    "What is the number of songs in {}?",
)
ARTIST = ("Who sings {}?", "Which artist made the song {}?", "Name the artist of {}.")
IF = (
    "If {0} is liked, play it; otherwise like it.",
    "Play {0} if it has a heart in Music, else give it one.",
    "In Music: when {0} is liked, put it on, otherwise mark it as liked.",
)
ROOT = Frame("Songs")
WORDS = ("Summer", "Rain", "Study", "Kitchen", "Winter", "Sunday")


def _titles(music: Music) -> list[str]:
    return [song.title for song in music.songs]


def _play(rng: Random, phone: Phone, _seed: int) -> Draft:
    music: Music = phone.of(APP)
    title = rng.choice([t for t in _titles(music) if t != music.current])
    return change(phone, wordings(PLAY, title), APP, music, music.starting(title))


def _play_maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds there is no such song."""
    if seed % 2 == 0:
        return _play(rng, phone, seed)
    title = rng.choice([t for t in SONGS if phone.of(APP).song(t) is None])
    look = Look(APP, (ROOT,), to_end=True)
    return Draft(wordings(PLAY, title), phone.data, phone.data, look, feasible=False)


def _like(rng: Random, phone: Phone, _seed: int) -> Draft:
    music: Music = phone.of(APP)
    title = rng.choice(_titles(music))
    start = music.liking(title, False)
    return change(phone, wordings(LIKE, title), APP, start, start.liking(title, True))


def _like_both(rng: Random, phone: Phone, _seed: int) -> Draft:
    """One of the two is liked already: touching it would undo that."""
    music: Music = phone.of(APP)
    a, b = rng.sample(_titles(music), 2)
    liked = rng.choice((a, b))
    start = music.liking(a, a == liked).liking(b, b == liked)
    want = start.liking(a, True).liking(b, True)
    return change(phone, wordings(BOTH, a, b), APP, start, want)


def _new(rng: Random, phone: Phone, _seed: int) -> Draft:
    music: Music = phone.of(APP)
    name = rng.choice(WORDS)
    return change(phone, wordings(NEW, name), APP, music, music.with_list(name))


def _add(rng: Random, phone: Phone, _seed: int) -> Draft:
    music: Music = phone.of(APP)
    playlist = rng.choice(music.lists)
    title = rng.choice([t for t in _titles(music) if t not in playlist.titles])
    want = music.holding(playlist.name, (*playlist.titles, title))
    return change(phone, wordings(ADD, title, playlist.name), APP, music, want)


def _remove(rng: Random, phone: Phone, _seed: int) -> Draft:
    music: Music = phone.of(APP)
    playlist = rng.choice(music.lists)
    title = rng.choice(playlist.titles)
    want = music.holding(playlist.name, tuple(t for t in playlist.titles if t != title))
    return change(phone, wordings(REMOVE, title, playlist.name), APP, music, want)


def _pause(rng: Random, phone: Phone, _seed: int) -> Draft:
    music: Music = phone.of(APP)
    start = music.starting(rng.choice(_titles(music)))
    return change(phone, PAUSE, APP, start, replace(start, playing=False))


def _mode(rng: Random, phone: Phone, _seed: int) -> Draft:
    music: Music = replace(phone.of(APP), shuffle=False, repeat=False)
    title = rng.choice([t for t in _titles(music) if t != music.current])
    mode = rng.choice(("Shuffle", "Repeat"))
    want = replace(music.starting(title), shuffle=mode == "Shuffle", repeat=mode == "Repeat")
    return change(phone, wordings(MODE, title, mode), APP, music, want)


def _count(rng: Random, phone: Phone, _seed: int) -> Draft:
    playlist = rng.choice(phone.of(APP).lists)
    look = Look(APP, (Frame("Lists"),))
    count = str(len(playlist.titles))
    return Draft(wordings(COUNT, playlist.name), phone.data, phone.data, look, count, "count")


def _artist(rng: Random, phone: Phone, _seed: int) -> Draft:
    song = rng.choice(phone.of(APP).songs)
    look = Look(APP, (ROOT,), item=f"song:{song.title}")
    return Draft(wordings(ARTIST, song.title), phone.data, phone.data, look, song.artist, "name")


def _if(rng: Random, phone: Phone, _seed: int) -> Draft:
    music: Music = phone.of(APP)
    title = rng.choice([t for t in _titles(music) if t != music.current])
    start = music.liking(title, rng.random() < 0.5)
    song = start.song(title)
    assert song is not None
    want = start.starting(title) if song.liked else start.liking(title, True)
    return change(phone, wordings(IF, title), APP, start, want)


TEMPLATES = (
    Template("music_play", (APP,), "list", _play),
    Template("music_play_maybe", (APP,), "infeasible", _play_maybe),
    Template("music_like", (APP,), "toggle", _like),
    Template("music_like_both", (APP,), "distractor", _like_both),
    Template("music_new_list", (APP,), "form", _new),
    Template("music_add_to_list", (APP,), "list", _add),
    Template("music_remove_from_list", (APP,), "list", _remove),
    Template("music_pause", (APP,), "toggle", _pause),
    Template("music_play_with_mode", (APP,), "toggle", _mode),
    Template("music_count_list", (APP,), "lookup", _count),
    Template("music_artist", (APP,), "lookup", _artist),
    Template("music_if_liked", (APP,), "conditional", _if),
)
