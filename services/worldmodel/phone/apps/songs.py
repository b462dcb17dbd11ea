"""The data of Music: songs, playlists, and what is playing.

Shuffle is a fixed stride through the queue, so that the future of a phone is decided. Not
here: pages and reactions (`music`).
"""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.state import Part

SONGS = {
    "Sunrise": "Luma",
    "Harbor": "Luma",
    "Velvet": "Odile",
    "Comet": "Odile",
    "Lantern": "Rook",
    "Thunder": "Rook",
    "Meadow": "Siena",
    "Ember": "Siena",
    "Glacier": "Tavi",
    "Mirage": "Tavi",
    "Orchid": "Wren",
    "Paper": "Wren",
}
LISTS = ("Party", "Focus", "Sleep", "Run", "Drive")
STRIDE = 5


@dataclass(frozen=True)
class Song:
    """A song; titles are unique."""

    title: str
    artist: str
    seconds: int
    liked: bool = False


@dataclass(frozen=True)
class Playlist:
    """A playlist holds titles, in order."""

    name: str
    titles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Music(Part):
    """`current` is the song in the player ("" is none), `second` how far it has come.

    `queue` names the playlist that goes on after it, "" all songs.
    """

    songs: tuple[Song, ...]
    lists: tuple[Playlist, ...]
    current: str = ""
    playing: bool = False
    second: int = 0
    queue: str = ""
    shuffle: bool = False
    repeat: bool = False

    def facts(self) -> "Music":
        """How far the music has come, and what would follow, is left out."""
        return replace(self, second=0, queue="")

    def eased(self, start: "Music", want: "Music") -> "Music":
        """Music that played from the start may have gone on to another song."""
        if start.playing and start.current == want.current:
            return replace(self, current=want.current)
        return self

    def song(self, title: str) -> Song | None:
        """The song of that title."""
        return next((song for song in self.songs if song.title == title), None)

    def list(self, name: str) -> Playlist | None:
        """The playlist of that name."""
        return next((playlist for playlist in self.lists if playlist.name == name), None)

    def liking(self, title: str, liked: bool) -> "Music":
        """The music with one song liked or not."""
        songs = (replace(s, liked=liked) if s.title == title else s for s in self.songs)
        return replace(self, songs=tuple(songs))

    def holding(self, name: str, titles: tuple[str, ...]) -> "Music":
        """The music with the songs of one playlist replaced."""
        lists = (replace(p, titles=titles) if p.name == name else p for p in self.lists)
        return replace(self, lists=tuple(lists))

    def with_list(self, name: str) -> "Music":
        """The music with a new, empty playlist at the end."""
        return replace(self, lists=(*self.lists, Playlist(name)))

    def starting(self, title: str, queue: str = "") -> "Music":
        """The music with one song playing from its beginning."""
        return replace(self, current=title, playing=True, second=0, queue=queue)

    def following(self, stride: int) -> "Music":
        """The music `stride` songs further in the queue, which is a ring."""
        playlist = self.list(self.queue)
        titles = playlist.titles if playlist else tuple(song.title for song in self.songs)
        if not titles:
            return replace(self, second=0)
        at = titles.index(self.current) if self.current in titles else -1
        hop = stride * STRIDE if self.shuffle else stride
        return replace(self, current=titles[(at + hop) % len(titles)], second=0)


def boot(rng: Random) -> Music:
    """Ten of the songs, two or three playlists of three to five songs; one song may play."""
    songs = tuple(
        Song(title, SONGS[title], rng.randrange(120, 300), rng.random() < 0.35)
        for title in rng.sample(tuple(SONGS), 10)
    )
    titles = [song.title for song in songs]
    lists = tuple(
        Playlist(name, tuple(rng.sample(titles, rng.randint(3, 5))))
        for name in rng.sample(LISTS, rng.randint(2, 3))
    )
    current = rng.choice(titles) if rng.random() < 0.5 else ""
    return Music(songs, lists, current, shuffle=rng.random() < 0.3, repeat=rng.random() < 0.3)
