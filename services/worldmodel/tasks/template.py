"""A template: a rule that makes tasks from seeds. Also where an episode starts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone import boot
from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.state import HOME, Nav, Part, Phone, Stack
from services.worldmodel.tasks.answers import AnswerType
from services.worldmodel.tasks.task import Data, Kind, Task, edited, with_plan
from services.worldmodel.tasks.touch import Look, path

MAX_STARTS = 50
# Where an episode may start besides the apps that a task is about. Fixed, so that a task stays
# what it is when the phone gets another app.
ELSEWHERE = ("Settings", "Clock", "Notes", "Contacts")


@dataclass(frozen=True)
class Draft:
    """What a template decides: words for the goal, the start's data and the wanted data.

    `wordings` are equivalent sentences, one of which is chosen by the seed. `starts` are
    places to start at, chosen among evenly; without them the template's own rule decides.
    `also` are further pages that have to be seen, each in an app of its own. `order` is the
    order in which apps have to be put right, where it matters.
    """

    wordings: tuple[str, ...]
    start: Data
    want: Data
    look: Look | None = None
    answer: str | None = None
    answer_type: AnswerType = "text"
    feasible: bool = True
    starts: tuple[Nav, ...] = ()
    also: tuple[Look, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def looks(self) -> tuple[Look, ...]:
        """Every page that has to be seen."""
        return self.also if self.look is None else (self.look, *self.also)


@dataclass(frozen=True)
class Template:
    """`draft` gets a random source, a fresh phone and the seed (for exact halves)."""

    name: str
    apps: tuple[str, ...]
    kind: Kind
    draft: Callable[[Random, Phone, int], Draft]

    @property
    def varied(self) -> bool:
        """Whether its phones differ in theme, text size, notifications and interruptions.

        Tasks of the first four apps are played on plain phones, all others on varied ones.
        """
        return not set(self.apps) <= set(ELSEWHERE)

    def make(self, seed: int) -> Task:
        """The task of a seed: same seed, same task, on every machine."""
        rng = Random(f"{self.name}/{seed}")
        phone = boot(rng.getrandbits(48), self.varied)
        draft = self.draft(rng, phone, seed)
        goal = rng.choice(draft.wordings)
        phone = replace(phone, data=draft.start)
        for _ in range(MAX_STARTS):
            task = with_plan(
                Task(
                    self.name,
                    seed,
                    goal,
                    self._start(rng, phone, draft),
                    draft.start,
                    draft.want,
                    self.apps,
                    self.kind,
                    draft.looks,
                    draft.answer,
                    draft.answer_type,
                    draft.feasible,
                    draft.order,
                )
            )
            if task.complexity > 0:
                return task
        raise AssertionError(f"{self.name} {seed}: no start that needs an action")

    def _start(self, rng: Random, phone: Phone, draft: Draft) -> Phone:
        """Home in about 70 % of the cases, else a page of some app, often the wrong one.

        Some phones at home have an app in the background, which opens where it was left.
        """
        if draft.starts:
            return replace(phone, nav=rng.choice(draft.starts))
        roll = rng.random()
        if roll < 0.55:
            return phone
        app = rng.choice(self.apps if rng.random() < 0.4 else ELSEWHERE)
        stack = rng.choice(APPS[app].pages(phone.of(app)))
        listing = APPS[app].listing(phone.of(app), stack[-1])
        if listing is not None and rng.random() < 0.4:
            stack = (*stack[:-1], replace(stack[-1], scroll=listing.last))
        if any(look.app == app and path(look.stack) == path(stack) for look in draft.looks):
            return phone
        return replace(phone, nav=Nav(HOME if roll < 0.7 else app, ((app, stack),)))


def change(phone: Phone, wordings: tuple[str, ...], app: str, start: Part, want: Part) -> Draft:
    """A draft that turns one app's data from `start` into `want`."""
    data = edited(phone.data, **{app: start})
    return Draft(wordings, data, edited(data, **{app: want}))


def near(app: str, page: Stack, *others: Stack) -> tuple[Nav, ...]:
    """Starts for what is decided on one page: mostly there, else one page away."""
    here = Nav(app, ((app, page),))
    away = tuple(Nav(app, ((app, other),)) for other in others)
    return (here, here, here, here, here, *away, Nav(HOME, ((app, page),)))


def wordings(sentences: tuple[str, ...], *words: str) -> tuple[str, ...]:
    """The sentences with their words filled in."""
    return tuple(sentence.format(*words) for sentence in sentences)
