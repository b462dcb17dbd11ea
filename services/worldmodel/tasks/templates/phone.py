"""Tasks in Phone."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.phone import Call, Calls
from services.worldmodel.phone.look import NAMES
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, near, wordings
from services.worldmodel.tasks.touch import Look

APP = "Phone"
BLOCK = ("Block {}.", "Block {} in Phone.", "Let {} no longer call me.")
RECENTS, KEYPAD, SPEED = Frame("Recents"), Frame("Keypad"), Frame("Speed")


def _speed_dial(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Nothing tells the three tiles apart but the call that each one makes."""
    calls: Calls = phone.of(APP)
    name = rng.choice(calls.speed)[1]
    words = wordings(
        ("Call {} by Speed.", "Speed dial {}.", "Use Speed in Phone to call {}."), name
    )
    draft = change(phone, words, APP, calls, calls.calling(name, "speed"))
    return replace(draft, starts=near(APP, (SPEED,), (RECENTS,), (KEYPAD,)))


def _call_back(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The call to answer is the latest missed one, below some others."""
    calls: Calls = phone.of(APP)
    name, *others = rng.sample(calls.names, rng.randint(2, 4))
    earlier = tuple(call for call in calls.log if call.name not in (name, *others))
    start = replace(
        calls, log=(*earlier, Call(name, "Missed"), *(Call(n, "Incoming") for n in others))
    )
    words = (
        "Call back whoever called last and was missed.",
        "Return my latest missed call.",
        "Call the person whose call I missed last.",
    )
    return change(phone, words, APP, start, start.calling(name, "recents"))


def _call_again(rng: Random, phone: Phone, _seed: int) -> Draft:
    calls: Calls = phone.of(APP)
    name = rng.choice(calls.names)
    words = wordings(
        ("Call {} from Recents.", "Call {} again in Phone.", "Call {} from the Phone history."),
        name,
    )
    return change(phone, words, APP, calls, calls.calling(name, "recents"))


def _dial(rng: Random, phone: Phone, _seed: int) -> Draft:
    calls: Calls = phone.of(APP)
    number = f"{rng.choice(('555', '020', '417'))}-{rng.randrange(10000):04d}"
    words = wordings(("Dial {}.", "Call the number {}.", "Call {} with the Keypad."), number)
    return change(phone, words, APP, calls, calls.calling(number, "keypad"))


def _block(blocked: bool) -> Template:
    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        calls: Calls = phone.of(APP)
        name = rng.choice(calls.names)
        words = wordings(
            BLOCK if blocked else ("Unblock {}.", "Unblock {} in Phone.", "Let {} call me again."),
            name,
        )
        start, want = calls.blocking(name, not blocked), calls.blocking(name, blocked)
        return change(phone, words, APP, start, want)

    return Template("phone_block" if blocked else "phone_unblock", (APP,), "toggle", draft)


def _block_maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds nobody of that name has ever called."""
    calls: Calls = phone.of(APP)
    if seed % 2 == 0:
        name = rng.choice(calls.names)
        start = calls.blocking(name, False)
        return change(phone, wordings(BLOCK, name), APP, start, start.blocking(name, True))
    name = rng.choice([n for n in NAMES if n not in calls.names])
    look = Look(APP, (RECENTS,), to_end=True)
    return Draft(wordings(BLOCK, name), phone.data, phone.data, look, feasible=False)


def _forget(rng: Random, phone: Phone, _seed: int) -> Draft:
    calls: Calls = phone.of(APP)
    name = rng.choice(calls.names)
    words = wordings(
        (
            "Delete the calls with {}.",
            "Delete the call history of {}.",
            "Remove {} from Recents in Phone.",
        ),
        name,
    )
    return change(phone, words, APP, calls, calls.without(name))


def _last_missed(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The latest missed call is not the latest call."""
    calls: Calls = phone.of(APP)
    name, *others = rng.sample(calls.names, rng.randint(2, 4))
    earlier = tuple(call for call in calls.log if call.name not in (name, *others))
    log = (*earlier, Call(name, "Missed"), *(Call(n, "Outgoing") for n in others))
    data = edited(phone.data, Phone=replace(calls, log=log))
    words = (
        "Whose call did I miss last?",
        "Who is my latest missed call from?",
        "Whom did I miss?",
    )
    return Draft(words, data, data, Look(APP, (RECENTS,), item=f"open:{name}"), name, "name")


def _count(rng: Random, phone: Phone, _seed: int) -> Draft:
    calls: Calls = phone.of(APP)
    name = rng.choice(calls.names)
    words = wordings(
        (
            "How many calls with {} are in the history?",
            "How often did {} and I call?",
            "Count the calls with {}.",
        ),
        name,
    )
    extra = tuple(Call(name, "Incoming") for _ in range(rng.randrange(4)))
    data = edited(phone.data, Phone=replace(calls, log=(*extra, *calls.log)))
    count = sum(call.name == name for call in (*extra, *calls.log))
    look = Look(APP, (RECENTS, Frame("history", name)))
    return Draft(words, data, data, look, str(count), "count")


def _if_missed(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Whether to call back or to block is decided by the kind of the latest call."""
    calls: Calls = phone.of(APP)
    name = rng.choice(calls.names)
    missed = rng.random() < 0.5
    start = calls.blocking(name, False)
    start = replace(start, log=(*start.log, Call(name, "Missed" if missed else "Incoming")))
    words = wordings(
        (
            "If the latest call of {0} was missed, call back; otherwise block {0}.",
            "Call {0} back if the latest call was missed, else block {0}.",
            "Block {0} unless the latest call was missed; in that case call back.",
        ),
        name,
    )
    want = start.calling(name, "recents") if missed else start.blocking(name, True)
    return change(phone, words, APP, start, want)


TEMPLATES = (
    Template("phone_speed_dial", (APP,), "look_ahead", _speed_dial),
    Template("phone_call_back", (APP,), "list", _call_back),
    Template("phone_call_again", (APP,), "list", _call_again),
    Template("phone_dial", (APP,), "form", _dial),
    _block(True),
    _block(False),
    Template("phone_block_maybe", (APP,), "infeasible", _block_maybe),
    Template("phone_delete_history", (APP,), "list", _forget),
    Template("phone_last_missed", (APP,), "lookup", _last_missed),
    Template("phone_count_calls", (APP,), "lookup", _count),
    Template("phone_if_missed", (APP,), "conditional", _if_missed),
)
