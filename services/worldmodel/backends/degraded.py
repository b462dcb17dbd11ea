"""The scripted phone, imperfect on demand: how good must a world model be?

Each transition suffers at most one fault, at stated rates: the action is ignored, the screen
stays stale, another page opens, an element is missing, a word is wrong. Which one is a pure
function of the state, the action and the settings' seed, so that imagining and committing
agree and equal states go on alike. Tasks and predicates are the scripted phone's; they judge
what became of the phone, not what was shown.
"""

import json
from dataclasses import dataclass, replace
from random import Random

from blake3 import blake3

from services.worldmodel import phone as phones
from services.worldmodel.backends.base import Prediction
from services.worldmodel.backends.scripted import Scripted, described
from services.worldmodel.phone import APPS, Element, Phone
from services.worldmodel.phone.state import Nav
from wmkit.domain.actions import Action
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.screen import Point
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate
from wmkit.domain.transition import Element as SeenElement

FAULTS = ("ignored", "stale", "wrong_page", "dropped", "renamed")


@dataclass(frozen=True, slots=True)
class Seen:
    """A phone and what is shown of it: `shown` is the phone that is drawn, without the element
    of id `dropped`, and with the word `word` on the element of id `renamed` ("" for none)."""

    phone: Phone
    shown: Phone
    dropped: str = ""
    renamed: str = ""
    word: str = ""

    @property
    def drawn(self) -> tuple[Element, ...]:
        """Every element on the screen, from back to front."""
        out = []
        for element in phones.elements(self.shown):
            if _belongs(element, self.dropped):
                continue
            if element.text and _belongs(element, self.renamed):
                element = element._replace(text=self.word)
            out.append(element)
        return tuple(out)


def read_rates(text: str) -> dict[str, float]:
    """`"stale=0.1,dropped=0.05"` as a dictionary. Raises InvalidRequest in one sentence."""
    rates: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if name not in FAULTS:
            raise InvalidRequest(
                f"unknown fault {name!r}; there are: {', '.join(FAULTS)}", field="degrade"
            )
        try:
            rate = float(value)
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= 1:
            raise InvalidRequest(f"{name} needs a rate in [0, 1], is {value!r}", field="degrade")
        rates[name] = rate
    if sum(rates.values()) > 1:
        raise InvalidRequest("the rates of all faults add up to more than 1", field="degrade")
    return rates


class Degraded:
    """See `WorldBackend` for the meaning of the methods."""

    name = "degraded"
    kind = "degraded phone"
    deterministic = True
    screen = Scripted.screen

    def __init__(self, rates: dict[str, float], seed: int = 0) -> None:
        self._rates = rates
        self._seed = seed
        self._exact = Scripted()
        said = json.dumps([self._exact.revision, sorted(rates.items()), seed])
        self.revision = f"degraded-{blake3(said.encode()).hexdigest()[:16]}"

    def start(self, ref: TaskRef) -> tuple[Task, Seen]:
        task, value = self._exact.start(ref)
        return task, Seen(value, value)

    def snap(self, action: Action) -> Action:
        return self._exact.snap(action)

    async def predict(self, value: Seen, action: Action, seed: int) -> Prediction[Seen]:
        return Prediction(self._next(value, action))

    def _next(self, value: Seen, action: Action) -> Seen:
        point = getattr(action, "point", None)
        if isinstance(point, Point) and value.dropped and _missing(value, point):
            return value
        exact = phones.step(value.phone, action)
        rng = Random(f"{self.revision}/{value.phone.digest}/{action}")
        roll = rng.random()
        for fault, rate in sorted(self._rates.items()):
            if roll < rate:
                return _spoil(fault, value, exact, rng)
            roll -= rate
        return Seen(exact, exact)

    def digest(self, value: Seen) -> str:
        return blake3(self.dumps(value)).hexdigest()

    def screen_digest(self, value: Seen) -> str:
        marks = [phones.screen_digest(value.shown), value.dropped, value.renamed, value.word]
        return blake3(json.dumps(marks).encode()).hexdigest()

    def dumps(self, value: Seen) -> bytes:
        parts = [phones.dumps(value.phone).decode(), "", value.dropped, value.renamed, value.word]
        if value.shown != value.phone:
            parts[1] = phones.dumps(value.shown).decode()
        return json.dumps(parts, separators=(",", ":")).encode()

    def loads(self, data: bytes) -> Seen:
        try:
            whole, shown, dropped, renamed, word = map(str, json.loads(data))
        except (TypeError, UnicodeDecodeError, ValueError):
            raise ValueError("not a degraded phone") from None
        value = phones.loads(whole.encode())
        seen = Seen(value, phones.loads(shown.encode()) if shown else value, dropped, renamed, word)
        if self.dumps(seen) != data:
            raise ValueError("not a degraded phone as it is written")
        return seen

    def html(self, value: Seen) -> str:
        return phones.html(value.shown, value.drawn)

    def elements(self, value: Seen) -> tuple[SeenElement, ...]:
        return described(value.drawn)

    def judge(
        self, ref: TaskRef, value: Seen, answer: str | None, finish_status: str | None
    ) -> Judgement:
        return self._exact.judge(ref, value.phone, answer, finish_status)

    def templates(self) -> tuple[TaskTemplate, ...]:
        return self._exact.templates()


def _spoil(fault: str, before: Seen, exact: Phone, rng: Random) -> Seen:
    named = [e for e in phones.elements(exact) if e.clickable and e.text]
    match fault:
        case "ignored":
            return before
        case "stale":
            return Seen(exact, before.shown)
        case "wrong_page":
            app = rng.choice(list(APPS))
            stack = rng.choice(APPS[app].pages(exact.of(app)))
            wrong = replace(exact, nav=Nav(app, ((app, stack),)))
            return Seen(wrong, wrong)
        case "dropped" if named:
            return Seen(exact, exact, dropped=rng.choice(named).id)
        case "renamed" if len({e.text for e in named}) > 1:
            element = rng.choice(named)
            words = sorted({e.text for e in named} - {element.text})
            return Seen(exact, exact, renamed=element.id, word=rng.choice(words))
        case _:
            return Seen(exact, exact)


def _belongs(element: Element, id: str) -> bool:
    """Whether the element, or the thing that it is a piece of (`id:icon`), has that id."""
    return bool(id) and element.id.partition(":")[0] == id


def _missing(value: Seen, point: Point) -> bool:
    """Whether the thing under a point is the one that is not shown."""
    x, y = point.to_px(phones.WIDTH, phones.HEIGHT)
    for element in reversed(phones.elements(value.phone)):
        if element.clickable and element.covers(x, y):
            return element.id == value.dropped
    return False
