"""The web of a phone: a few made-up sites that are decided when the phone is made.

Nothing is fetched. A page is lines of (words, value), links, and perhaps a form.
"""

from dataclasses import dataclass
from random import Random

CITIES = ("Oslo", "Lima", "Cairo", "Delhi", "Paris", "Quito", "Seoul", "Tunis")
STOPS = ("Airport", "Beach", "Castle", "Market", "Museum", "Stadium")
COINS = ("Euro", "Franc", "Peso", "Rand", "Won", "Yen")
ARTICLES = ("Bridge", "Harvest", "Marathon", "Eclipse", "Festival", "Volcano")
FILES = ("Map", "Guide", "Menu", "Poster", "Tickets")
SUFFIX = ".example"


@dataclass(frozen=True)
class Site:
    """One page. `links` are (words, address), or (words, "file:NAME") for a download."""

    address: str
    title: str
    lines: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    form: bool = False

    def value(self, words: str) -> str:
        """The value of a line. Raises KeyError when there is no such line."""
        return dict(self.lines)[words]


def build(rng: Random) -> tuple[Site, ...]:
    """All pages of the made-up web, with numbers of this phone."""
    cities = rng.sample(CITIES, 5)
    stops = rng.sample(STOPS, 5)
    coins = rng.sample(COINS, 5)
    articles = rng.sample(ARTICLES, 3)
    files = rng.sample(FILES, 4)
    news = tuple(
        Site(
            f"{name.lower()}{SUFFIX}",
            name,
            (("Visitors", str(rng.randint(20, 900))), ("Day", f"{rng.randint(1, 28)} May")),
            (("Forum", f"forum{SUFFIX}"),),
        )
        for name in articles
    )
    return (
        Site(
            f"weather{SUFFIX}",
            "Weather",
            tuple((city, f"{rng.randint(-9, 38)} °C") for city in cities),
            (("News", f"news{SUFFIX}"),),
        ),
        Site(
            f"bus{SUFFIX}",
            "Bus",
            tuple((s, f"{rng.randint(6, 22):02d}:{rng.randrange(0, 60, 5):02d}") for s in stops),
            (("Maps", f"files{SUFFIX}"),),
        ),
        Site(
            f"rates{SUFFIX}",
            "Rates",
            tuple((coin, f"${rng.randint(1, 30)}.{rng.randint(10, 99)}") for coin in coins),
        ),
        Site(
            f"news{SUFFIX}",
            "News",
            (),
            (
                *((page.title, page.address) for page in news),
                ("Weather", f"weather{SUFFIX}"),
                ("Rates", f"rates{SUFFIX}"),
            ),
        ),
        *news,
        Site(
            f"files{SUFFIX}",
            "Downloads",
            (),
            tuple((name, f"file:{name}") for name in files),
        ),
        Site(f"forum{SUFFIX}", "Forum", form=True),
    )
