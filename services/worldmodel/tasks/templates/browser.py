"""Tasks in the Browser."""

from random import Random

from services.worldmodel.phone.apps.browser import NAME, Browser
from services.worldmodel.phone.apps.sites import FILES, SUFFIX, Site
from services.worldmodel.phone.look import NAMES
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.answers import AnswerType
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = NAME
START = Frame("start")
MARK = (
    "Bookmark {} in the Browser.",
    "Add the site {} to my bookmarks.",
    "Open {} and bookmark it.",
)
UNMARK = (
    "Remove {} from the bookmarks.",
    "Take the site {} off my bookmarks.",
    "In the Browser, {} should no longer be bookmarked.",
)
LOAD = (
    "Download {} from {}.",
    "Get the file {} from the site {}.",
    "In the Browser, download {}; it is on {}.",
)
POST = (
    "Send the text {2} as {1} on {0}.",
    "Fill in the form on {0}: name {1}, text {2}, and send it.",
    "Post {2} on {0} under the name {1}.",
)
DEGREES = (
    "How many degrees has {}, by {}?",
    "Look up the temperature of {} on {}.",
    "What is the temperature in {}? See {}.",
)
BUS = (
    "When does the bus to the {} leave, by {}?",
    "Look up on {1} at what time the bus to the {0} goes.",
    "At what time goes the bus to the {}? See {}.",
)
RATE = (
    "What does one {} cost, by {}?",
    "Look up the rate of the {} on {}.",
    "How many dollars is a {}? See {}.",
)
WARMEST = (
    "Which city is the warmest on {}?",
    "Name the city with the highest temperature on {}.",
    "By {}, where is it warmest?",
)
VISITORS = (
    "How many visitors does the news article {} speak of?",
    "Open the article {} on the news site: how many visitors were there?",
    "Read {} on news.example and tell me the number of visitors.",
)
WORDS = ("Hello", "Thanks", "Agreed", "Never", "Perhaps", "Indeed")


def _site(browser: Browser, address: str) -> Site:
    site = browser.site(address)
    assert site is not None
    return site


def _fronts() -> list[str]:
    return ["bus" + SUFFIX, "files" + SUFFIX, "news" + SUFFIX, "rates" + SUFFIX, "weather" + SUFFIX]


def _mark(marked: bool) -> Template:
    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        browser: Browser = phone.of(APP)
        address = rng.choice(_fronts())
        words = wordings(MARK if marked else UNMARK, address)
        start, want = browser.marking(address, not marked), browser.marking(address, marked)
        return change(phone, words, APP, start, want)

    return Template("browser_bookmark" if marked else "browser_unbookmark", (APP,), "toggle", draft)


def _load(rng: Random, phone: Phone, _seed: int) -> Draft:
    browser: Browser = phone.of(APP)
    site = _site(browser, "files" + SUFFIX)
    name = rng.choice([name for name, _ in site.links if name not in browser.downloads])
    words = wordings(LOAD, name, site.address)
    return change(phone, words, APP, browser, browser.loading(name))


def _load_maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds there is no such file."""
    if seed % 2 == 0:
        return _load(rng, phone, seed)
    browser: Browser = phone.of(APP)
    address = "files" + SUFFIX
    have = [name for name, _ in _site(browser, address).links]
    name = rng.choice([name for name in FILES if name not in have])
    start = browser.marking(address, True)
    data = edited(phone.data, **{APP: start})
    look = Look(APP, (START, Frame("page", address)))
    return Draft(wordings(LOAD, name, address), data, data, look, feasible=False)


def _post(rng: Random, phone: Phone, _seed: int) -> Draft:
    browser: Browser = phone.of(APP)
    address, name, text = "forum" + SUFFIX, rng.choice(NAMES), rng.choice(WORDS)
    words = wordings(POST, address, name, text)
    return change(phone, words, APP, browser, browser.sending(address, name, text))


def _line(name: str, host: str, kind: AnswerType, sentences: tuple[str, ...]) -> Template:
    """A question about one line of a site; every second time the address has to be typed."""

    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        address = host + SUFFIX
        browser: Browser = phone.of(APP).marking(address, rng.random() < 0.5)
        words, value = rng.choice(_site(browser, address).lines)
        data = edited(phone.data, **{APP: browser})
        look = Look(APP, (START, Frame("page", address)), typed=("Address", address))
        said = wordings(sentences, words, address)
        return Draft(said, data, data, look, value, kind)

    return Template(name, (APP,), "lookup", draft)


def _warmest(_rng: Random, phone: Phone, _seed: int) -> Draft:
    address = "weather" + SUFFIX
    browser: Browser = phone.of(APP)
    lines = _site(browser, address).lines
    degrees = {int(value.partition(" ")[0]): city for city, value in lines}
    look = Look(APP, (START, Frame("page", address)), typed=("Address", address))
    words = wordings(WARMEST, address)
    return Draft(words, phone.data, phone.data, look, degrees[max(degrees)], "choice")


def _visitors(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The article is reached by a link from the front page."""
    browser: Browser = phone.of(APP).marking("news" + SUFFIX, True)
    front = _site(browser, "news" + SUFFIX)
    name, address = rng.choice(front.links[:3])
    stack = (START, Frame("page", front.address), Frame("page", address))
    data = edited(phone.data, **{APP: browser})
    answer = _site(browser, address).value("Visitors")
    return Draft(wordings(VISITORS, name), data, data, Look(APP, stack), answer, "number")


TEMPLATES = (
    _mark(True),
    _mark(False),
    Template("browser_download", (APP,), "form", _load),
    Template("browser_download_maybe", (APP,), "infeasible", _load_maybe),
    Template("browser_post", (APP,), "form", _post),
    _line("browser_degrees", "weather", "number", DEGREES),
    _line("browser_bus_time", "bus", "time", BUS),
    _line("browser_rate", "rates", "money", RATE),
    Template("browser_warmest", (APP,), "lookup", _warmest),
    Template("browser_article", (APP,), "lookup", _visitors),
)
